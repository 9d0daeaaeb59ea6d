/* channel: Ringspun::Channel, a bounded queue between machines, threads and ractors. A strand parks; a thread without a machine
 * sleeps without the GVL.
 */
#include "select.h"

#include <ruby/ractor.h>

static void mark_value(uint64_t value) { rb_gc_mark((VALUE)value); }

static void channel_mark(void *data) { rs_channel_each(data, mark_value); }

static void channel_free(void *data) { rs_channel_release(data); }

/* NULL: there was no memory for a channel. CRuby marks and frees no NULL (rb_data_free, gc_mark_children in gc.c). */
static size_t channel_size(const void *data) { return data ? rs_channel_bytes(data) : 0; }

/* Without write barriers (no RUBY_TYPED_WB_PROTECTED): every minor collection marks its values too. */
static const rb_data_type_t channel_type = {
    .wrap_struct_name = "Ringspun::Channel",
    .function = {.dmark = channel_mark, .dfree = channel_free, .dsize = channel_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_FROZEN_SHAREABLE,
};

static VALUE channel_allocate(VALUE class) {
    VALUE self = TypedData_Wrap_Struct(class, &channel_type, NULL);
    rs_channel *channel = rs_channel_new(0);
    if (RS_UNLIKELY(!channel)) rsb_fail_memory();
    RTYPEDDATA_DATA(self) = channel;
    return self;
}

static rs_channel *peek(VALUE self) {
    rs_channel *channel;
    TypedData_Get_Struct(self, rs_channel, &channel_type, channel);
    return channel;
}

static rs_channel *get(VALUE self) {
    rs_channel *channel = peek(self);
    if (RS_UNLIKELY(rs_channel_capacity(channel) == 0)) rb_raise(rsb_eUsage, "the channel was not initialized; call super in initialize");
    return channel;
}

/* The machine of this thread; NULL: none, and none is made. */
static rsb_machine *here(void) {
    rsb_machine *machine = rsb_existing();
    if (machine) rsb_notice_fork(machine);
    return machine;
}

static rs_machine *engine_of(rsb_machine *machine) { return machine ? machine->engine : NULL; }

NORETURN(static void raise_closed(void));
static void raise_closed(void) { rb_raise(rsb_eClosed, "the channel is closed; nothing can be pushed any more"); }

static void check_memory(rs_channel_answer answer) {
    if (RS_UNLIKELY(answer == RS_CHANNEL_NO_MEMORY)) rsb_fail_memory();
}

static void check_pushed(rs_channel_answer answer) {
    if (RS_UNLIKELY(answer == RS_CHANNEL_CLOSED)) raise_closed();
    check_memory(answer);
}

/* @param capacity [Integer] how many values fit, at least 1
 * @raise [UsageError]
 * @since 0.1.0 */
static VALUE channel_initialize(VALUE self, VALUE capacity) {
    rs_channel *channel = peek(self);
    if (rs_channel_capacity(channel) > 0) rb_raise(rsb_eUsage, "the channel was initialized already");
    rs_channel_set_capacity(channel, (uint32_t)rsb_integer(capacity, 1, INT32_MAX, "a channel's capacity"));
    return self;
}

static VALUE channel_refuse_copy(VALUE self, VALUE original) {
    rb_raise(rsb_eUsage, "a channel cannot be copied; for use by several ractors make it shareable: "
             "Ractor.make_shareable(channel)");
}

/* --- waiting --- */

typedef struct {
    rs_channel *channel;
    rsb_machine *machine;       /* NULL: a plain thread */
    rs_channel_waiter *waiter;
    int64_t deadline_ns;
    uint64_t value;
    bool pops;
    bool left;
    rs_channel_answer answer;
} wait_call;

static rs_channel_answer begin(wait_call *call, rs_id strand, uint64_t ticket) {
    call->waiter = rs_channel_waiter_new(engine_of(call->machine), strand, ticket);
    if (RS_UNLIKELY(!call->waiter)) return RS_CHANNEL_NO_MEMORY;
    rs_channel_answer answer = call->pops ? rs_channel_pop(call->channel, engine_of(call->machine), &call->value, call->waiter)
                                          : rs_channel_push(call->channel, engine_of(call->machine), call->value, call->waiter);
    if (answer != RS_CHANNEL_WAITS) rs_channel_waiter_free(call->waiter);
    return answer;
}

static rs_channel_answer leave(wait_call *call) {
    rs_channel_answer answer = rs_channel_leave(call->waiter, &call->value);
    rs_channel_waiter_free(call->waiter);
    call->left = true;
    return answer;
}

/* A value that the strand was given is returned even if the wait was cancelled: the next wait raises that. */
static rs_channel_answer wait_as_strand(wait_call *call) {
    rsb_machine *machine = call->machine;
    rs_machine *engine = machine->engine;
    rsb_raise_refusal(machine);
    uint64_t ticket = rs_next_ticket(engine);
    rs_channel_answer answer = begin(call, rs_strand_id(rs_running(engine)), ticket);
    if (answer != RS_CHANNEL_WAITS) return answer;
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_CHANNEL, 0, call->deadline_ns, NULL, NULL, NULL);
    rs_void_ticket(engine, ticket); /* if the wait was refused, no park has used it */
    answer = leave(call);
    if (answer == RS_CHANNEL_WAITS && kind != RS_WAKE_TIMEOUT) rsb_raise_wake(machine, kind);
    return answer;
}

