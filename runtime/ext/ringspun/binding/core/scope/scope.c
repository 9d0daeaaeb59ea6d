/* scope: Ringspun::Scope, structured concurrency. How a scope ends is the engine's (core/scope_end.h). Of the errors of the block and
 * of the children the first is raised; later ones are its `suppressed`. */
#include "inner.h"

static ID option_names[3];

/* The first one is raised; but an exit, an interrupt or a signal ends the program, whatever has failed before. */
static void take_error(rsb_scope *scope, VALUE error) {
    VALUE first = scope->first_error, other = error;
    if (first == error) return;
    if (NIL_P(first) || (rsb_concerns_root(error) && !rsb_concerns_root(first))) {
        scope->first_error = error;
        other = first;
    }
    if (NIL_P(other)) return;
    if (NIL_P(scope->suppressed)) scope->suppressed = rb_ary_new();
    rb_ary_push(scope->suppressed, other);
}

static void child_ended(rsb_machine *machine, VALUE self, rsb_strand *child) {
    rsb_scope *scope = rsb_scope_data(self);
    if (scope->nested) return;
    bool failed = !NIL_P(child->error);
    bool reports = failed && !NIL_P(scope->on_error) && !rsb_concerns_root(child->error);
    if (reports) rsb_unread_report(machine, child->self, child->error, scope->on_error);
    bool is_ours = rs_scope_child_ended(machine->engine, &scope->engine, &scope->end, child->cancelled, failed);
    if (is_ours) take_error(scope, child->error);
    if (RS_UNLIKELY(failed && !is_ours && !reports)) rsb_unread_keep(machine, child, false, true);
}

/* Whether the program may have the strand's handle, and join it. It has none of a strand of Fiber.schedule. Outside of a run the
 * closing scheduler raises the error of such a strand. */
static bool is_held(const rsb_machine *machine, const rsb_strand *strand) {
    bool in_run = machine->outermost != &machine->outside;
    return !(strand->own_fiber && in_run);
}

static void strand_failed(rsb_machine *machine, rsb_strand *strand, rs_strand *engine) {
    if (!NIL_P(strand->supervisor) && !rsb_is_run(strand->supervisor)) return;
    if (rsb_concerns_root(strand->error) && rsb_root_of(machine)) rsb_raise_in_root(machine, strand->error);
    else if (rsb_is_reporter(machine, strand)) rsb_reporter_failed(machine);
    else {
        bool awaited = rs_strand_joiners(engine)->len > 0 || rsb_has_awaiters(strand);
        rsb_unread_keep(machine, strand, awaited, is_held(machine, strand));
    }
}

static void wait_for_children(rsb_machine *machine, rsb_scope *scope) {
    uint32_t flags;
    while (rs_scope_end_waits(&scope->engine, &scope->end, &flags)) {
        rs_wake_kind kind = rsb_wait(machine, RS_WAIT_SCOPE, flags, RS_NEVER, &scope->engine.waiters, NULL, NULL);
        rs_scope_end_waited(machine->engine, &scope->engine, &scope->end, kind);
    }
}

/* An exception raised for the owner counts as an error of its block. A kill stays pending until the scope is closed. */
static void take_interrupt(rsb_machine *machine, rsb_scope *scope) {
    rsb_strand *owner = rsb_running(machine);
    if (owner->kill_pending) {
        scope->killed = true;
        return;
    }
    rs_take_interrupt(rs_running(machine->engine));
    take_error(scope, rb_ary_shift(owner->raises));
}

static VALUE run_block(VALUE self) {
    VALUE value = rb_yield(self);
    rsb_scope_data(self)->returned = true;
    return value;
}

/* The block did not return normally. */
static void block_failed(rsb_machine *machine, rsb_scope *scope) {
    VALUE error = rb_errinfo();
    bool raised = rsb_is_exception(error), cancelled = raised && rb_obj_is_kind_of(error, rsb_eCancelled);
    if (raised && !cancelled) take_error(scope, error);
    rs_block_end how = cancelled ? RS_BLOCK_CANCELLED : RS_BLOCK_FAILED;
    rs_scope_block_ended(machine->engine, &scope->engine, &scope->end, how);
    if (scope->end.foreign) scope->foreign = error;
}

static VALUE settle_children(VALUE self) {
    rsb_scope *scope = rsb_scope_data(self);
    rsb_machine *machine = rsb_machine_any_thread(scope->machine);
    if (RS_UNLIKELY(rsb_forks != machine->fork_count)) rsb_after_fork(machine);
    if (!scope->returned) block_failed(machine, scope);
    wait_for_children(machine, scope);
    if (scope->end.interrupted == RS_WAKE_INTERRUPT) take_interrupt(machine, scope);
    return Qnil;
}

/* Runs in an ensure, because a `break` or `throw` through here must keep its destination while strands are switched. The scope is
 * closed in any case, because its memory may be freed: if the stack is too deep to wait for the children, they are cancelled and
 * the scope above owns them. */
