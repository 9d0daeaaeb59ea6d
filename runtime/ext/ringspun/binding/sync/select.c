/* select: waiting in a selector, and Ringspun.select, which makes one for a single wait. */
#include "binding/stream/stream.h"
#include "selector.h"

#include <errno.h>

/* True: the descriptor is ready. False: an op waits for it. */
static bool look_at_descriptor(rsb_machine *machine, rsb_branch *b, int fd) {
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = rsb_branch_events(b)};
    int64_t result = rs_watch_take_result(&b->watch);
    /* The op's result may be old: what was there may have been read since. So the descriptor is polled again, unless the backend
     * cannot do that without an op. An error is believed: a descriptor that is being closed still polls as open, but takes no
     * op. */
    bool refused = result < 0 && result != -ECANCELED;
    if (result == 0 || (rs_tries_first(&machine->engine) && !refused)) result = rs_try(&machine->engine, &request);
    if (result < 0 && result != -EAGAIN && result != -ECANCELED) rsb_fail(result, "select", fd);
    if (result > 0) return true;
    rs_watch_idle(&b->watch);
    if (rs_watch_arm(&b->watch, fd, rsb_branch_events(b))) return false;
    rb_raise(rsb_eLimit, "select: %u descriptors are waited for already", RS_WATCH_OPS_MAX);
}

static int fd_of(rsb_machine *machine, const rsb_branch *b) {
    int fd = rsb_io_fd(machine, b->source);
    if (RB_INTEGER_TYPE_P(b->source)) rsb_check_descriptor(machine, b->source, fd, b->generation, "select");
    return fd;
}

static bool has_bytes(const rsb_branch *b) {
    if (b->kind != READABLE || !RB_TYPE_P(b->source, T_FILE)) return false;
    rb_io_t *file;
    GetOpenFile(b->source, file);
    return rb_io_read_pending(file);
}

/* True: this branch wins, and *value is the argument for its block. */
static bool look(rsb_machine *machine, rsb_branch *b, VALUE *value) {
    int fd = -1;
    *value = b->source;
    switch (b->kind) {
    case POP: return rsb_queue_take(b->source, value);
    case PUSH: return rsb_queue_put(b->source, b->item);
    case POP_CHANNEL: return rsb_channel_take(&b->watch, value);
    case PUSH_CHANNEL: return rsb_channel_put(&b->watch, b->item);
    case ACQUIRE: return rsb_semaphore_take(b->source);
    case RESULT: return b->result->look(b->source, value);
    case STREAM: return rsb_stream_look(b->source, &fd) || look_at_descriptor(machine, b, fd);
    default:
        fd = fd_of(machine, b);
        return has_bytes(b) || look_at_descriptor(machine, b, fd);
    }
}

typedef enum { WON, TIMED_OUT, NOTHING } outcome;

typedef struct {
    rsb_machine *machine;
    rsb_selector *s;
    int64_t deadline_ns;
    bool never_waits;
    outcome outcome;
    rsb_branch_kind kind;
    VALUE source, value, block;
} wait_call;

static bool win(wait_call *call, const rsb_branch *b, VALUE value) {
    call->outcome = WON;
    call->kind = b->kind;
    call->source = b->source;
    call->block = b->block;
    call->value = value;
    return true;
}

static bool look_at_ready(wait_call *call) {
    rsb_selector *s = call->s;
    VALUE value = Qnil;
    for (rs_watch *watch; (watch = rs_selector_next(&s->engine));) {
        rsb_branch *b = (rsb_branch *)watch;
        if (look(call->machine, b, &value)) return win(call, b, value);
        if (b->kind < STREAM) rs_watch_idle(watch); /* look_at_descriptor does that for the others, before it starts an op */
    }
    return false;
}

