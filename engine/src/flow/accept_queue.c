#include "ringspun/flow/accept_queue.h"
#include "core/machine.h"
#include "flow/accept_queues.h"
#include "ops/descriptors.h"
#include "ops/op_life.h"
#include "ops/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RS_EACH_ACCEPT_QUEUE(machine, queue) RS_EACH_LINKED(&rs_accept_queues_in(machine)->all, rs_accept_queue, link, queue)

static int64_t take_kept(rs_machine *machine, const rs_request *request);
static void drop_kept(rs_machine *machine, int fd);

bool rs_accept_queue_fits(const rs_machine *machine, int fd) {
    bool own = rs_descriptor_kind(rs_descriptors_in(machine), fd) == RS_FD_STREAM;
    return rs_accept_queues_in(machine)->multishot && own && rs_accept_queues_in(machine)->len < machine->options.strands_max;
}

rs_accept_queue *rs_accept_queue_open(rs_machine *machine, const rs_request *request, uint32_t ahead) {
    RS_CHECK(request->kind == RS_OP_ACCEPT && ahead > 0);
    RS_CHECK(rs_accept_queue_fits(machine, request->fd));
    rs_accept_queue *queue = rs_try_alloc(sizeof(*queue));
    if (!queue) return NULL;
    *queue = (rs_accept_queue){.request = *request, .ahead = ahead,
                               .generation = rs_descriptor_generation(rs_descriptors_in(machine), request->fd)};
    rs_links_prepend(&rs_accept_queues_in(machine)->all, &queue->link);
    rs_accept_queues_in(machine)->len++;
    rs_ops_in(machine)->take_kept = take_kept;
    rs_ops_in(machine)->drop_kept = drop_kept;
    return queue;
}

static void free_accept_queue(rs_machine *machine, rs_accept_queue *queue) {
    RS_ASSERT(!queue->op && queue->len == 0 && rs_accept_queues_in(machine)->len > 0);
    rs_links_remove(&rs_accept_queues_in(machine)->all, &queue->link);
    if (--rs_accept_queues_in(machine)->len == 0) {
        rs_ops_in(machine)->take_kept = NULL;
        rs_ops_in(machine)->drop_kept = NULL;
    }
    free(queue->results);
    free(queue);
}

int64_t rs_accept_queue_take(rs_accept_queue *queue) {
    RS_CHECK(queue->first + queue->len <= queue->capacity);
    if (queue->len > 0) {
        queue->len--;
        return queue->results[queue->first++];
    }
    queue->first = 0;
    int64_t error = queue->error;
    queue->error = 0;
    return error ? error : -EAGAIN;
}

static bool make_room(rs_accept_queue *queue) {
    RS_CHECK(queue->first + queue->len <= queue->capacity);
    if (queue->first + queue->len < queue->capacity) return true;
    if (queue->len > 0) memmove(queue->results, queue->results + queue->first, sizeof(int64_t) * queue->len);
    queue->first = 0;
    if (queue->len < queue->capacity) return true;
    uint32_t capacity = queue->capacity ? queue->capacity * 2 : 16;
    int64_t *results = rs_try_realloc(queue->results, sizeof(int64_t) * capacity);
    if (!results) return false;
    queue->results = results;
    queue->capacity = capacity;
    return true;
}

static void brought(rs_machine *machine, rs_op *op, int64_t result) {
    rs_accept_queue *queue = op->context;
    RS_ASSERT(queue->op == rs_op_id(op));
    RS_CHECK(result >= 0);
    if (RS_UNLIKELY(!make_room(queue))) {
        rs_platform_of(machine)->discard(machine, (int)result);
        queue->error = RS_NO_MEMORY;
        rs_accept_queue_stop(machine, queue);
        return;
    }
    RS_CHECK(!queue->left);
    queue->results[queue->first + queue->len++] = result;
    rs_descriptor_made(machine, &queue->request, result);
    rs_list_wake_all(machine, &queue->waiters, 0);
    if (queue->len >= queue->ahead) rs_accept_queue_stop(machine, queue);
}

static void ended(rs_machine *machine, rs_op *op, int64_t result) {
    rs_accept_queue *queue = op->context;
    RS_ASSERT(queue->op == rs_op_id(op));
    queue->op = 0;
    if (result < 0 && result != -ECANCELED) queue->error = result;
    else if (op->closing) queue->error = -EBADF;
    rs_list_wake_all(machine, &queue->waiters, 0);
}

/* The kernel would give its op all that comes, and others none, for it wakes one of those that wait, and this op waits again at
 * once: https://github.com/torvalds/linux/blob/v6.18/io_uring/opdef.c (poll_exclusive). One that has just come behind another
 * ends here. */
static void give_way(rs_machine *machine, rs_op *op) {
    rs_accept_queue *queue = op->context;
    RS_CHECK(queue->op == rs_op_id(op));
    queue->shared = true;
    rs_accept_queue_stop(machine, queue);
}

static const rs_op_owner accept_queue_owner = {.ended = ended, .brought = brought, .give_way = give_way};

static void launch(rs_machine *machine, rs_accept_queue *queue) {
    rs_op *op = rs_op_take(rs_ops_in(machine), &queue->request);
    if (RS_UNLIKELY(!op)) {
        queue->error = RS_NO_MEMORY;
        return;
    }
    RS_CHECK(queue->len == 0 && queue->error == 0);
    op->owner = &accept_queue_owner;
    op->context = queue;
    queue->op = rs_op_id(op);
    rs_op_launch(machine, op);
}

