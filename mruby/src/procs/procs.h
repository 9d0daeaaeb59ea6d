/* procs: concurrent procs and evaluations. No other room calls this one: it registers what they need (core/part.h).
 *
 * The object of an evaluation owns what it points to. A run owns its strand's memory, which is used again for another run, and goes with
 * the machine (start.c). A call on the caller's own stack has no strand.
 */
#ifndef RINGSPUN_MRUBY_PROCS_H
#define RINGSPUN_MRUBY_PROCS_H

#include "../core/core.h"

/* --- evaluation.c --- */

mrb_value rsm_evaluation_of(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);
mrb_value rsm_evaluation_to_start(mrb_state *mrb, rsm_machine *machine, mrb_value proc);
void rsm_evaluation_begin(mrb_state *mrb, mrb_value self, rs_id strand);
bool rsm_is_concluded(mrb_state *mrb, mrb_value self);

/* Its run has ended like that, or never begins. What it is concluded to. */
mrb_value rsm_evaluation_ended(mrb_state *mrb, rsm_machine *machine, mrb_value self, mrb_value result);

/* Raises a result that is an exception. */
mrb_value rsm_raise_or_return(mrb_state *mrb, mrb_value result);

void rsm_init_evaluation(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_start(mrb_state *mrb, struct RClass *module, struct RClass *machine);

#endif
