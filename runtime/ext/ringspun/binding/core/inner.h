/* inner: what the files of core share, and no other room uses. */
#ifndef RINGSPUN_BINDING_CORE_INNER_H
#define RINGSPUN_BINDING_CORE_INNER_H

#include "core.h"
#include "runners.h"

/* A scope whose deadline raises that error (class or exception, message) once, at a wait of its owner. */
typedef struct {
    rs_scope engine;
    const VALUE *raises;
} rsb_once;

/* --- machine.c --- */

extern ID rsb_id_machine; /* the instance variable of a thread that has its machine */
void rsb_set_existing(rsb_machine *machine, VALUE thread);
/* No other thread may wake the machine from now on. True if none is about to do so. */
bool rsb_close_to_wakers(rsb_machine *machine);

/* --- options.c --- */

extern bool rsb_whole_ticks; /* machines run in whole ticks (rs_machine_run_in_whole_ticks) */
void rsb_open_engine(rsb_machine *machine, VALUE options);
/* `what` names the system call that failed. */
NORETURN(void rsb_fail_to_open(rsb_machine *machine, int error, const char *what));

/* --- errors.c --- */

/* An error that ends the program and not only the strand. */
bool rsb_concerns_root(VALUE error);

/* --- pinned.c --- */

/* The machine's thread has ended, or the machine is closed: it stays for as long as its ops use memory of objects. Calls nothing
 * of Ruby's. */
void rsb_pin_if_used(rsb_machine *machine);
void rsb_unpin(rsb_machine *machine);

/* --- switch.c --- */

/* A new fiber for a strand that begins at once. */
VALUE rsb_own_fiber(rsb_machine *machine);

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
    void (*failed)(rsb_machine *machine, rsb_strand *strand, const rs_strand *engine);
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

/* --- join.c --- */

/* Waits for the end of that strand, which has not ended yet. Something else may wake the caller before. */
void rsb_strand_wait_once(rsb_machine *machine, rsb_strand *strand);
/* Its value; raises what it has ended with (rsb_raise_result). */
VALUE rsb_strand_awaited(rsb_machine *machine, rsb_strand *strand);

/* --- several.c --- */

bool rsb_has_awaiters(const rsb_strand *strand);

/* --- unread.c --- */

void rsb_unread_open(rsb_machine *machine);
/* The strand ended with an error that nobody has read. `awaited`: another strand waits for it, but may end before it reads the
 * error. `held`: the program may have its handle, and join it. */
void rsb_unread_keep(rsb_machine *machine, rsb_strand *strand, bool awaited, bool held);
/* Reports an error at once, to a scope's `on_error:`. */
void rsb_unread_report(rsb_machine *machine, VALUE strand, VALUE error, VALUE handler);
void rsb_unread_read(rsb_machine *machine, VALUE strand);
bool rsb_has_unread(const rsb_machine *machine);
/* Whether it is the strand that reports errors. Nobody can join it to read its own; another strand goes on in its place. */
bool rsb_is_reporter(const rsb_machine *machine, const rsb_strand *strand);
void rsb_reporter_failed(rsb_machine *machine);
/* Reports all unread errors of a machine that ends; and those of this ractor's machines whose threads have ended (`all`: of all
 * its machines, at the program's end). Then raises what an `on_error:` has raised that is no StandardError, as by exit. */
VALUE rsb_report_unread(VALUE machine);
void rsb_report_all_unread(bool all);

/* --- idle.c --- */

void rsb_share_gvl(rsb_machine *machine);       /* for machines of the main ractor, before they sleep */
/* No strand is ready: sleeps, or ends a deadlock. */
void rsb_without_strand(rsb_machine *machine, rs_strand *here, rs_decision decision);

/* --- run.c --- */

static inline rs_scope *rsb_outermost_run(rsb_machine *machine) {
    return RS_UNLIKELY(machine->outermost->closed) ? &machine->outside : machine->outermost; /* closed: it is ending */
}

/* The supervisor of strands in that run: the scope of a run inside another, else nil. It is not told of their errors. */
VALUE rsb_supervisor_of_run(const rsb_machine *machine, const rs_scope *run);
/* Whether that supervisor is such a run; and its `on_error:`, or nil. */
bool rsb_is_run(VALUE scope);
VALUE rsb_run_on_error(VALUE scope);

/* --- open_scope.c --- */

rsb_scope *rsb_scope_data(VALUE self);
VALUE rsb_scope_new(rsb_scope **scope);

/* The scope may lie on the stack of the running fiber, which is kept alive until the scope is closed. */
void rsb_scope_open(rsb_machine *machine, rs_scope *scope, int64_t deadline_ns, bool shield);
void rsb_scope_close(rsb_machine *machine, rs_scope *scope);

/* --- limits.c --- */

/* Names the limit that keeps CRuby from making a stack for a fiber; may raise. */
VALUE rsb_stack_limit(void);

/* --- faults.c --- */

uint64_t rsb_seed(VALUE seed);
void rsb_simulation_options(VALUE options, rs_options *chosen, struct rs_sim_faults *faults);

#endif
