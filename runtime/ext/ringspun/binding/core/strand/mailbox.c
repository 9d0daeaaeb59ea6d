/* mailbox: what a strand or another thread sends to a strand: a value, an exception, or a termination. And what a thread sends to
 * a machine in order to end the call of a hook. */
#include "inner.h"

static ID id_alive_p, id_raise;

static bool has_messages(const rsb_strand *strand) { return !NIL_P(strand->messages) && RARRAY_LEN(strand->messages) > 0; }

/* Parks the calling strand until {#schedule} is called for it, and returns the value that was scheduled. Values that were
 * scheduled before are returned at once, in order.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Object]
 * @raise [TimeoutError] when nothing was scheduled in time
 * @since 0.1.0
 */
static VALUE machine_park(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    rsb_machine *machine = rsb_machine_of(self);
    rsb_strand *strand = rsb_running(machine);
    int64_t deadline_ns = rsb_deadline(machine, argc ? argv[0] : Qnil, "park");
    if (has_messages(strand)) {
        rsb_after_inline(machine);
        rsb_raise_wake(machine, rs_refusal(machine->engine, 0));
    } else {
        rs_wake_kind kind = rsb_wait(machine, RS_WAIT_SUSPEND, 0, deadline_ns, NULL, NULL, NULL);
        bool late = kind == RS_WAKE_TIMEOUT && has_messages(strand); /* it came after the timeout and before this strand's turn */
        if (kind != RS_WAKE_VALUE && !late) rsb_raise_wake(machine, kind);
    }
    return rb_ary_shift(strand->messages);
}

typedef enum { SCHEDULE_VALUE, SCHEDULE_EXCEPTION, TERMINATE, INTERRUPT_HOOK, RAISE_IN_CALL } message_purpose;

/* Receiver and payload are sent as one Array: while the message is under way nothing else may keep them alive. */
static void post(rsb_machine *machine, VALUE receiver, message_purpose purpose, VALUE payload) {
    VALUE pair = rb_assoc_new(receiver, payload);
    rs_message *message = rsb_alloc(sizeof(*message));
    *message = (rs_message){.kind = RS_MESSAGE_USER, .value = purpose, .payload = pair};
    rs_send(machine->engine, message);
    RB_GC_GUARD(pair);
}

static VALUE raise_in_call(RB_BLOCK_CALL_FUNC_ARGLIST(first, call_and_exception)) {
    VALUE call = RARRAY_AREF(call_and_exception, 0);
    if (RTEST(rb_funcall(call, id_alive_p, 0))) rb_funcall(call, id_raise, 1, RARRAY_AREF(call_and_exception, 1));
    return Qnil;
}

/* In a strand of its own, because `raise` switches to the fiber of the call. That strand runs next and not at once: CRuby walks a
 * list of such calls (rb_thread_io_close_interrupt in thread.c), which a switch could change. If no strand can be made now, the
 * message is posted again. */
static void begin_raise(rsb_machine *machine, VALUE call_and_exception) {
    VALUE object = rsb_strand_prepare(machine, rb_proc_new(raise_in_call, call_and_exception));
    rsb_strand *strand = rsb_strand_data(object);
    strand->ends_hook = true;
    if (!rsb_strand_begin_next(machine, strand)) post(machine, machine->self, RAISE_IN_CALL, call_and_exception);
    RB_GC_GUARD(object);
}

static void apply(rsb_machine *machine, rsb_strand *strand, message_purpose purpose, VALUE payload) {
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), strand->id);
    if (!engine) return;
    if (purpose == TERMINATE) {
        rs_scope_cancel(machine->engine, rs_strand_own(engine), RS_CANCELLED_BY_CALL);
    } else if (purpose == SCHEDULE_EXCEPTION) {
        rsb_deliver(machine, strand, payload);
    } else if (purpose == INTERRUPT_HOOK) {
        if (RARRAY_AREF(payload, 1) == UINT2NUM(strand->hooks_left)) rsb_interrupt_hook(machine, strand, RARRAY_AREF(payload, 0));
    } else {
        if (NIL_P(strand->messages)) strand->messages = rb_ary_new();
        rb_ary_push(strand->messages, payload);
        if (rs_strand_is(engine, RS_STRAND_PARKED) && rs_strand_wait(engine) == RS_WAIT_SUSPEND) {
            rs_wake(machine->engine, strand->id, rs_strand_ticket(engine), RS_WAKE_VALUE, 0);
        }
    }
}