static void *sleep_without_gvl(void *argument) {
    wait_call *call = argument;
    rs_channel_sleep(call->waiter, call->deadline_ns);
    return NULL;
}

static void interrupt_sleep(void *argument) { rs_channel_interrupt(((wait_call *)argument)->waiter); }

static bool is_over(const wait_call *call) {
    return !rs_channel_waiter_is_in_line(call->waiter) || (call->deadline_ns != RS_NEVER && rs_clock_ns() >= call->deadline_ns);
}

static VALUE sleep_in_line(VALUE argument) {
    wait_call *call = (wait_call *)argument;
    while (!is_over(call)) {
        rb_nogvl(sleep_without_gvl, call, interrupt_sleep, call, RB_NOGVL_INTR_FAIL);
        rb_thread_check_ints();
    }
    call->answer = leave(call);
    return Qnil;
}

/* If an interrupt has ended the sleep, gives back the value or the place that the thread was given. */
static VALUE end_sleep(VALUE argument) {
    wait_call *call = (wait_call *)argument;
    if (call->left) return Qnil;
    rs_channel_refuse(call->waiter);
    rs_channel_waiter_free(call->waiter);
    return Qnil;
}

static rs_channel_answer wait_as_thread(wait_call *call) {
    rs_channel_answer answer = begin(call, RS_NO_ID, 0);
    if (answer != RS_CHANNEL_WAITS) return answer;
    rb_ensure(sleep_in_line, (VALUE)call, end_sleep, (VALUE)call);
    return call->answer;
}

/* The machine is checked only before a wait, because a signal handler may push and pop without one. */
static rs_channel_answer wait_in_line(wait_call *call) {
    if (!call->machine) return wait_as_thread(call);
    rsb_machine_of(call->machine->self);
    return wait_as_strand(call);
}

/* --- pushing --- */

static void check_value(VALUE self, VALUE value) {
    if (RS_LIKELY(!RB_OBJ_SHAREABLE_P(self)) || rb_ractor_shareable_p(value)) return;
    rb_raise(rsb_eUsage, "this channel is shared by ractors, so what is pushed must be shareable: pass %" PRIsVALUE " through "
             "Ractor.make_shareable first", rsb_inspect(value));
}

/* Puts a value at the end; waits for a place, first come, first served. A strand parks, a thread without a machine sleeps.
 *
 * May switch strands.
 *
 * @param value [Object] shareable, when the channel is
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Channel, nil] self; nil when there was no place in time
 * @raise [ClosedError] also when it is closed meanwhile
 * @raise [UsageError]
 * @since 0.1.0
 */
static VALUE channel_push(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    wait_call call = {.channel = get(self), .deadline_ns = rsb_timeout_argument(here(), argc - 1, argv + 1), .value = argv[0]};
    check_value(self, argv[0]);
    call.machine = here();
    rs_channel_answer answer = rs_channel_push(call.channel, engine_of(call.machine), argv[0], NULL);
    if (answer == RS_CHANNEL_WAITS) answer = wait_in_line(&call);
    RB_GC_GUARD(self);
    check_pushed(answer);
    return answer == RS_CHANNEL_DONE ? self : Qnil;
}

/* Puts a value at the end, if there is a place.
 *
 * @param value [Object] shareable, when the channel is
 * @return [Boolean]
 * @raise [ClosedError, UsageError]
 * @since 0.1.0
 */
static VALUE channel_try_push(VALUE self, VALUE value) {
    rs_channel *channel = get(self);
    check_value(self, value);
    rs_channel_answer answer = rs_channel_push(channel, engine_of(here()), value, NULL);
    RB_GC_GUARD(self);
    check_pushed(answer);
    return answer == RS_CHANNEL_DONE ? Qtrue : Qfalse;
}

/* --- popping --- */

static rs_channel_answer pop(VALUE self, int64_t deadline_ns, VALUE *value) {
    wait_call call = {.channel = get(self), .deadline_ns = deadline_ns, .pops = true, .value = Qnil, .machine = here()};
    rs_channel_answer answer = rs_channel_pop(call.channel, engine_of(call.machine), &call.value, NULL);
    if (answer == RS_CHANNEL_WAITS) answer = wait_in_line(&call);
    RB_GC_GUARD(self);
    check_memory(answer);
    *value = answer == RS_CHANNEL_DONE ? (VALUE)call.value : Qnil;
    return answer;
}

