/* cruby: what one Ruby has and another has not, and what none of them promises. What other rooms may use of this one. */
#ifndef RINGSPUN_BINDING_CRUBY_H
#define RINGSPUN_BINDING_CRUBY_H

#include "binding/binding.h"
#include "caller.h"
#include "has.h"
#include "unshared.h"

/* --- fiber_new.c --- */

/* Makes of a function what rsb_fiber_new takes, for ever; at the start, before there is a second thread that counts. */
VALUE rsb_fiber_body(rb_block_call_func_t main);
VALUE rsb_fiber_new(VALUE body);

/* --- fiber_reset.c --- */

/* Of the running fiber; false: it must not be used again. */
bool rsb_fiber_reset(rsb_machine *machine, VALUE fiber, bool usable);
void rsb_fiber_set_storage(VALUE storage);
VALUE rsb_fiber_storage(void);
/* nil where there is none, and cheap then. */
VALUE rsb_fiber_storage_if_any(void);

/* --- fiber_stacks.c --- */

void rsb_share_stacks(void);                     /* with other ractors, from now on */
bool rsb_stacks_are_shared(void);
/* From when a runner is made until it runs, or cannot. */
void rsb_stacks_lock(rsb_machine *machine);
void rsb_stacks_unlock(rsb_machine *machine);
void rsb_stacks_forked(void);

/* --- fiber_chain.c --- */

/* For the engine: the data of the running fiber, and of the one that resumed a fiber; NULL where that is not known, or
 * nobody did. */
const void *rsb_stack(rs_machine *engine);
const void *rsb_outer_stack(const void *fiber_data);
/* Whether the fiber that runs is the first of its thread: those of the program have stacks of their own. Not for threads that
 * move. */
bool rsb_on_thread_stack(void);

void rsb_init_fiber_new(void);
void rsb_init_fiber_reset(void);
void rsb_init_fiber_chain(void);
void rsb_init_fiber_stacks(void);

#endif