static VALUE apply_message(VALUE argument) {
    const rs_message *message = (const rs_message *)argument;
    VALUE pair = (VALUE)message->payload;
    if (message->value == RAISE_IN_CALL) {
        begin_raise(rsb_machine_any_thread(RARRAY_AREF(pair, 0)), RARRAY_AREF(pair, 1));
        return Qnil;
    }
    rsb_strand *strand = rsb_strand_get(RARRAY_AREF(pair, 0));
    rsb_machine *machine = rsb_machine_any_thread(strand->machine);
    if (!strand->done) apply(machine, strand, (message_purpose)message->value, RARRAY_AREF(pair, 1));
    return Qnil;
}

/* Runs in the loop, which no exception may leave. Without memory the message is lost. */
static void on_message(rs_machine *engine, const rs_message *message) {
    int state = 0;
    rb_protect(apply_message, (VALUE)message, &state);
    if (state) rb_set_errinfo(Qnil);
}

static void apply_or_post(rsb_machine *machine, VALUE strand_object, message_purpose purpose, VALUE payload) {
    if (!machine->open) rb_raise(rsb_eClosed, "the strand's machine is closed; what it ran has ended");
    if (rsb_existing() == machine) {
        /* Not by rsb_machine_of: a signal handler may call this while the machine sleeps and no strand runs. */
        apply(machine, rsb_strand_get(strand_object), purpose, payload);
        return;
    }
    post(machine, strand_object, purpose, payload);
}

void rsb_send_hook_interrupt(rsb_machine *machine, rsb_strand *strand, VALUE exception) {
    apply_or_post(machine, strand->self, INTERRUPT_HOOK, rb_assoc_new(exception, UINT2NUM(strand->hooks_left)));
}

void rsb_send_call_interrupt(rsb_machine *machine, VALUE call, VALUE exception) {
    VALUE call_and_exception = rb_assoc_new(call, exception);
    if (rsb_existing() == machine) begin_raise(machine, call_and_exception);
    else post(machine, machine->self, RAISE_IN_CALL, call_and_exception);
}

static rsb_strand *target_of(rsb_machine *machine, VALUE object) {
    rsb_strand *strand = rsb_strand_get(object);
    if (strand->machine != machine->self) rb_raise(rsb_eUsage, "that strand runs on another machine; use its #machine");
    return strand;
}

/* Sends a value to a strand: its present or next {#park} returns it. An exception is raised in the strand instead, at its present
 * or next wait. May be called from any thread and from a signal handler; never waits.
 *
 * @param strand [Strand]
 * @param value [Object, Exception]
 * @return [Boolean] false when the strand has ended
 * @since 0.1.0
 */
static VALUE machine_schedule(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    rsb_machine *machine = rsb_machine_any_thread(self);
    rsb_strand *strand = target_of(machine, argv[0]);
    if (!rsb_is_alive(strand)) return Qfalse;
    VALUE value = argc == 2 ? argv[1] : Qnil;
    bool raises = rb_obj_is_kind_of(value, rb_eException);
    apply_or_post(machine, argv[0], raises ? SCHEDULE_EXCEPTION : SCHEDULE_VALUE, value);
    return Qtrue;
}

/* Cancels a strand: its present wait ends and every later one is refused, so that it unwinds through its ensure blocks.
 * Join it to wait for its end. May be called from any thread and from a signal handler; never waits.
 *
 * @param strand [Strand]
 * @return [Boolean] false when the strand has ended
 * @since 0.1.0
 */
static VALUE machine_terminate(VALUE self, VALUE object) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    rsb_strand *strand = target_of(machine, object);
    if (!rsb_is_alive(strand)) return Qfalse;
    apply_or_post(machine, object, TERMINATE, Qnil);
    return Qtrue;
}

void rsb_init_mailbox(void) {
    rsb_driver.on_message = on_message;
    id_alive_p = rb_intern("alive?");
    id_raise = rb_intern("raise");
    rb_define_method(rsb_cMachine, "park", machine_park, -1);
    rb_define_method(rsb_cMachine, "schedule", machine_schedule, -1);
    rb_define_method(rsb_cMachine, "terminate", machine_terminate, 1);
}
