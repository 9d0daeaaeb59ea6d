/* spin: begins strands in the run that their caller is in: later, or at once until their first wait. */
#include "inner.h"

/* Starts a strand: the block runs after the strands that are ready have had their turn. The strand belongs to the innermost
 * Ringspun.run that its caller is in, which waits for it. An error that nobody joins is reported a second after the strand's end, or
 * when the run ends (see {Ringspun.run}). If an error of one strand should cancel the others, use a scope.
 *
 * @return [Strand]
 * @raise [LimitError] when strands_max are alive already
 * @since 0.1.0
 */
static VALUE machine_spin(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    rsb_need_block("spin");
    rs_scope *run = rsb_run_here(machine);
    return rsb_strand_new(machine, run, rsb_supervisor_of_run(machine, run), rb_block_proc());
}

/* For libraries: a strand that serves strands of several runs, and so belongs to the outermost one. */
static VALUE machine_spin_shared(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    rsb_need_block("spin_shared");
    return rsb_strand_new(machine, rsb_outermost_run(machine), Qnil, rb_block_proc());
}

/* @return [Strand] the strand that runs
 * @since 0.1.0 */
static VALUE machine_running(VALUE self) { return rsb_strand_show(rsb_running(rsb_machine_of(self))); }

/* Makes a strand and runs it until its first wait: on that fiber, or if it is nil, on a runner. */
static VALUE run_at_once(rsb_machine *machine, rs_scope *scope, VALUE fiber, bool certain, VALUE body) {
    rs_strand *me = rs_running(machine->engine);
    rsb_strand *strand = rsb_strand_make(machine, scope ? rsb_supervisor_of_run(machine, scope) : Qnil, body);
    VALUE self = strand->self;
    strand->certain = certain;
    strand->fiber = fiber;
    strand->own_fiber = !NIL_P(fiber);
    rs_strand *engine = rsb_strand_spawned(machine, strand, rs_spawn_first(machine->engine, scope, strand));
    if (strand->own_fiber) rsb_scheduled_begins(rs_strand_user(me), strand);
    rsb_run_first(machine, me, engine);
    /* There was no stack for it, so it has not run at all: raises its error in the caller. */
    if (RS_UNLIKELY(!strand->started && strand->done)) rsb_strand_result(machine, strand);
    RB_GC_GUARD(self);
    return self;
}

VALUE rsb_strand_schedule(rsb_machine *machine, VALUE body) {
    VALUE fiber = rsb_own_fiber(machine);
    run_at_once(machine, rsb_run_here(machine), fiber, false, body);
    return fiber;
}

VALUE rsb_strand_begin(rsb_machine *machine, bool awaited, VALUE body) {
    return run_at_once(machine, awaited ? rsb_run_here(machine) : NULL, Qnil, true, body);
}

void rsb_init_spin(void) {
    rb_define_method(rsb_cMachine, "spin", machine_spin, 0);
    rb_define_method(rsb_cMachine, "running", machine_running, 0);
    rb_define_private_method(rsb_cMachine, "spin_shared", machine_spin_shared, 0);
}
