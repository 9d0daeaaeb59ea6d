/* select: waiting in a selector, and Ringspun.select, which makes one for a single wait. */
#include "binding/stream/stream.h"
#include "selector.h"

#include <poll.h>

/* True: the descriptor is ready. False: an op waits for it. */
static bool look_at_descriptor(rsb_machine *machine, rs_branch *b, int fd) {
    int64_t error = 0;
    uint32_t events = b->kind == RS_BRANCH_WRITABLE ? POLLOUT : POLLIN;
    rs_look answer = rs_branch_look_at(machine->engine, b, fd, events, &error);
    if (answer == RS_LOOK_FAILED) rsb_fail(error, "select", fd);
    if (answer == RS_LOOK_LIMIT) rb_raise(rsb_eLimit, "select: %u descriptors are waited for already", RS_WATCH_OPS_MAX);
    return answer == RS_LOOK_WON;
}

static int fd_of(rsb_machine *machine, const rs_branch *b) {
    int fd = rsb_io_fd(machine, b->source);
    if (RB_INTEGER_TYPE_P(b->source)) rsb_check_descriptor(machine, b->source, fd, b->generation, "select");
    return fd;
}

static bool has_bytes(const rs_branch *b) {
    if (b->kind != RS_BRANCH_READABLE || !RB_TYPE_P(b->source, T_FILE)) return false;
    rb_io_t *file;
    GetOpenFile(b->source, file);
    return rb_io_read_pending(file);
}

/* True: this branch wins. For kinds that the engine does not look at. */
static bool look(rsb_machine *machine, rs_branch *b, VALUE *value) {
    const rsb_result_kind *result = b->look;
    VALUE source = b->source;
    int fd = -1;
    *value = source;
    switch (b->kind) {
    case RS_BRANCH_RESULT:
        if (result->look(source, value)) return true;
        rs_watch_idle(&b->watch);
        return false;
    case RS_BRANCH_STREAM: return rsb_stream_look(source, &fd) || look_at_descriptor(machine, b, fd);
    default:
        fd = fd_of(machine, b);
        return has_bytes(b) || look_at_descriptor(machine, b, fd);
    }
}

typedef enum { WON, TIMED_OUT, NOTHING } outcome;

typedef struct {
    rsb_machine *machine;
    rsb_selector *s;
    rs_select select;
    outcome outcome;
    rs_win win;
} wait_call;

NORETURN(static void raise_unpushed(const rs_branch *b, rs_look answer));
static void raise_unpushed(const rs_branch *b, rs_look answer) {
    if (answer == RS_LOOK_NO_MEMORY) rsb_fail_memory();
    const char *what = b->kind == RS_BRANCH_PUSH ? "queue" : "channel";
    rb_raise(rsb_eClosed, "the %s is closed; nothing can be pushed any more", what);
}

static bool look_at_ready(wait_call *call) {
    rs_branches *branches = &call->s->engine;
    rs_look answer;
    uint64_t value = Qnil;
    for (rs_branch *b; (b = rs_branches_look(call->machine->engine, branches, &value, &answer)); value = Qnil) {
        if (b->kind == RS_BRANCH_POP || b->kind == RS_BRANCH_PUSH) rsb_queue_wrote(b->source, b->from);
        VALUE own = Qnil;
        if (answer == RS_LOOK_ASK && !look(call->machine, b, &own)) continue;
        if (answer == RS_LOOK_ASK) value = own;
        if (answer == RS_LOOK_CLOSED || answer == RS_LOOK_NO_MEMORY) raise_unpushed(b, answer);
        rs_branch_wins(b, value, &call->win);
        return true;
    }
    return false;
}

/* One of its sources may be a channel. */
static const rsb_list_kind for_first = {.what = "the first of a select", .for_ractors = true};