static VALUE settle(VALUE self) {
    rsb_scope *scope = rsb_scope_data(self);
    rsb_machine *machine = rsb_machine_any_thread(scope->machine);
    int state = 0;
    rb_protect(settle_children, self, &state);
    if (RS_UNLIKELY(state)) {
        VALUE error = rb_errinfo();
        if (rsb_is_exception(error) && NIL_P(scope->first_error)) scope->first_error = error;
        rs_scope_cancel(machine->engine, &scope->engine, RS_CANCELLED_BY_CALL);
    }
    rs_scope_closes(&scope->engine, &scope->end);
    rsb_scope_close(machine, &scope->engine);
    scope->open = false;
    return Qnil;
}

static VALUE guarded(VALUE self) { return rb_ensure(run_block, self, settle, self); }

NORETURN(static void raise_first_error(rsb_scope *scope));
static void raise_first_error(rsb_scope *scope) {
    if (!NIL_P(scope->suppressed)) rsb_suppress(scope->first_error, scope->suppressed);
    rb_exc_raise(scope->first_error);
}

static VALUE outcome(rsb_machine *machine, rsb_scope *scope, VALUE value, int state) {
    if (scope->killed) rsb_raise_wake(machine, RS_WAKE_INTERRUPT);
    bool leaves = state && !rsb_is_exception(rb_errinfo());
    if (leaves && (NIL_P(scope->first_error) || RB_FIXNUM_P(rb_errinfo()))) rb_jump_tag(state);
    if (state) rb_set_errinfo(Qnil);
    switch (rs_scope_ends_by(&scope->engine, &scope->end, !NIL_P(scope->first_error))) {
    case RS_ENDS_BY_ERROR: raise_first_error(scope);
    case RS_ENDS_BY_FOREIGN: rb_exc_raise(scope->foreign);
    case RS_ENDS_BY_DEADLINE: rb_raise(rsb_eTimeout, "the scope's deadline (%" PRIsVALUE " s) has passed", scope->deadline);
    case RS_ENDS_BY_ABOVE:
        rsb_raise_wake(machine, RS_WAKE_CANCEL);
        return Qnil;
    case RS_ENDS_CANCELLED: return Qnil;
    default: return value;
    }
}

/* Runs the block in a scope. All strands spun into the scope have ended when this returns. The first error, of the block or of a
 * strand, cancels the rest and is raised; {Ringspun.suppressed} lists the others.
 *
 * May switch strands.
 *
 * @param deadline [Numeric, nil] seconds from now; then everything inside is cancelled; nil: none
 * @param shield [Boolean] cancellations from outside take effect only after the scope has ended
 * @param on_error [#call, nil] called with the error and the strand as soon as a strand of this scope fails, before the others
 *   have unwound; the scope raises the error all the same. An error of the call itself is reported by a warning
 * @yieldparam scope [Scope]
 * @return [Object] the block's value; nil when {Scope#cancel} has cancelled the block
 * @raise [TimeoutError] when the deadline has cancelled the block or a strand
 * @since 0.1.0
 */
static VALUE machine_scope(int argc, VALUE *argv, VALUE self) {
    VALUE options, given[3] = {Qundef, Qundef, Qundef};
    rb_scan_args(argc, argv, "0:", &options);
    if (!NIL_P(options)) rsb_options(options, 3, option_names, given);
    rsb_need_block("scope");
    VALUE on_error = given[2] == Qundef ? Qnil : given[2];
    if (!NIL_P(on_error)) rb_funcall(self, rb_intern("check_on_error"), 1, on_error);
    rsb_machine *machine = rsb_machine_of(self);
    VALUE deadline = given[0] == Qundef ? Qnil : given[0];
    int64_t deadline_ns = rsb_deadline(machine, deadline, "deadline");
    rsb_scope *scope;
    VALUE object = rsb_scope_new(&scope);
    scope->machine = self;
    scope->first_error = scope->suppressed = scope->foreign = Qnil;
    scope->deadline = rsb_number_of_seconds(deadline);
    scope->on_error = on_error;
    scope->fork_count = rsb_forks;
    rsb_scope_open(machine, &scope->engine, deadline_ns, given[1] != Qundef && RTEST(given[1]));
    scope->open = true;
    int state = 0;
    VALUE value = rb_protect(guarded, object, &state);
    value = outcome(machine, scope, value, state);
    rsb_raise_pending(machine);
    RB_GC_GUARD(object);
    return value;
}

/* Starts a strand that belongs to this scope.
 *
 * @return [Strand]
 * @raise [ClosedError] when the scope has ended
 * @since 0.1.0 */
static VALUE scope_spin(VALUE self) {
    rsb_machine *machine;
    rsb_scope *scope = rsb_scope_get_open(self, &machine);
    rsb_need_block("Scope#spin");
    return rsb_strand_new(machine, &scope->engine, self, rb_block_proc());
}