/* Takes the first value, waiting for one if need be. A strand parks, a thread without a machine sleeps.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Object, nil] nil when the channel is closed and empty, or nothing came in time
 * @raise [UsageError]
 * @since 0.1.0
 */
static VALUE channel_pop(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    VALUE value;
    pop(self, rsb_timeout_argument(here(), argc, argv), &value);
    return value;
}

/* Takes the first value, if there is one.
 *
 * @return [Object, nil] nil when there is none
 * @since 0.1.0
 */
static VALUE channel_try_pop(VALUE self) {
    uint64_t value = Qnil;
    rs_channel_answer answer = rs_channel_pop(get(self), engine_of(here()), &value, NULL);
    RB_GC_GUARD(self);
    return answer == RS_CHANNEL_DONE ? (VALUE)value : Qnil;
}

/* Pops one value after the other until the channel is closed and empty.
 *
 * May switch strands.
 *
 * @yieldparam value [Object]
 * @return [Channel] self
 * @since 0.1.0
 */
static VALUE channel_each(VALUE self) {
    rsb_need_block("each");
    VALUE value;
    while (pop(self, RS_NEVER, &value) == RS_CHANNEL_DONE) rb_yield(value);
    return self;
}

/* --- the rest --- */

/* Allows no more pushes; values inside can still be popped. Waiting poppers get nil, waiting pushers a ClosedError.
 *
 * @return [Channel] self
 * @since 0.1.0 */
static VALUE channel_close(VALUE self) {
    rs_channel_close(get(self), engine_of(here()));
    return self;
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE channel_closed_p(VALUE self) { return rs_channel_is_closed(get(self)) ? Qtrue : Qfalse; }

/* @return [Boolean] at that moment: others may push and pop at the same time
 * @since 0.1.0 */
static VALUE channel_empty_p(VALUE self) { return rs_channel_len(get(self)) == 0 ? Qtrue : Qfalse; }

/* @return [Integer] values inside, at that moment
 * @since 0.1.0 */
static VALUE channel_size_of(VALUE self) { return UINT2NUM(rs_channel_len(get(self))); }

/* @return [Integer] how many values fit
 * @since 0.1.0 */
static VALUE channel_capacity(VALUE self) { return UINT2NUM(rs_channel_capacity(get(self))); }

/* @return [Integer] strands and threads that wait to push or to pop; not those that wait in a {Selector}
 * @since 0.1.0 */
static VALUE channel_num_waiting(VALUE self) { return UINT2NUM(rs_channel_waiting(get(self))); }

/* --- for selectors --- */

bool rsb_is_channel(VALUE object) { return rb_typeddata_is_kind_of(object, &channel_type); }

rs_channel *rsb_channel_of(VALUE self, VALUE value) {
    rs_channel *channel = get(self);
    check_value(self, value);
    return channel;
}

static void child_began(rsb_machine *machine) { rs_channels_forked(); }

static rsb_part part = {.child_began = child_began};

/* Document-class: Ringspun::Channel
 *
 * A bounded queue between machines on different threads, and threads without one: first in, first out. Waiting strands and
 * threads are served in the order in which they came. Between ractors it must be made shareable by Ractor.make_shareable, and
 * takes only shareable values from then on.
 *
 * @since 0.1.0
 */
void rsb_init_channel(void) {
    rsb_register_part(&part);
    VALUE channel = rb_define_class_under(rsb_mRingspun, "Channel", rb_cObject);
    rb_define_alloc_func(channel, channel_allocate);
    rb_define_method(channel, "initialize", channel_initialize, 1);
    rb_define_method(channel, "initialize_copy", channel_refuse_copy, 1);
    rb_define_method(channel, "push", channel_push, -1);
    rb_define_method(channel, "try_push", channel_try_push, 1);
    rb_define_method(channel, "pop", channel_pop, -1);
    rb_define_method(channel, "try_pop", channel_try_pop, 0);
    rb_define_method(channel, "each", channel_each, 0);
    rb_define_method(channel, "close", channel_close, 0);
    rb_define_method(channel, "closed?", channel_closed_p, 0);
    rb_define_method(channel, "empty?", channel_empty_p, 0);
    rb_define_method(channel, "size", channel_size_of, 0);
    rb_define_method(channel, "capacity", channel_capacity, 0);
    rb_define_method(channel, "num_waiting", channel_num_waiting, 0);
    rb_define_alias(channel, "<<", "push");
    rb_define_alias(channel, "length", "size");
}