/* True: another strand has given this one an item, a place or a permit when it woke it. */
static bool take_served(wait_call *call) {
    rsb_selector *s = call->s;
    rsb_branch *b = (rsb_branch *)rs_selector_take_served(&s->engine);
    if (!b) return false;
    VALUE handed = (VALUE)rs_strand_take_hand(rs_running(&call->machine->engine));
    VALUE value = b->kind == POP ? handed : b->source;
    win(call, b, value);
    free(s->left);
    s->left = NULL;
    return true;
}

/* One of its sources may be a channel. */
static const rsb_list_kind for_first = {.what = "the first of a select", .for_ractors = true};

/* If the backend polls nothing without an op, a wait with a deadline of now lets the ops complete. */
static bool must_park_to_look(const wait_call *call) {
    return call->machine->engine.unawaited > 0 && !rs_tries_first(&call->machine->engine);
}

static VALUE wait_for_one(VALUE argument) {
    wait_call *call = (wait_call *)argument;
    rsb_selector *s = call->s;
    bool last = false;
    for (;;) {
        if (look_at_ready(call)) return Qnil;
        if (last || (call->never_waits && !must_park_to_look(call))) break;
        int64_t deadline_ns = call->never_waits ? rs_now(&call->machine->engine) : call->deadline_ns;
        rs_wake_kind kind = rsb_wait(call->machine, RS_WAIT_LIST, 0, deadline_ns, &s->engine.waiters, &for_first, NULL);
        if (take_served(call)) return Qnil;
        if (kind == RS_WAKE_TIMEOUT) last = true; /* look once more: a source may have become ready at the same time */
        else if (kind != RS_WAKE_VALUE) rsb_raise_wake(call->machine, kind);
        if (s->closed) rb_raise(rsb_eClosed, "the selector was closed meanwhile");
    }
    call->outcome = call->never_waits ? NOTHING : TIMED_OUT;
    return Qnil;
}

static VALUE end_wait(VALUE argument) {
    ((wait_call *)argument)->s->waiting = RS_NO_ID;
    return Qnil;
}

static void wait_in(wait_call *call, int64_t timeout_ns) {
    rsb_selector *s = call->s;
    rs_machine *engine = &call->machine->engine;
    rsb_before_look(call->machine); /* first: other strands may close the selector */
    if (s->closed) rb_raise(rsb_eClosed, "the selector is closed");
    if (s->waiting && rs_strand_find(&engine->strands, s->waiting)) {
        rb_raise(rsb_eUsage, "another strand waits in this selector already; let each have its own");
    }
    if (s->len == 0 && s->after_ns == RS_NEVER && !s->never_waits) {
        rb_raise(rsb_eUsage, "select: there is nothing to wait for; give it a source, or `after`");
    }
    int64_t delay_ns = s->after_ns < timeout_ns ? s->after_ns : timeout_ns;
    call->never_waits |= s->never_waits;
    call->deadline_ns = rsb_deadline_after(call->machine, delay_ns);
    s->waiting = rs_strand_id(rs_running(engine));
    rb_ensure(wait_for_one, (VALUE)call, end_wait, (VALUE)call);
}

static VALUE call_block(VALUE block, int argc, VALUE *argv) {
    return NIL_P(block) ? Qnil : rb_proc_call_with_block(block, argc, argv, Qnil);
}

/* Called after the wait, so the block may use the selector again. */
static VALUE run_branch(const wait_call *call, VALUE after, VALUE otherwise) {
    if (call->outcome == TIMED_OUT) return call_block(after, 0, NULL);
    if (call->outcome == NOTHING) return call_block(otherwise, 0, NULL);
    VALUE value = call->value;
    if (!NIL_P(call->block)) return call_block(call->block, 1, &value);
    return call->kind == RESULT ? rsb_raise_or_return(value) : value;
}

/* Waits for the first of the sources, and returns the value of the block of its branch; without a block, the value that a block
 * would get. If several sources are ready, they win in turn.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Object, nil] nil when nothing was ready in that time
 * @raise [UsageError] when there is no source, or another strand waits in it
 * @raise [ClosedError] when a source or the selector is closed
 * @since 0.1.0
 */
