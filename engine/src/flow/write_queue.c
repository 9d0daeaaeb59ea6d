#include "ringspun/flow/write_queue.h"
#include "core/machine.h"
#include "flow/pool.h"
#include "flow/write_queues.h"
#include "ops/descriptors.h"
#include "ops/op_life.h"

#include <errno.h>

static void flush_gathered(rs_machine *machine, rs_gathered *gathered) {
    rs_write_queue *queue = RS_LINKED(&gathered->link, rs_write_queue, gathered.link);
    RS_CHECK(queue->machine == machine);
    rs_write_queue_flush(queue);
}

void rs_write_queue_open(rs_machine *machine, rs_write_queue *queue, uint8_t kind, int fd) {
    RS_CHECK(fd >= 0 && (kind == RS_OP_WRITE || kind == RS_OP_SEND));
    *queue = (rs_write_queue){.machine = machine, .kind = kind, .fd = fd, .gathered.flush = flush_gathered,
                              .generation = rs_descriptor_generation(rs_descriptors_in(machine), fd)};
    rs_links_prepend(&rs_write_queues_in(machine)->all, &queue->link);
    rs_ops_in(machine)->slab.limit++; /* for the one that it may have in flight */
}

static void drop_bytes(rs_write_queue *queue) {
    RS_CHECK(!queue->op);
    rs_ungather(queue->machine, &queue->gathered);
    rs_buffer_clear(rs_pool_in(queue->machine), &queue->filling);
    rs_buffer_clear(rs_pool_in(queue->machine), &queue->sending);
}

void rs_write_queue_close(rs_write_queue *queue) {
    rs_machine *machine = queue->machine;
    if (!machine) return;
    RS_ASSERT(!queue->op && queue->waiters.len == 0);
    drop_bytes(queue);
    rs_links_remove(&rs_write_queues_in(machine)->all, &queue->link);
    rs_ops_in(machine)->slab.limit--;
    queue->machine = NULL;
}

/* The kernel may still read what the op sends, so that memory goes with the op. */
static void leave_sending(rs_write_queue *queue, rs_op *op) {
    RS_CHECK(op->context == queue || rs_op_is_orphan(op));
    char *bytes = rs_buffer_release(rs_pool_in(queue->machine), &queue->sending);
    RS_CHECK(op->request.owned == NULL);
    if (bytes) op->request.owned = bytes;
}

static void leave_op(rs_write_queue *queue) {
    rs_machine *machine = queue->machine;
    rs_op *op = rs_op_find(rs_ops_in(machine), queue->op);
    queue->op = 0;
    if (!op) return;
    RS_CHECK(op->context == queue);
    rs_op_orphan(op);
    leave_sending(queue, op);
}

void rs_write_queue_abandon(rs_write_queue *queue) {
    if (!queue->machine) return;
    if (queue->op) leave_op(queue);
    for (rs_strand *waits; (waits = rs_list_first(queue->machine, &queue->waiters));) rs_list_remove(queue->machine, waits);
    rs_write_queue_close(queue);
}

static void fail(rs_write_queue *queue, int64_t error) {
    RS_CHECK(error < 0 && !queue->op);
    queue->error = error;
    drop_bytes(queue);
    rs_list_wake_all(queue->machine, &queue->waiters, 0);
}

static void gather(rs_write_queue *queue) {
    RS_CHECK(queue->machine != NULL && queue->error == 0);
    if (!queue->op && rs_write_queue_len(queue) > 0) rs_gather(queue->machine, &queue->gathered);
}

bool rs_write_queue_reserve(rs_write_queue *queue, size_t len) {
    if (queue->error || len == 0) return true;
    RS_CHECK(queue->machine != NULL);
    return rs_buffer_room(rs_pool_in(queue->machine), &queue->filling, len) != NULL;
}

int64_t rs_write_queue_put(rs_write_queue *queue, const void *bytes, size_t len) {
    if (queue->error) return queue->error;
    RS_CHECK(queue->machine != NULL);
    if (!rs_buffer_put(rs_pool_in(queue->machine), &queue->filling, bytes, len)) return RS_NO_MEMORY;
    queue->put += len;
    RS_CHECK(rs_write_queue_len(queue) <= queue->put);
    gather(queue);
    return (int64_t)len;
}

static rs_request request_of(const rs_write_queue *queue) {
    RS_CHECK(rs_buffer_len(&queue->filling) == 0 || queue->pass);
    rs_transfer rest = {.address = rs_buffer_at(&queue->sending), .len = rs_buffer_len(&queue->sending), .offset = -1};
    return (rs_request){.kind = queue->kind, .fd = queue->fd, .transfer = rest};
}

static bool was_closed_here(const rs_write_queue *queue) {
    RS_CHECK(queue->machine != NULL);
    return rs_descriptor_generation(rs_descriptors_in(queue->machine), queue->fd) != queue->generation;
}

/* The number may mean something else by now, when others have closed what it meant: nothing more may be tried on it. */
static bool queue_is_gone(const rs_write_queue *queue) {
    return was_closed_here(queue) || (RS_UNLIKELY(queue->is_open != NULL) && !queue->is_open(queue));
}

static void ended(rs_machine *machine, rs_op *op, int64_t result) {
    rs_write_queue *queue = op->context;
    RS_ASSERT(queue->op == rs_op_id(op));
    queue->op = 0;
    if (RS_UNLIKELY(op->in_doubt)) leave_sending(queue, op);
    if (result < 0) {
        fail(queue, result == -ECANCELED ? -EBADF : result);
        return;
    }
    if (!queue->pass) rs_buffer_clear(rs_pool_in(machine), &queue->sending); /* else it may be handed over now */
    gather(queue);
    rs_list_wake_all(machine, &queue->waiters, 0);
}

