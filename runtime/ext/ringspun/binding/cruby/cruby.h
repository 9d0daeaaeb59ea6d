/* cruby: what only some Rubies have, and what CRuby has but does not promise. The header for the rooms above. */
#ifndef RINGSPUN_BINDING_CRUBY_H
#define RINGSPUN_BINDING_CRUBY_H

#include "binding/binding.h"
#include "caller.h"
#include "has.h"
#include "unshared.h"

/* --- fiber_new.c --- */

/* Makes a Proc of a function, for rsb_fiber_new. It is never freed. Called while the extension is loaded. */
VALUE rsb_fiber_body(rb_block_call_func_t main);
VALUE rsb_fiber_new(VALUE body);

/* --- fiber_reset.c --- */

/* Makes the running fiber ready for its next strand. False: no other strand may use it, as when `usable` is false. */
bool rsb_fiber_reset(rsb_machine *machine, VALUE fiber, bool usable);
void rsb_fiber_set_storage(VALUE storage);
VALUE rsb_fiber_storage(void);
/* nil if it is empty, without a call of Ruby then. */
VALUE rsb_fiber_storage_if_any(void);

/* --- fiber_stacks.c --- */

void rsb_share_stacks(void);                     /* there is a second ractor from now on */
bool rsb_stacks_are_shared(void);
/* Held from the making of a runner until it runs, or cannot. */
void rsb_stacks_lock(rsb_machine *machine);
void rsb_stacks_unlock(rsb_machine *machine);

/* --- fiber_chain.c --- */

/* For the engine, which calls fibers stacks: the data of the running fiber, and of the fiber that resumed a fiber. NULL: not
 * known, or no fiber resumed it. */
const void *rsb_stack(rs_machine *engine);
const void *rsb_outer_stack(const void *fiber_data);
/* True if the running fiber is the first of its thread. It is the only one on the stack of the native thread. Not for Ruby
 * threads that move from one native thread to another. */
bool rsb_on_thread_stack(void);

void rsb_init_fiber_new(void);
void rsb_init_fiber_reset(void);
void rsb_init_fiber_chain(void);
void rsb_init_fiber_stacks(void);

#endif
