/* turn: what the end of a strand's turn (engine/core/turn.h) is to an op that succeeds at once, and so does not wait. */
#ifndef RINGSPUN_MRUBY_TURN_H
#define RINGSPUN_MRUBY_TURN_H

#include "machine.h"

/* The machine of a method that begins an op, where it may wait. Raises in a strand that was cancelled and whose turn has ended: one
 * that never waits would not hear of it. */
rsm_machine *rsm_machine_for_op(mrb_state *mrb);

/* Others run, and then the value is returned. */
mrb_value rsm_end_turn(mrb_state *mrb, rsm_machine *machine, mrb_value value);

/* An op has succeeded at once with that value. When the strand's turn is over, the others run before it is returned. */
static inline mrb_value rsm_after_inline(mrb_state *mrb, rsm_machine *machine, mrb_value value) {
    return RS_LIKELY(!rs_turn_ends(machine->engine)) ? value : rsm_end_turn(mrb, machine, value);
}

#endif