size_t rs_write_queue_untaken(const rs_write_queue *queue) {
    const rs_op *op = queue->op && !queue->pass ? rs_op_find(rs_ops_in(queue->machine), queue->op) : NULL;
    size_t taken = op ? (size_t)op->request.done : 0;
    RS_CHECK(taken <= rs_buffer_len(&queue->sending));
    return rs_write_queue_len(queue) - taken;
}

static bool is_gone(const rs_op *op) { return queue_is_gone(op->context); }

static const rs_op_owner write_queue_owner = {.ended = ended, .is_gone = is_gone};

static void start_op(rs_write_queue *queue, const rs_request *request) {
    rs_machine *machine = queue->machine;
    RS_ASSERT(!queue->op && rs_buffer_len(&queue->sending) > 0);
    rs_op *op = rs_op_take(rs_ops_in(machine), request);
    if (RS_UNLIKELY(!op)) {
        fail(queue, RS_NO_MEMORY);
        return;
    }
    op->owner = &write_queue_owner;
    op->context = queue;
    queue->op = rs_op_id(op);
    rs_op_launch(machine, op);
}

static void take_filling(rs_write_queue *queue) {
    RS_ASSERT(rs_buffer_len(&queue->sending) == 0);
    queue->sending = queue->filling;
    queue->filling = (rs_buffer){0};
}

/* The request for what the kernel did not take at once. */
static int64_t send_directly(rs_write_queue *queue, rs_request *rest) {
    RS_CHECK(!queue->op && !queue->pass);
    take_filling(queue);
    *rest = request_of(queue);
    int64_t result = rs_try(queue->machine, rest);
    if (result > 0) rs_buffer_drop(rs_pool_in(queue->machine), &queue->sending, (size_t)result);
    if (result < 0 && result != -EAGAIN) return result;
    *rest = request_of(queue);
    rest->options = RS_REQUEST_ALL;
    return 0;
}

/* What was put in while the rest of this waited comes right after it. */
static int64_t send_through(rs_write_queue *queue, rs_request *rest) {
    RS_CHECK(!queue->op);
    *rest = (rs_request){.kind = RS_OP_POLL, .fd = queue->fd};
    rs_buffer *sending = &queue->sending;
    while (rs_write_queue_len(queue) > 0) {
        if (rs_buffer_len(sending) == 0) take_filling(queue);
        int64_t result = queue->pass(queue, rs_buffer_at(sending), rs_buffer_len(sending), &rest->poll.events);
        if (result == -EAGAIN) return 0;
        if (result < 0) return result;
        RS_CHECK(result > 0);
        rs_buffer_drop(rs_pool_in(queue->machine), sending, (size_t)result);
    }
    return 0;
}

void rs_write_queue_flush(rs_write_queue *queue) {
    RS_CHECK(queue->error == 0 || rs_write_queue_len(queue) == 0);
    rs_machine *machine = queue->machine;
    rs_ungather(machine, &queue->gathered);
    if (queue->op || rs_write_queue_len(queue) == 0) return;
    if (queue_is_gone(queue)) {
        fail(queue, -EBADF);
        return;
    }
    rs_request rest;
    int64_t result = RS_UNLIKELY(queue->pass != NULL) ? send_through(queue, &rest) : send_directly(queue, &rest);
    if (result < 0) fail(queue, result);
    else if (rs_buffer_len(&queue->sending) > 0) start_op(queue, &rest);
    else rs_list_wake_all(machine, &queue->waiters, 0);
}

bool rs_write_queue_stop(rs_write_queue *queue) {
    if (!queue->op) return false;
    rs_op *op = rs_op_find(rs_ops_in(queue->machine), queue->op);
    RS_CHECK(op != NULL && op->context == queue);
    rs_op_cancel(queue->machine, op, RS_WAKE_CANCEL);
    return queue->op != 0;
}

rs_write_queue *rs_write_queues_next(const rs_machine *machine, const rs_write_queue *queue) {
    if (!rs_write_queues_in(machine)) return NULL; /* it has not opened */
    return RS_LINKED(queue ? queue->link.next : rs_write_queues_in(machine)->all.first, rs_write_queue, link);
}

/* --- the part --- */

/* What lies here is the parent's to send. */
static void forked(rs_machine *machine, const rs_strand *survivor) {
    (void)survivor;
    RS_EACH_LINKED(&rs_write_queues_in(machine)->all, rs_write_queue, link, queue) {
        RS_CHECK(queue->machine == machine);
        queue->op = 0;
        queue->waiters = (rs_list){0};
        drop_bytes(queue);
    }
}

/* Not a word to the binding: this may be the collector, and its objects gone. */
static void close_write_queues(rs_machine *machine) {
    RS_EACH_LINKED(&rs_write_queues_in(machine)->all, rs_write_queue, link, queue) {
        RS_CHECK(queue->machine == machine);
        if (was_closed_here(queue)) queue->error = -EBADF;
        rs_op *op = queue->op ? rs_op_find(rs_ops_in(machine), queue->op) : NULL;
        if (op && op->in_doubt) leave_sending(queue, op);
        queue->op = 0;
        queue->waiters = (rs_list){0};
        rs_write_queue_close(queue);
    }
}

const rs_part rs_write_queues_part = {.forked = forked, .close = close_write_queues};
