#include "outlet.h"

#include <errno.h>
#include <sys/socket.h>

void rs_outlet_open(rs_machine *machine, rs_outlet *outlet, uint8_t kind, int fd) {
    *outlet = (rs_outlet){.machine = machine, .next = machine->outlets, .kind = kind, .fd = fd,
                          .generation = rs_descriptor_generation(&machine->descriptors, fd)};
    if (outlet->next) outlet->next->previous = outlet;
    machine->outlets = outlet;
    machine->ops.limit++; /* for the one that it may have in flight */
}

static void clean(rs_outlet *outlet) {
    if (!outlet->dirty) return;
    rs_outlet **link = &outlet->machine->dirty;
    while (*link != outlet) link = &(*link)->next_dirty;
    *link = outlet->next_dirty;
    outlet->dirty = false;
}

static void drop_bytes(rs_outlet *outlet) {
    clean(outlet);
    rs_buffer_clear(&outlet->machine->pool, &outlet->filling);
    rs_buffer_clear(&outlet->machine->pool, &outlet->sending);
}

void rs_outlet_close(rs_outlet *outlet) {
    rs_machine *machine = outlet->machine;
    if (!machine) return;
    RS_ASSERT(!outlet->op && outlet->waiters.len == 0);
    drop_bytes(outlet);
    if (outlet->next) outlet->next->previous = outlet->previous;
    if (outlet->previous) outlet->previous->next = outlet->next;
    else machine->outlets = outlet->next;
    machine->ops.limit--;
    outlet->machine = NULL;
}

/* The kernel may still read what the op sends, so that memory goes with the op. */
static void leave_op(rs_outlet *outlet) {
    rs_machine *machine = outlet->machine;
    rs_op *op = rs_op_find(&machine->ops, outlet->op);
    outlet->op = 0;
    if (!op) return;
    op->outlet = NULL;
    op->abandoned = true;
    op->request.extra = outlet->sending.bytes;
    outlet->sending = (rs_buffer){0};
    machine->pool.lent--;
}

void rs_outlet_abandon(rs_outlet *outlet) {
    if (!outlet->machine) return;
    if (outlet->op) leave_op(outlet);
    for (rs_strand *waits; (waits = rs_list_first(outlet->machine, &outlet->waiters));) rs_list_remove(outlet->machine, waits);
    rs_outlet_close(outlet);
}

static void fail(rs_outlet *outlet, int64_t error) {
    outlet->error = error;
    drop_bytes(outlet);
    rs_list_wake_all(outlet->machine, &outlet->waiters, 0);
}

static void mark_dirty(rs_outlet *outlet) {
    if (outlet->dirty || outlet->op || rs_outlet_len(outlet) == 0) return;
    outlet->dirty = true;
    outlet->next_dirty = outlet->machine->dirty;
    outlet->machine->dirty = outlet;
}

int64_t rs_outlet_put(rs_outlet *outlet, const void *bytes, size_t len) {
    if (outlet->error) return outlet->error;
    outlet->put += len;
    rs_buffer_put(&outlet->machine->pool, &outlet->filling, bytes, len);
    mark_dirty(outlet);
    return (int64_t)len;
}

static rs_request request_of(const rs_outlet *outlet) {
    return (rs_request){.kind = outlet->kind, .fd = outlet->fd, .flags = outlet->kind == RS_OP_SEND ? MSG_NOSIGNAL : 0,
                        .address = rs_buffer_at(&outlet->sending), .len = rs_buffer_len(&outlet->sending), .offset = -1};
}

static bool was_closed_here(const rs_outlet *outlet) {
    return rs_descriptor_generation(&outlet->machine->descriptors, outlet->fd) != outlet->generation;
}

bool rs_outlet_is_gone(const rs_outlet *outlet) {
    return was_closed_here(outlet) || (RS_UNLIKELY(outlet->is_open != NULL) && !outlet->is_open(outlet));
}

