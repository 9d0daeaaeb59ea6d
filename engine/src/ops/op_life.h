/* op life: what the owners of ops and the backends call, beside what drivers do (ringspun/ops/op_life.h). Owned by the machine's
 * thread. */
#ifndef RINGSPUN_ENGINE_OP_LIFE_H
#define RINGSPUN_ENGINE_OP_LIFE_H

#include "ops/op.h"
#include "ringspun/ops/op_life.h"

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

#endif
