/* op life: what happens to an op, from its request to its terminal completion, whichever backend has it. Owned by the machine's
 * thread.
 *
 * A request is tried at first (rs_try), and becomes an op where it would wait (rs_op_start for a strand, rs_op_launch for an
 * owner). Where many strands are ready it may become one without a try (rs_ask), so that one system call is for all of them. The
 * backend arms it, and completes it once (rs_op_complete). A caller that wants it to end sooner asks for that once (rs_op_cancel), by
 * closing its descriptor too (rs_descriptor_closing), and still waits for the completion: it may be of what was asked for first.
 */
#ifndef RINGSPUN_OP_LIFE_H
#define RINGSPUN_OP_LIFE_H

#include "ringspun/core/machine.h"
#include "ringspun/ops/descriptor.h"
#include "ringspun/ops/op.h"

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