bool rs_accept_queue_arm(rs_machine *machine, rs_accept_queue *queue) {
    RS_CHECK(!queue->left);
    RS_CHECK(rs_descriptor_generation(rs_descriptors_in(machine), queue->request.fd) == queue->generation);
    if (!queue->op) launch(machine, queue);
    return queue->op && queue->len == 0;
}

rs_list *rs_accept_queue_waiters(rs_accept_queue *queue) { return &queue->waiters; }

const rs_request *rs_accept_queue_request(const rs_list *waiters) {
    return &((const rs_accept_queue *)(const void *)((const char *)waiters - offsetof(rs_accept_queue, waiters)))->request;
}

bool rs_accept_queue_is_armed(const rs_accept_queue *queue) { return queue->op != 0; }

bool rs_accept_queue_gives_way(const rs_accept_queue *queue) { return queue->shared && !queue->op; }

bool rs_accept_queue_stop(rs_machine *machine, rs_accept_queue *queue) {
    if (!queue->op) return false;
    rs_op *op = rs_op_find(rs_ops_in(machine), queue->op);
    RS_CHECK(op != NULL && op->context == queue);
    rs_op_cancel(machine, op, RS_WAKE_CANCEL);
    return queue->op != 0;
}

static void drop_results(rs_machine *machine, rs_accept_queue *queue) {
    while (queue->len > 0) {
        int fd = (int)rs_accept_queue_take(queue);
        RS_CHECK(fd >= 0);
        rs_descriptor_forget(rs_descriptors_in(machine), fd);
        rs_platform_of(machine)->discard(machine, fd);
    }
}

void rs_accept_queue_close(rs_machine *machine, rs_accept_queue *queue) {
    RS_ASSERT(!queue->left && !queue->op && queue->waiters.len == 0);
    queue->left = true;
    if (queue->len == 0) free_accept_queue(machine, queue);
    else if (rs_descriptor_generation(rs_descriptors_in(machine), queue->request.fd) != queue->generation) {
        drop_results(machine, queue);
        free_accept_queue(machine, queue);
    }
}

static bool is_of(const rs_machine *machine, const rs_accept_queue *queue, int fd) {
    return queue->request.fd == fd && rs_descriptor_generation(rs_descriptors_in(machine), fd) == queue->generation;
}

int64_t rs_accept_queue_take_any(rs_machine *machine, int fd) {
    RS_EACH_ACCEPT_QUEUE(machine, queue) {
        if (queue->len == 0 || !is_of(machine, queue, fd)) continue;
        int64_t result = rs_accept_queue_take(queue);
        RS_CHECK(result >= 0);
        if (queue->left && queue->len == 0) free_accept_queue(machine, queue);
        return result;
    }
    return -EAGAIN;
}

bool rs_accept_queue_has(const rs_machine *machine, int fd) {
    RS_EACH_ACCEPT_QUEUE(machine, queue) {
        if (queue->len > 0 && is_of(machine, queue, fd)) return true;
    }
    return false;
}

/* As if it were in the kernel's queue. */
static int64_t take_kept(rs_machine *machine, const rs_request *request) {
    RS_CHECK(rs_accept_queues_in(machine)->len > 0);
    if (request->kind == RS_OP_ACCEPT) return rs_accept_queue_take_any(machine, request->fd);
    bool readable = request->kind == RS_OP_POLL && (request->poll.events & RS_POLL_IN) && rs_accept_queue_has(machine, request->fd);
    return readable ? RS_POLL_IN : -EAGAIN;
}

rs_accept_queue *rs_accept_queues_next(const rs_machine *machine, const rs_accept_queue *queue) {
    if (!rs_accept_queues_in(machine)) return NULL; /* it has not opened */
    return RS_LINKED(queue ? queue->link.next : rs_accept_queues_in(machine)->all.first, rs_accept_queue, link);
}

static void drop_kept(rs_machine *machine, int fd) {
    RS_EACH_ACCEPT_QUEUE(machine, queue) {
        if (queue->request.fd != fd) continue;
        RS_CHECK(!queue->op);
        drop_results(machine, queue);
        if (queue->left) free_accept_queue(machine, queue);
    }
}

void rs_accept_queue_close_copies(rs_machine *machine) {
    RS_EACH_ACCEPT_QUEUE(machine, queue) {
        RS_CHECK(queue->first + queue->len <= queue->capacity);
        for (; queue->len > 0; queue->len--) rs_platform_of(machine)->discard(machine, (int)queue->results[queue->first++]);
    }
}

/* --- the part --- */

/* One op each. */
static void open_accept_queues(rs_machine *machine) { rs_ops_in(machine)->slab.limit += machine->options.strands_max; }

static void forked(rs_machine *machine, const rs_strand *survivor) {
    (void)survivor;
    RS_EACH_ACCEPT_QUEUE(machine, queue) {
        drop_results(machine, queue);
        queue->op = 0;
        queue->waiters = (rs_list){0};
        if (queue->left) free_accept_queue(machine, queue);
    }
}

/* With what they hold: nobody takes it any more. */
static void close_accept_queues(rs_machine *machine) {
    RS_EACH_ACCEPT_QUEUE(machine, queue) {
        queue->op = 0;
        drop_results(machine, queue);
        free_accept_queue(machine, queue);
    }
    RS_CHECK(rs_accept_queues_in(machine)->len == 0);
}

const rs_part rs_accept_queues_part = {
    .open = open_accept_queues, .forked = forked, .left = close_accept_queues, .close = close_accept_queues,
};
