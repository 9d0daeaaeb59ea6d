/* close: how a scheduler ends: its strands are waited for or cancelled, and a machine that was made for it is closed. */
#include "scheduler.h"

static ID id_set_scheduler, id_scheduler;

static bool is_root(const rsb_machine *machine) { return rs_is_root(machine->engine, rs_running(machine->engine)); }

static void wait_for_all(rsb_machine *machine) {
    rs_scope *scope = machine->outermost;
    while (scope->live > 0) {
        rs_wake_kind kind = rsb_wait(machine, RS_WAIT_SCOPE, 0, RS_NEVER, &scope->waiters, NULL, NULL);
        if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    }
}

/* Raises the errors of strands that nobody has joined. */
static void raise_unread(rsb_machine *machine) {
    VALUE errors = rsb_unread_take_all(machine), first = rb_ary_shift(errors);
    if (NIL_P(first)) return;
    if (RARRAY_LEN(errors) > 0) rsb_suppress(first, errors);
    rb_exc_raise(first);
}

/* Lets the strands run until all have ended. In a strand: lets the others run until those have ended that it has begun by
 * Fiber.schedule, and those that they have begun in turn; what they end with is reported as ever.
 *
 * May switch strands.
 *
 * @return [nil]
 * @raise [Exception] outside of all strands: the error of a strand that was not joined; {Ringspun.suppressed} lists the errors of
 *   others
 * @since 0.1.0
 */
static VALUE scheduler_run(VALUE self) {
    rsb_machine *machine = rsb_parking_machine(self, "run");
    if (!is_root(machine)) {
        rsb_scheduled_wait(machine);
        return Qnil;
    }
    wait_for_all(machine);
    raise_unread(machine);
    return Qnil;
}

/* Whether the thread that this closes for ends by an error, a kill or an exit. */
static VALUE scheduler_thread_fails_p(VALUE self) {
    return !NIL_P(rb_errinfo()) && rsb_called_by_nobody("scheduler_close") ? Qtrue : Qfalse;
}

/* Like #run for a thread that fails. Its own error goes on, and those of strands are reported. */
static VALUE cancel_all(VALUE self) {
    rsb_machine *machine = rsb_parking_machine(self, "scheduler_close");
    rs_scope_cancel(machine->engine, &machine->outside, RS_CANCELLED_BY_CALL);
    wait_for_all(machine);
    rs_scope_forgive(machine->engine, &machine->outside);
    rb_funcall(machine->self, rb_intern("report_unread_errors"), 0);
    return Qnil;
}

static VALUE close_machine(VALUE self) {
    rsb_scheduler *scheduler = rsb_scheduler_of(self);
    scheduler->closed = true;
    if (!scheduler->own || NIL_P(scheduler->machine)) return Qnil;
    rsb_machine *machine = rsb_machine_any_thread(scheduler->machine);
    bool usable = machine->open && rsb_existing() == machine && !rs_none_runs(machine->engine);
    if (usable && is_root(machine)) rb_funcall(machine->self, rb_intern("close"), 0);
    return Qnil;
}

/* Called at the end of the thread or program, or when another scheduler is set: calls {#run}, and closes the machine if it was
 * made for this scheduler. Where the thread ends by an error, a kill or an exit, the strands are cancelled first.
 *
 * May switch strands.
 *
 * @return [nil]
 * @raise (see #run)
 * @since 0.1.0
 */
static VALUE scheduler_scheduler_close(VALUE self) {
    rsb_scheduler *scheduler = rsb_scheduler_of(self);
    /* `closed` is not asked: a closed scheduler may have been set and used again. */
    if (scheduler->stays || NIL_P(scheduler->machine) || rsb_is_gone(rsb_machine_any_thread(scheduler->machine))) {
        scheduler->closed = true;
        return Qnil;
    }
    bool fails = RTEST(scheduler_thread_fails_p(self));
    return rb_ensure(fails ? cancel_all : scheduler_run, self, close_machine, self);
}

/* Closes the scheduler as `Fiber.set_scheduler(nil)` does.
 *
 * May switch strands.
 *
 * @return [nil]
 * @since 0.1.0
 */
static VALUE scheduler_close(VALUE self) {
    bool present = rb_funcall(rsb_fiber_class, id_scheduler, 0) == self;
    return present ? rb_funcall(rsb_fiber_class, id_set_scheduler, 1, Qnil) : scheduler_scheduler_close(self);
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE scheduler_closed_p(VALUE self) { return rsb_scheduler_of(self)->closed ? Qtrue : Qfalse; }

/* For Ringspun.run. */
static VALUE scheduler_stay(VALUE self) {
    rsb_scheduler_of(self)->stays = true;
    rsb_scheduler_bind(self);
    return self;
}

void rsb_init_scheduler_close(void) {
    id_set_scheduler = rb_intern("set_scheduler");
    id_scheduler = rb_intern("scheduler");
    rb_define_method(rsb_cScheduler, "run", scheduler_run, 0);
    rb_define_method(rsb_cScheduler, "scheduler_close", scheduler_scheduler_close, 0);
    rb_define_method(rsb_cScheduler, "close", scheduler_close, 0);
    rb_define_method(rsb_cScheduler, "closed?", scheduler_closed_p, 0);
    rb_define_private_method(rsb_cScheduler, "thread_fails?", scheduler_thread_fails_p, 0);
    rb_define_private_method(rsb_cScheduler, "stay", scheduler_stay, 0);
}
