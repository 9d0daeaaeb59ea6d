/* inner: what the files of core share, and no other room uses. */
#ifndef RINGSPUN_BINDING_CORE_INNER_H
#define RINGSPUN_BINDING_CORE_INNER_H

#include "core.h"
#include "runners.h"

/* A scope whose deadline raises that (class or exception, message) once, at its owner's wait. */
typedef struct {
    rs_scope engine;
    const VALUE *raises;
} rsb_once;

/* --- options.c --- */

void rsb_open_engine(rsb_machine *machine, VALUE options);
/* Says which system call it was. */
NORETURN(void rsb_fail_to_open(rsb_machine *machine, int error, const char *what));

/* --- switch.c --- */

/* For a strand that begins at once. */
VALUE rsb_own_fiber(rsb_machine *machine);

/* --- raise.c --- */

/* What was raised for the thread, and had to wait for the end of a shield or of a run. */
void rsb_raise_pending(rsb_machine *machine);
void rsb_deliver(rsb_machine *machine, rsb_strand *strand, VALUE exception);
/* Ends the hook that the strand is in by that exception, at the wait in it, the present one or the next. One that comes too late
 * for that hook is forgotten: a strand that leaves one says so. */
void rsb_interrupt_hook(rsb_machine *machine, rsb_strand *strand, VALUE exception);
/* True when a strand has caught a Thread#kill and ends without another wait: its fiber must end with that kill. */
bool rsb_kill_is_left(rsb_machine *machine, rsb_strand *strand, int *state);
void rsb_deliver_kill(rsb_machine *machine, rsb_strand *strand, VALUE info, int state);

rsb_strand *rsb_root_of(rsb_machine *machine);

/* Something was raised in the loop by nobody's wish here: for the root, or where it cannot be raised anywhere else, for `here`
 * (NULL: a runner, which does not come back from this then). */
void rsb_caught_in_loop(rsb_machine *machine, rs_strand *here, int state);

/* --- mailbox.c --- */

void rsb_on_message(rs_machine *engine, const rs_message *message);

/* --- strand.c --- */

VALUE rsb_strand_new(rsb_machine *machine, rs_scope *scope, VALUE supervisor, VALUE body);
VALUE rsb_strand_show(rsb_strand *strand);
/* A strand of the binding's own that begins later. The second answers false when there can be none then. */
VALUE rsb_strand_prepare(rsb_machine *machine, VALUE body);
bool rsb_strand_begin_next(rsb_machine *machine, rsb_strand *strand);
/* An error that ends the program, and not just a strand. */
bool rsb_concerns_root(VALUE error);
/* Runs a NEW strand on this fiber to its end. False: the fiber must not be used again. */
bool rsb_strand_run(rsb_machine *machine, rs_strand *strand, VALUE fiber);
void rsb_strand_fail(rsb_machine *machine, rs_strand *strand, VALUE error);
VALUE rsb_strand_root(rsb_machine *machine, const rs_strand *strand);
void rsb_strand_wait(rsb_machine *machine, rsb_strand *strand);

/* --- unread.c --- */

/* An error that the strand ends with and nobody has read. `awaited`: somebody waits, but may not come to read it. `held`: the
 * program may have its handle, and join it. */
void rsb_unread_keep(rsb_machine *machine, rsb_strand *strand, bool awaited, bool held);
/* Told at once, for a scope's `on_error:`. */
void rsb_unread_tell(rsb_machine *machine, VALUE strand, VALUE error, VALUE handler);
void rsb_unread_read(rsb_machine *machine, VALUE strand);
/* The engine's reminder has fired: some errors may be due to be reported. */
void rsb_unread_due(rs_machine *engine);
void rsb_unread_forked(rsb_machine *machine);
bool rsb_has_unread(const rsb_machine *machine);
/* Whether it is the strand that reports errors. Nobody can join it to read its own. */
bool rsb_is_teller(const rsb_machine *machine, const rsb_strand *strand);
void rsb_teller_failed(rsb_machine *machine);
/* All of them, at an end; and those of machines of this ractor whose threads have ended, or at the program's end, of all of
 * them. */
void rsb_report_unread(rsb_machine *machine);
void rsb_report_all_unread(bool all);

/* --- idle.c --- */

bool rsb_others_may_wake(rs_machine *engine);
void rsb_on_deadlock(rs_machine *engine, rs_strand *root);
/* Nothing is ready: sleeps, or ends a deadlock. */
void rsb_without_strand(rsb_machine *machine, rs_strand *here, rs_decision decision);

/* --- scope.c --- */

/* False: there is an error, and the scope has ended before it. */
bool rsb_scope_child_ended(rsb_machine *machine, VALUE scope, const rsb_strand *child);

/* A scope whose memory may lie on the stack of the fiber that runs: that fiber is kept until it is closed. */
void rsb_scope_open(rsb_machine *machine, rs_scope *scope, int64_t deadline_ns, bool shield);
void rsb_scope_close(rsb_machine *machine, rs_scope *scope);

/* --- limits.c --- */

/* In words, which one keeps a fiber's stack from being made; may raise. */
VALUE rsb_stack_limit(void);

/* --- simulation.c --- */

uint64_t rsb_seed(VALUE seed);
void rsb_simulation_options(VALUE options, rs_options *chosen, struct rs_sim_faults *faults);

#endif
