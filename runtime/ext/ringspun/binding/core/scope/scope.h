/* scope: scopes as objects, and what needs them: deadlines, runs, joins, several strands together, errors that nobody reads. This
 * is what other rooms may use of it; what only core uses is in inner.h.
 *
 * Each file of this room calls only those before it here, and those of machine/ and strand/:
 *   open_scope time run unread join several scope spin */
#ifndef RINGSPUN_BINDING_CORE_SCOPE_H
#define RINGSPUN_BINDING_CORE_SCOPE_H

#include "binding/core/strand/strand.h"
#include "time.h"

extern VALUE rsb_cScope;

typedef struct rsb_scope {
    rs_scope engine;
    VALUE self;                 /* good while the scope is open: its owner's stack holds it */
    VALUE machine;
    VALUE first_error;
    VALUE suppressed;
    VALUE foreign;              /* the Cancelled that its block ended with although the scope was not cancelled, or nil */
    rs_scope_end end;
    VALUE deadline;             /* seconds, as it was asked for last */
    VALUE on_error;             /* called when a strand of it fails, or nil; of a run: called for errors that nobody joins */
    uint32_t fork_count;        /* as it was when the scope was opened */
    bool open;
    bool returned;              /* the block, normally */
    bool killed;
    bool nested;                /* of a Ringspun.run inside another: it only counts its strands */
} rsb_scope;

/* --- open_scope.c --- */

/* The scope, which is open, and its machine; else raises. */
rsb_scope *rsb_scope_get_open(VALUE self, rsb_machine **machine);

/* Keeps a fiber other than the strand's own alive, from when a scope of the strand lies on its stack until that is closed. */
void rsb_keep_fiber(rsb_strand *strand, VALUE fiber);
void rsb_let_fiber_go(rsb_strand *strand, VALUE fiber);

/* --- run.c --- */

/* The run to which what the running strand spins belongs: the innermost that it is in. Where that cannot be said, because its strand
 * is beside all runs, the outermost one. */
rs_scope *rsb_run_here(rsb_machine *machine);

/* --- unread.c --- */

/* An Array of the errors that nobody has read, for a caller that raises them: nobody will report them. */
VALUE rsb_unread_take_all(rsb_machine *machine);

/* --- join.c --- */

/* The value of a strand that has ended; raises its error. */
VALUE rsb_strand_result(rsb_machine *machine, rsb_strand *strand);

/* --- spin.c --- */

/* For Fiber.schedule: a strand in a fiber of its own, which has run until its first wait. Returns the fiber. */
VALUE rsb_strand_schedule(rsb_machine *machine, VALUE body);
/* The same in a fiber out of the pool, and the block is called even when the strand is cancelled; returns the strand. Not
 * `awaited`: it is in no scope, so no run waits for its end, and the caller must. */
VALUE rsb_strand_begin(rsb_machine *machine, bool awaited, VALUE body);

void rsb_init_open_scope(void);
void rsb_init_time(void);
void rsb_init_run(void);
void rsb_init_unread(void);
void rsb_init_join(void);
void rsb_init_several(void);
void rsb_init_scope(void);
void rsb_init_spin(void);

#endif
