/* inner: what the rooms of core share of this one, and no room above core uses. */
#ifndef RINGSPUN_BINDING_CORE_STRAND_INNER_H
#define RINGSPUN_BINDING_CORE_STRAND_INNER_H

#include "binding/core/machine/inner.h"
#include "strand.h"

/* A scope whose deadline raises that error (class or exception, message) once, at a wait of its owner. */
typedef struct {
    rs_scope engine;
    const VALUE *raises;
} rsb_once;

/* --- raise.c --- */

void rsb_deliver(rsb_machine *machine, rsb_strand *strand, VALUE exception);
/* Raises the exception in the scheduler hook that the strand is in, at its present wait or the next. It is forgotten if the
 * strand leaves the hook before (rsb_leave_hook). */
void rsb_interrupt_hook(rsb_machine *machine, rsb_strand *strand, VALUE exception);
/* True when a strand has caught a Thread#kill and ends without another wait: its fiber must end with that kill. */
bool rsb_kill_is_left(rsb_machine *machine, rsb_strand *strand, int *state);
void rsb_deliver_kill(rsb_machine *machine, rsb_strand *strand, VALUE info, int state);
void rsb_kill_repeated(rsb_strand *strand, int state);

rsb_strand *rsb_root_of(rsb_machine *machine);

/* The loop has caught an interrupt of the thread. It is raised in the root, or where only this fiber can raise it, in `here`
 * (NULL: in a runner; then this does not return). */
void rsb_caught_in_loop(rsb_machine *machine, rs_strand *here, int state);

/* --- strand.c --- */

/* What becomes of strands that end. scope.c puts it in when the extension is loaded. */
typedef struct {
    /* The strand is about to end with its `error`, which is no cancellation. */
    void (*failed)(rsb_machine *machine, rsb_strand *strand, rs_strand *engine);
    /* A strand that has a supervisor has ended. */
    void (*child_ended)(rsb_machine *machine, VALUE supervisor, rsb_strand *strand);
} rsb_supervisors;

extern rsb_supervisors rsb_supervision;

VALUE rsb_strand_new(rsb_machine *machine, rs_scope *scope, VALUE supervisor, VALUE body);
/* The same in two steps. The second raises where the engine has refused to spawn it (NULL). */
rsb_strand *rsb_strand_make(rsb_machine *machine, VALUE supervisor, VALUE body);
rs_strand *rsb_strand_spawned(rsb_machine *machine, rsb_strand *strand, rs_strand *engine);
VALUE rsb_strand_show(rsb_strand *strand);
/* A strand of the binding's own, which rsb_strand_begin_next starts later. That answers false at the limit of strands. */
VALUE rsb_strand_prepare(rsb_machine *machine, VALUE body);
bool rsb_strand_begin_next(rsb_machine *machine, rsb_strand *strand);
/* Runs a NEW strand on this fiber to its end. False: the fiber must not be used again. */
bool rsb_strand_run(rsb_machine *machine, rs_strand *strand, VALUE fiber);
void rsb_strand_fail(rsb_machine *machine, rs_strand *strand, VALUE error);
VALUE rsb_strand_root(rsb_machine *machine, const rs_strand *strand);
static inline bool rsb_strand_failed(const rsb_strand *strand) { return !NIL_P(strand->error) || strand->cancelled; }

/* --- idle.c --- */

void rsb_share_gvl(rsb_machine *machine);       /* for machines of the main ractor, before they sleep */
/* No strand is ready: sleeps, or ends a deadlock. */
void rsb_without_strand(rsb_machine *machine, rs_strand *here, rs_decision decision);

/* --- switch.c --- */

/* A new fiber for a strand that begins at once. */
VALUE rsb_own_fiber(rsb_machine *machine);

#endif