static outcome wait_for_one(wait_call *call) {
    rsb_selector *s = call->s;
    rs_machine *engine = call->machine->engine;
    for (;;) {
        int64_t until_ns;
        if (look_at_ready(call)) return WON;
        if (!rs_select_waits(engine, &call->select, &until_ns)) return call->select.never_waits ? NOTHING : TIMED_OUT;
        rs_list *waiters = &s->engine.selector.waiters;
        rs_wake_kind kind = rsb_wait(call->machine, RS_WAIT_LIST, 0, until_ns, waiters, &for_first, NULL);
        if (rs_branches_take_served(engine, &s->engine, &call->win)) return WON;
        rs_select_waited(&call->select, kind);
        if (kind != RS_WAKE_VALUE && kind != RS_WAKE_TIMEOUT) rsb_raise_wake(call->machine, kind);
        if (s->engine.closed) rb_raise(rsb_eClosed, "the selector was closed meanwhile");
    }
}

static VALUE wait_body(VALUE argument) {
    wait_call *call = (wait_call *)argument;
    call->outcome = wait_for_one(call);
    return Qnil;
}

static VALUE end_wait(VALUE argument) {
    rs_branches_leave(&((wait_call *)argument)->s->engine);
    return Qnil;
}

static void wait_in(wait_call *call, int64_t timeout_ns) {
    rsb_selector *s = call->s;
    rsb_before_look(call->machine); /* first: other strands may close the selector */
    if (s->engine.closed) rb_raise(rsb_eClosed, "the selector is closed");
    if (!rs_branches_enter(call->machine->engine, &s->engine)) {
        rb_raise(rsb_eUsage, "another strand waits in this selector already; let each have its own");
    }
    if (s->engine.used_len == 0 && s->after_ns == RS_NEVER && !s->never_waits) {
        rs_branches_leave(&s->engine);
        rb_raise(rsb_eUsage, "select: there is nothing to wait for; give it a source, or `after`");
    }
    int64_t delay_ns = s->after_ns < timeout_ns ? s->after_ns : timeout_ns;
    rs_select_begin(&call->select, rsb_deadline_after(call->machine, delay_ns), s->never_waits);
    rb_ensure(wait_body, (VALUE)call, end_wait, (VALUE)call);
}

static VALUE call_block(VALUE block, int argc, VALUE *argv) {
    return NIL_P(block) ? Qnil : rb_proc_call_with_block(block, argc, argv, Qnil);
}

/* Called after the wait, so the block may use the selector again. */
static VALUE run_branch(const wait_call *call, VALUE after, VALUE otherwise) {
    if (call->outcome == TIMED_OUT) return call_block(after, 0, NULL);
    if (call->outcome == NOTHING) return call_block(otherwise, 0, NULL);
    VALUE value = call->win.value, block = call->win.block;
    if (!NIL_P(block)) return call_block(block, 1, &value);
    return call->win.kind == RS_BRANCH_RESULT ? rsb_raise_or_return(value) : value;
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
    wait_call call = {.outcome = NOTHING};
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
    rs_selector_shuffle(&s->engine.selector);
    wait_in(&call->wait, call->timeout_ns);
    call->after = call->timeout_ns < s->after_ns ? Qnil : s->after;
    call->otherwise = s->otherwise;
    return Qnil;
}

static VALUE end_select(VALUE argument) {
    rs_branches_close(&((select_call *)argument)->s->engine);
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
    int64_t timeout_ns = rsb_timeout_ns(rsb_timeout_option(options));
    rsb_machine *machine = rsb_current();
    rsb_selector *s = rsb_selector_new(machine);
    select_call call = {.self = s->self, .s = s, .argc = argc, .argv = argv, .timeout_ns = timeout_ns, .after = Qnil,
                        .otherwise = Qnil, .wait = {.machine = machine, .s = s}};
    rb_ensure(select_once, (VALUE)&call, end_select, (VALUE)&call);
    RB_GC_GUARD(call.self);
    if (argc == 0) return run_branch(&call.wait, call.after, call.otherwise);
    if (call.wait.outcome != WON) return Qnil;
    rs_branch_kind kind = call.wait.win.kind;
    bool has_value = kind == RS_BRANCH_POP || kind == RS_BRANCH_POP_CHANNEL || kind == RS_BRANCH_RESULT;
    return rb_assoc_new(call.wait.win.source, has_value ? call.wait.win.value : Qtrue);
}

void rsb_init_select(void) {
    rb_define_method(rsb_cSelector, "wait", selector_wait, -1);
    rb_define_singleton_method(rsb_mRingspun, "select", module_select, -1);
}
