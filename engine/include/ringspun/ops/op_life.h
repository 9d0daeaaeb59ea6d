/* op life: what happens to an op, from its request to its terminal completion, whichever backend has it. Owned by the machine's
 * thread.
 *
 * A request is tried at first (rs_try), and becomes an op where it would wait (rs_op_start for a strand, rs_op_launch for an
 * owner). Where many strands are ready it may become one without a try (rs_ask), so that one system call is for all of them. The backend arms it, and completes it once (rs_op_complete). Who wants it to end sooner asks for that once
 * (rs_op_cancel), by closing its descriptor too (rs_descriptor_closing), and still waits for the completion: it may be of what
 * was asked for first.
 */
#ifndef RINGSPUN_OP_LIFE_H
#define RINGSPUN_OP_LIFE_H

#include "ringspun/core/machine.h"
#include "ringspun/ops/descriptor.h"

/* Tries the request without waiting; -EAGAIN: it must wait (rs_op_start). */
int64_t rs_try(rs_machine *machine, const rs_request *request);

/* The same for a strand that is about to start an op where the answer is -EAGAIN. That may also mean that nobody has tried: the
 * request says so (RS_REQUEST_UNTRIED), and is for no other end. */
int64_t rs_ask(rs_machine *machine, rs_request *request);

/* A request is tried before it becomes an op. */
bool rs_tries_first(const rs_machine *machine);

/* Closes a descriptor that a request has made and nobody takes. */
void rs_descriptor_discard(rs_machine *machine, int fd);

/* The request has ended by that error after its first bytes, which are its answer. The kernel reports an error of a socket once: the
 * next read ends with it, if the number still means the same. `identity`: what it meant at first; 0: what it means now. */
void rs_descriptor_owe(rs_machine *machine, const rs_request *request, uint64_t identity, int64_t error);

/* Parks the running strand for the request, and takes over what it owns. NULL: refused (machine->refusal says why), nothing
 * taken over. After rs_park_end the strand gives the op back with rs_op_end. */
rs_op *rs_op_start(rs_machine *machine, const rs_request *request, uint32_t park_flags, int64_t deadline_ns);
void rs_op_end(rs_machine *machine, rs_op *op);

/* What a strand waits for in RS_WAIT_OP. */
const rs_request *rs_request_of_wait(const rs_machine *machine, const rs_strand *strand);

/* It will be tried again, with the number that it names: what that means now is noted. */
void rs_op_goes_by_number(rs_machine *machine, rs_op *op);

/* For such a one: whether the number means something else by now. It ends then. */
bool rs_op_lost_descriptor(const rs_machine *machine, const rs_op *op);

/* Its owner waits no more: when it ends it is freed, and what it has made is closed. */
void rs_op_orphan(rs_op *op);
bool rs_op_is_orphan(const rs_op *op);

/* Asks the orphans that take nothing to end, and answers how many have not. The others end by themselves. */
uint32_t rs_ops_end_orphans(rs_machine *machine);

/* For a FILLED op with an owner: it is in flight now, or has ended already. */
void rs_op_launch(rs_machine *machine, rs_op *op);

/* What a request has made is the machine's own. */
void rs_descriptor_made(rs_machine *machine, const rs_request *request, int64_t fd);

/* Asks an op in flight to end, if nobody has yet; its strand wakes with `kind` when it ends by that. It may have ended when this
 * returns. One that may be left is left, also where its descriptor is being closed and it has been asked before. */
void rs_op_cancel(rs_machine *machine, rs_op *op, rs_wake_kind kind);

/* Somebody has asked for its end, or closes its descriptor. */
static inline bool rs_op_is_unwanted(const rs_op *op) { return op->cancel != RS_WAKE_VALUE || op->closing; }

/* For backends whose tries the machine's thread makes, after an answer to one: tries on for as long as rs_request_goes_on. The last
 * answer; -EAGAIN: it would wait, or others are to be served now. */
int64_t rs_op_go_on(rs_machine *machine, rs_op *op, int64_t result);

/* For backends: the terminal completion. `result`: of the last try; what earlier ones have moved is added here. */
void rs_op_complete(rs_machine *machine, rs_op *op, int64_t result);

/* True for an op that its strand may leave behind while a worker is still at it: all its memory is its own. */
static inline bool rs_op_may_be_left(const rs_op *op) {
    return op->offloaded && rs_op_kinds[op->request.kind].effect != RS_EFFECT_DATA;
}

/* For a backend that cannot end the op now: its strand goes on without it, if it may leave the op and was cancelled. False: it waits
 * for the completion. */
bool rs_op_leave(rs_machine *machine, rs_op *op);

/* No op is in flight but those that their strands have left: the machine may be closed. */
bool rs_ops_are_over(const rs_machine *machine);

/* After rs_machine_leave or rs_machine_close, on any thread: a worker in its system call, or the kernel, may still use memory that
 * an op keeps (rs_op_keep). Once false it stays false. */
bool rs_ops_use_memory(const rs_machine *machine);

/* Around all that closing a descriptor takes. False: another strand is at it already. */
bool rs_descriptor_close_begin(rs_machine *machine, int fd);
/* The number is closed now, and no op is on it: forgets what it meant, and drops what is kept for it. */
void rs_descriptor_drop(rs_machine *machine, int fd);
void rs_descriptor_close_end(rs_machine *machine, int fd);

/* Cancels every op on a descriptor that is about to be closed (their strands see -EBADF, unless they were cancelled before)
 * and returns how many are still in flight: wait in rs_descriptors.closers and ask again while there are any. */
uint32_t rs_descriptor_closing(rs_machine *machine, int fd);

#endif
