/* sync: Ringspun::Mutex, Semaphore, Condition, Barrier, Queue and SizedQueue. Each object owns its lists of strands that wait, and
 * belongs to the machine that used it first, until that is closed. Their rules are the engine's (engine/flow/). No other room uses
 * this one.
 */
#ifndef RINGSPUN_MRUBY_SYNC_H
#define RINGSPUN_MRUBY_SYNC_H

#include "../core/core.h"

/* --- object.c --- */

/* That object belongs to the machine that used it first, until that is closed: now perhaps to the current one, in `owner`. True: it
 * is new there, and whoever waited in it has gone. */
bool rsm_bind(mrb_state *mrb, mrb_value self, rsm_machine **owner);

/* The deadline of the running method, which takes `required` to `most` arguments and timeout:. The first that may be missing is
 * non_block. */
int64_t rsm_wait_arguments(mrb_state *mrb, rsm_machine *machine, mrb_int required, mrb_int most, bool *non_block);

/* A class of objects that cannot be copied, and whose data is made once, by their `initialize`. */
struct RClass *rsm_define_data(mrb_state *mrb, struct RClass *module, const char *name, struct RClass *super);
void rsm_refuse_again(mrb_state *mrb, mrb_value self);

void rsm_init_sync(mrb_state *mrb, struct RClass *module);
void rsm_init_queue(mrb_state *mrb, struct RClass *module);

#endif
