/* cancel: asks the kernel to end an op, and asks again where it has missed it. */
#include "backend/uring/state.h"
#include "core/machine.h"

#include <errno.h>

/* The kernel was just moving the op from one place to another, or its thread took no notice. Mostly the op has ended, and its
 * completion is on its way. https://man7.org/linux/man-pages/man3/io_uring_prep_cancel.3.html (-ENOENT, -EALREADY) */
#define CANCEL_AGAIN_NS 1000000

static void wake_to_cancel(rs_machine *machine) {
    int64_t next_ns = uring_state_of(machine)->cancel_again_ns;
    if (next_ns != 0 && next_ns < machine->backend_deadline_ns) machine->backend_deadline_ns = next_ns;
}

/* It is asked again a little later. */
static void miss(rs_machine *machine, rs_op *op) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(rs_op_is_unwanted(op) && !uring_of(op)->cancel_waits_for_entry);
    if (!uring_of(op)->cancel_missed) rs_op_line_put(&state->missed, op);
    uring_of(op)->cancel_missed = true;
    if (state->cancel_again_ns == 0) state->cancel_again_ns = rs_now(machine) + CANCEL_AGAIN_NS;
    wake_to_cancel(machine);
}

void uring_cancel(rs_machine *machine, rs_op *op) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(op->state == RS_OP_SUBMITTED && rs_op_is_unwanted(op));
    RS_CHECK(!uring_of(op)->cancel_waits_for_entry);
    if (op->offloaded) {
        rs_workers_cancel(&state->workers, op);
        return;
    }
    if (uring_of(op)->waits_behind || rs_retry_has(op)) {
        rs_retry_forget(machine, &state->retry, op);
        uring_finish(machine, op, -ECANCELED);
        return;
    }
    machine->attention = true;
    if (uring_of(op)->waits_for_entry || state->lost) return;
    if (RS_UNLIKELY(state->cancel_refused)) {
        uring_hand_over(state);
        if (!state->lost && !uring_cancel_by_call(machine, op)) miss(machine, op);
        return;
    }
    uring_sqe *sqe = uring_next_entry(state);
    if (RS_UNLIKELY(!sqe)) {
        uring_of(op)->cancel_waits_for_entry = true;
        rs_op_line_put(&state->line, op);
        return;
    }
    sqe->opcode = URING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->address = rs_op_id(op);
    sqe->user_data = rs_op_id(op) | NAME_CANCEL;
    if (state->ring.features & URING_FEATURE_CQE_SKIP) sqe->flags = URING_SQE_CQE_SKIP_SUCCESS;
}

void uring_note_cancel(rs_machine *machine, rs_op *op, int32_t result) {
    bool refused = uring_may_refuse(result);
    if (RS_UNLIKELY(refused)) uring_state_of(machine)->cancel_refused = true;
    if (result >= 0 || !op || !uring_is_in_kernel(op)) return;
    if (refused) uring_cancel(machine, op);
    else miss(machine, op);
}

void uring_cancel_again(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    if (RS_LIKELY(state->cancel_again_ns == 0)) return;
    if (rs_now(machine) >= state->cancel_again_ns) {
        state->cancel_again_ns = 0;
        /* What is missed once more takes the place of one that was read before. */
        uint32_t len = state->missed.len;
        state->missed.len = 0;
        for (uint32_t i = 0; i < len; i++) {
            RS_CHECK(state->missed.len <= i);
            rs_op *op = rs_op_find(rs_ops_in(machine), state->missed.names[i]);
            if (!op) continue;
            RS_CHECK(uring_of(op)->cancel_missed);
            uring_of(op)->cancel_missed = false;
            if (uring_is_in_kernel(op)) uring_cancel(machine, op);
        }
    }
    wake_to_cancel(machine);
}
