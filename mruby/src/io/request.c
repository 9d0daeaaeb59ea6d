/* request: performs the requests of all methods that read, write and the like. A request is tried at once, and becomes an op only where
 * it would wait. What it returns is made where it has ended, by its answer.
 */
#include "io.h"

#include <mruby/error.h>
#include <errno.h>
#include <stdlib.h>

void *rsm_owned(mrb_state *mrb, size_t size) {
    void *memory = malloc(size);
    if (!memory) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    return memory;
}

/* --- answers --- */

typedef struct {
    rsm_machine *machine;
    const rs_request *request;
    int64_t result;
    rsm_answer answer;
    bool closed;                /* the descriptor, while the op waited: its number may mean another by now */
} ended;

static mrb_value answer_of(mrb_state *mrb, void *argument) {
    const ended *e = argument;
    if (RS_UNLIKELY(e->closed)) rsm_fail_closed(mrb, e->request);
    if (e->result < 0) rsm_fail(mrb, e->machine, e->result, e->request);
    return e->answer(mrb, e->machine, e->request, e->result);
}

/* There was no memory for the object that would have had it. */
static void discard_made(const ended *e) {
    switch (rs_request_traits(e->request)->makes) {
    case RS_MAKES_NOTHING: return;
    case RS_MAKES_PAIR:
        for (int i = 0; i < 2; i++) rs_descriptor_discard(e->machine->engine, ((int *)e->request->owned)[i]);
        return;
    default: rs_descriptor_discard(e->machine->engine, (int)e->result);
    }
}

/* Raises nothing, for the op has to be given back first: `failed` says that this is an error. */
static mrb_value answer_safely(mrb_state *mrb, ended e, mrb_bool *failed) {
    mrb_value value = mrb_protect_error(mrb, answer_of, &e, failed);
    if (RS_UNLIKELY(*failed) && e.result >= 0) discard_made(&e);
    if (RS_UNLIKELY(*failed) && e.result < 0) rsm_stream_blame(mrb, value, e.result);
    return value;
}

mrb_value rsm_answer_inline(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result, rsm_answer answer) {
    mrb_bool failed;
    mrb_value value = answer_safely(mrb, (ended){machine, request, result, answer, false}, &failed);
    free(request->owned);
    if (RS_UNLIKELY(failed)) mrb_exc_raise(mrb, value);
    return rsm_after_inline(mrb, machine, value);
}

mrb_value rsm_answer_nil(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return mrb_nil_value();
}

/* --- ops --- */

mrb_value rsm_after_op(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    const rsm_op_memo *memo = RSM_MEMO(rsm_op_memo, strand);
    mrb_bool failed = false;
    mrb_value value = mrb_nil_value();
    if (RS_LIKELY(kind == RS_WAKE_VALUE)) {
        const rs_op *op = memo->op;
        ended e = {machine, rs_op_request(op), result, memo->answer, .closed = result == -EBADF && rs_op_was_closed(op)};
        value = answer_safely(mrb, e, &failed);
    }
    rs_op_end(machine->engine, memo->op);
    if (RS_UNLIKELY(failed)) mrb_exc_raise(mrb, value);
    rsm_raise_wake(mrb, machine, kind);
    return value;
}

mrb_value rsm_wait_for(mrb_state *mrb, rsm_machine *machine, const rs_request *request, const rsm_op_wait *how) {
    rs_strand *running = rs_running(machine->engine);
    rsm_strand *me = rs_strand_user(running);
    rs_op *op = rs_op_start(machine->engine, request, how->flags, how->deadline_ns ? how->deadline_ns : RS_NEVER);
    if (RS_UNLIKELY(!op)) {
        free(request->owned);
        rsm_raise_wake(mrb, machine, rs_refused(machine->engine));
    }
    *RSM_MEMO(rsm_op_memo, me) = (rsm_op_memo){.op = op, .answer = how->answer};
    if (how->waits) *how->waits = true;
    if (how->resumable) rs_make_resumable(running, rs_strand_ticket(running));
    return rsm_park(mrb, machine, me, how->epilogue ? how->epilogue : rsm_after_op);
}

mrb_value rsm_perform(mrb_state *mrb, rsm_machine *machine, const rs_request *request, rsm_answer answer) {
    int64_t result = rs_try(machine->engine, request);
    if (result == -EAGAIN) return rsm_wait_for(mrb, machine, request, &(rsm_op_wait){.answer = answer});
    return rsm_answer_inline(mrb, machine, request, result, answer);
}
