#include "backend/retry.h"
#include "core/machine.h"
#include "ops/descriptors.h"

#include <sys/socket.h>

/* Trying once a millisecond costs nothing beside what keeps that listener so busy. */
#define AGAIN_NS 1000000

/* A socket is ready to be written to when it has room itself, whatever room the receiver has: see unix_dgram_poll, in retry.h. */
static bool sends_to_path(const rs_request *request) {
    const struct msghdr *header = request->message.header;
    RS_CHECK(header != NULL);
    return header->msg_name && ((const struct sockaddr *)header->msg_name)->sa_family == AF_UNIX;
}

bool rs_retry_fits(const rs_op *op) {
    const rs_request *request = &op->request;
    switch (request->kind) {
    case RS_OP_CONNECT: return true;
    case RS_OP_SENDMSG: return sends_to_path(request);
    /* An error that is not in the queue, and is nobody's to take. */
    case RS_OP_RECVMSG: return request->message.flags & MSG_ERRQUEUE;
    default: return false;
    }
}

void rs_retry_later(rs_machine *machine, rs_retry *retry, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !rs_retry_has(op));
    RS_CHECK(!op->offloaded && retry->first != op->index + 1);
    *rs_retry_place_of(op) = (rs_retry_place){.next = retry->first, .waits = true};
    retry->first = op->index + 1;
    if (machine->backend_deadline_ns == RS_NEVER) machine->backend_deadline_ns = rs_now(machine) + AGAIN_NS;
}

void rs_retry_forget(rs_machine *machine, rs_retry *retry, rs_op *op) {
    if (!rs_retry_has(op)) return;
    uint32_t after = rs_retry_place_of(op)->next;
    rs_op *before = NULL;
    for (uint32_t link = retry->first; link != op->index + 1; link = rs_retry_place_of(before)->next) {
        RS_ASSERT(link != 0);
        before = rs_op_at(rs_ops_in(machine), link - 1);
    }
    if (before) rs_retry_place_of(before)->next = after;
    else retry->first = after;
    if (retry->first == 0) machine->backend_deadline_ns = RS_NEVER;
    *rs_retry_place_of(op) = (rs_retry_place){0};
}

void rs_retry_serve(rs_machine *machine, rs_retry *retry, bool (*again)(rs_machine *machine, rs_op *op)) {
    RS_CHECK(retry->first == 0 || machine->backend_deadline_ns != RS_NEVER);
    if (RS_LIKELY(retry->first == 0) || rs_now(machine) < machine->backend_deadline_ns) return;
    uint32_t link = retry->first;
    retry->first = 0;
    machine->backend_deadline_ns = RS_NEVER;
    while (link) {
        rs_op *op = rs_op_at(rs_ops_in(machine), link - 1);
        RS_ASSERT(op->state == RS_OP_SUBMITTED && rs_retry_has(op));
        link = rs_retry_place_of(op)->next;
        *rs_retry_place_of(op) = (rs_retry_place){0};
        if (!again(machine, op)) rs_retry_later(machine, retry, op);
    }
}