/* Cancels the block and all strands of the scope: their waits end, and later waits are refused until the scope has ended.
 *
 * @return [nil]
 * @since 0.1.0 */
static VALUE scope_cancel(VALUE self) {
    rsb_scope *scope = rsb_scope_data(self);
    bool here = scope->fork_count == rsb_forks;
    if (!scope->open || (scope->engine.closed && here)) return Qnil;
    rsb_machine *machine = rsb_machine_any_thread(scope->machine);
    if (rsb_existing() != machine) {
        rb_raise(rsb_eWrongThread, "a scope is cancelled by its own thread; from another use Machine#terminate with a strand of "
                 "it");
    }
    if (RS_UNLIKELY(!here)) rsb_scope_get_open(self, &machine);
    rs_scope_cancel(machine->engine, &scope->engine, RS_CANCELLED_BY_CALL);
    return Qnil;
}

/* Sets the deadline anew.
 *
 * @param seconds [Numeric, nil] seconds from now; nil: no deadline
 * @raise [UsageError] when it has passed already
 * @since 0.1.0 */
static VALUE scope_set_deadline(VALUE self, VALUE seconds) {
    rsb_machine *machine;
    rsb_scope *scope = rsb_scope_get_open(self, &machine);
    if (scope->engine.cause == RS_CANCELLED_BY_DEADLINE) {
        rb_raise(rsb_eUsage, "the deadline has passed; it cannot be moved any more");
    }
    rs_scope_set_deadline(machine->engine, &scope->engine, rsb_deadline(machine, seconds, "deadline"));
    scope->deadline = rsb_number_of_seconds(seconds);
    return seconds;
}

/* Moves the deadline by that many seconds, to a later time.
 *
 * @param seconds [Numeric]
 * @return [nil]
 * @raise [UsageError] when there is none, or it has passed already
 * @since 0.1.0 */
static VALUE scope_extend(VALUE self, VALUE seconds) {
    rsb_machine *machine;
    rsb_scope *scope = rsb_scope_get_open(self, &machine);
    if (scope->engine.deadline_ns == RS_NEVER) rb_raise(rsb_eUsage, "this scope has no deadline to extend; set #deadline=");
    if (scope->engine.cause == RS_CANCELLED_BY_DEADLINE) {
        rb_raise(rsb_eUsage, "the deadline has passed; it cannot be extended any more");
    }
    int64_t later_ns = rs_deadline_after(scope->engine.deadline_ns, rsb_span_to_ns(seconds, "extend_deadline"));
    rs_scope_set_deadline(machine->engine, &scope->engine, later_ns);
    scope->deadline = rb_funcall(scope->deadline, '+', 1, rsb_number_of_seconds(seconds));
    return Qnil;
}

/* The time until the deadline.
 *
 * @return [Float, nil] seconds, 0.0 when it has passed; nil: there is no deadline
 * @since 0.1.0 */
static VALUE scope_remaining(VALUE self) {
    rsb_machine *machine;
    rsb_scope *scope = rsb_scope_get_open(self, &machine);
    if (scope->engine.deadline_ns == RS_NEVER) return Qnil;
    int64_t left_ns = scope->engine.deadline_ns - rs_now(machine->engine);
    return rsb_seconds(left_ns > 0 ? left_ns : 0);
}

/* @return [Boolean] true once the scope was cancelled: by {#cancel}, an error, its deadline, or from outside
 * @since 0.1.0 */
static VALUE scope_cancelled_p(VALUE self) {
    const rs_scope *scope = &rsb_scope_data(self)->engine;
    return scope->effective || scope->cause ? Qtrue : Qfalse;
}

/* @return [Integer] how many of its strands have not ended
 * @since 0.1.0 */
static VALUE scope_size(VALUE self) {
    rsb_scope *scope = rsb_scope_data(self);
    rsb_notice_fork(rsb_machine_any_thread(scope->machine));
    return scope->open ? UINT2NUM(scope->engine.live) : INT2FIX(0);
}

void rsb_init_scope(void) {
    option_names[0] = rb_intern("deadline");
    option_names[1] = rb_intern("shield");
    option_names[2] = rb_intern("on_error");
    rsb_supervision = (rsb_supervisors){.failed = strand_failed, .child_ended = child_ended};
    rb_define_method(rsb_cMachine, "scope", machine_scope, -1);
    rb_define_method(rsb_cScope, "spin", scope_spin, 0);
    rb_define_method(rsb_cScope, "cancel", scope_cancel, 0);
    rb_define_method(rsb_cScope, "deadline=", scope_set_deadline, 1);
    rb_define_method(rsb_cScope, "extend_deadline", scope_extend, 1);
    rb_define_method(rsb_cScope, "remaining", scope_remaining, 0);
    rb_define_method(rsb_cScope, "cancelled?", scope_cancelled_p, 0);
    rb_define_method(rsb_cScope, "size", scope_size, 0);
}