static void start_op(rs_outlet *outlet, const rs_request *request) {
    rs_machine *machine = outlet->machine;
    rs_op *op = rs_op_take(&machine->ops, request);
    RS_ASSERT(op != NULL);
    op->outlet = outlet;
    outlet->op = rs_op_id(op);
    rs_op_launch(machine, op);
}

static void take_filling(rs_outlet *outlet) {
    outlet->sending = outlet->filling;
    outlet->filling = (rs_buffer){0};
}

/* The request for what the kernel did not take at once. */
static int64_t send_directly(rs_outlet *outlet, rs_request *rest) {
    take_filling(outlet);
    *rest = request_of(outlet);
    int64_t result = rs_try(outlet->machine, rest);
    if (result > 0) rs_buffer_drop(&outlet->machine->pool, &outlet->sending, (size_t)result);
    if (result < 0 && result != -EAGAIN) return result;
    *rest = request_of(outlet);
    rest->options = RS_REQUEST_ALL;
    return 0;
}

/* What was put in while the rest of this waited comes right after it. */
static int64_t send_through(rs_outlet *outlet, rs_request *rest) {
    *rest = (rs_request){.kind = RS_OP_POLL, .fd = outlet->fd};
    rs_buffer *sending = &outlet->sending;
    while (rs_outlet_len(outlet) > 0) {
        if (rs_buffer_len(sending) == 0) take_filling(outlet);
        int64_t result = outlet->pass(outlet, rs_buffer_at(sending), rs_buffer_len(sending), &rest->flags);
        if (result == -EAGAIN) return 0;
        if (result < 0) return result;
        rs_buffer_drop(&outlet->machine->pool, sending, (size_t)result);
    }
    return 0;
}

void rs_outlet_flush(rs_outlet *outlet) {
    rs_machine *machine = outlet->machine;
    clean(outlet);
    if (outlet->op || rs_outlet_len(outlet) == 0) return;
    if (rs_outlet_is_gone(outlet)) {
        fail(outlet, -EBADF);
        return;
    }
    rs_request rest;
    int64_t result = RS_UNLIKELY(outlet->pass != NULL) ? send_through(outlet, &rest) : send_directly(outlet, &rest);
    if (result < 0) fail(outlet, result);
    else if (rs_buffer_len(&outlet->sending) > 0) start_op(outlet, &rest);
    else rs_list_wake_all(machine, &outlet->waiters, 0);
}

bool rs_outlet_stop(rs_outlet *outlet) {
    if (!outlet->op) return false;
    rs_op *op = rs_op_find(&outlet->machine->ops, outlet->op);
    if (op->cancel == RS_WAKE_VALUE && !op->closing) {
        op->cancel = RS_WAKE_CANCEL;
        outlet->machine->backend->cancel(outlet->machine, op);
    }
    return outlet->op != 0;
}

void rs_outlets_flush(rs_machine *machine) {
    while (machine->dirty) rs_outlet_flush(machine->dirty);
}

void rs_outlet_ended(rs_machine *machine, rs_op *op, int64_t result) {
    rs_outlet *outlet = op->outlet;
    outlet->op = 0;
    if (result < 0) {
        fail(outlet, result == -ECANCELED ? -EBADF : result);
        return;
    }
    if (!outlet->pass) rs_buffer_clear(&machine->pool, &outlet->sending); /* else it may be handed over now */
    mark_dirty(outlet);
    rs_list_wake_all(machine, &outlet->waiters, 0);
}

/* What lies here is the parent's to send. */
void rs_outlets_forked(rs_machine *machine) {
    for (rs_outlet *outlet = machine->outlets; outlet; outlet = outlet->next) {
        outlet->op = 0;
        outlet->waiters = (rs_list){0};
        drop_bytes(outlet);
    }
}

void rs_outlets_close_all(rs_machine *machine) {
    while (machine->outlets) {
        /* Not a word to the binding: this may be the collector, and its objects gone. */
        if (was_closed_here(machine->outlets)) machine->outlets->error = -EBADF;
        machine->outlets->op = 0;
        machine->outlets->waiters = (rs_list){0};
        rs_outlet_close(machine->outlets);
    }
    rs_pool_free(&machine->pool);
}
