#include "core.h"

rsm_machine *rsm_machine_for_op(mrb_state *mrb) {
    rsm_check_boundary(mrb);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_strand *me = rsm_running(machine);
    if (RS_UNLIKELY(me->turn_ended)) {
        me->turn_ended = false;
        rsm_raise_wake(mrb, machine, rs_turn_refusal(machine->engine));
    }
    return machine;
}

/* A cancellation that came meanwhile is for the next op: this one was done. */
static mrb_value after_turn(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    strand->turn_ended = true;
    return mrb->c->ci->stack[0];
}

/* Meanwhile the value is in the place of `self`. */
mrb_value rsm_end_turn(mrb_state *mrb, rsm_machine *machine, mrb_value value) {
    rsm_strand *me = rsm_running(machine);
    mrb->c->ci->stack[0] = value;
    rs_yield(machine->engine);
    return rsm_park(mrb, machine, me, after_turn);
}