static VALUE selector_wait(int argc, VALUE *argv, VALUE self) {
    VALUE options = Qnil;
    if (argc > 0) rb_scan_args(argc, argv, ":", &options);
    wait_call call = {.value = Qnil};
    call.s = rsb_selector_get(self, &call.machine);
    int64_t timeout_ns = rsb_timeout_ns(rsb_timeout_option(options));
    wait_in(&call, timeout_ns);
    VALUE after = timeout_ns < call.s->after_ns ? Qnil : call.s->after;
    VALUE value = run_branch(&call, after, call.s->otherwise);
    RB_GC_GUARD(self);
    return value;
}

/* --- once --- */

typedef struct {
    VALUE self;
    rsb_selector *s;
    rsb_machine *machine;
    int argc;
    const VALUE *argv;
    int64_t timeout_ns;
    wait_call wait;
    VALUE after, otherwise;
} select_call;

static VALUE select_once(VALUE argument) {
    select_call *call = (select_call *)argument;
    rsb_selector *s = call->s;
    for (int i = 0; i < call->argc; i++) rsb_selector_add(s, call->argv[i]);
    if (rb_block_given_p()) rb_yield(call->self);
    rs_selector_shuffle(&s->engine);
    wait_in(&call->wait, call->timeout_ns);
    call->after = call->timeout_ns < s->after_ns ? Qnil : s->after;
    call->otherwise = s->otherwise;
    return Qnil;
}

static VALUE end_select(VALUE argument) {
    rsb_selector_close(((select_call *)argument)->s);
    return Qnil;
}

/* Waits for the first of several sources. Exactly one wins, and nothing is taken from the others. The block gets a {Selector}, to
 * which it adds the sources. The block of the branch that wins is called after the wait, and this returns its value.
 *
 * Without a block, the sources are arguments: a queue is popped, a semaphore is acquired, a stream or an IO is waited for until
 * it is readable, and an evaluation or a strand gives its result, which may be an error.
 *
 * The cost of each call grows with the number of sources. In a loop, make one {Selector} and use it again.
 *
 * May switch strands.
 *
 * @overload select(timeout: nil)
 *   @yieldparam on [Selector]
 *   @return [Object]
 * @overload select(*sources, timeout: nil)
 *   @return [Array(Object, Object)] the source, and its item or result; true for other sources
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Object, nil] nil when nothing was ready in that time
 * @raise [UsageError] when there is no source, or one belongs to another machine; between machines use a {Channel}
 * @raise [ClosedError]
 * @since 0.1.0
 */
static VALUE module_select(int argc, VALUE *argv, VALUE module) {
    bool has_options = argc > 0 && rb_keyword_given_p();
    VALUE options = has_options ? argv[--argc] : Qnil;
    if (argc > 0 && rb_block_given_p()) rb_raise(rsb_eUsage, "select: either sources or a block");
    select_call call = {.argc = argc, .argv = argv, .timeout_ns = rsb_timeout_ns(rsb_timeout_option(options)), .after = Qnil, .otherwise = Qnil};
    call.machine = rsb_current();
    call.s = rsb_selector_new(call.machine);
    call.self = call.s->self;
    call.wait = (wait_call){.machine = call.machine, .s = call.s, .value = Qnil};
    rb_ensure(select_once, (VALUE)&call, end_select, (VALUE)&call);
    RB_GC_GUARD(call.self);
    if (argc == 0) return run_branch(&call.wait, call.after, call.otherwise);
    if (call.wait.outcome != WON) return Qnil;
    bool has_value = call.wait.kind == POP || call.wait.kind == POP_CHANNEL || call.wait.kind == RESULT;
    return rb_assoc_new(call.wait.source, has_value ? call.wait.value : Qtrue);
}

void rsb_init_select(void) {
    rb_define_method(rsb_cSelector, "wait", selector_wait, -1);
    rb_define_singleton_method(rsb_mRingspun, "select", module_select, -1);
}
