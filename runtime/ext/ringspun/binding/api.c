/* api: the functions of ringspun.h, the C API for other extensions. */
#include "ringspun.h"
#include "binding/scheduler/scheduler.h"
#include "binding/stream/stream.h"

#include <pthread.h>
#include <ruby/fiber/scheduler.h>

typedef struct {
    const char *waits_for;      /* what an extension has it wait for, in words */
    const char *waits_meanwhile; /* what all its waits are for, until the extension that has said so takes that back; or NULL */
} said_by_extensions;

static rsb_part part;

static said_by_extensions *said_of(const rsb_strand *strand) { return rsb_strand_part(strand, &part); }

static const char *said(const rsb_strand *strand, const rs_strand *engine) {
    if (said_of(strand)->waits_meanwhile) return said_of(strand)->waits_meanwhile;
    return rs_strand_wait(engine) == RS_WAIT_WAKER ? said_of(strand)->waits_for : NULL;
}

/* Also at the end of a tick, when no strand runs and rsb_current would refuse. */
static int64_t api_now(void) {
    rsb_machine *machine = rsb_existing();
    return rs_now((RS_LIKELY(machine) ? machine : rsb_current())->engine);
}

static int64_t api_deadline(VALUE seconds) { return rsb_deadline(rsb_current(), seconds, "deadline"); }

/* Makes the waker of the park that follows, and calls `start` with it. `start` must not wait, so no other park takes the ticket.
 * But a signal handler may run meanwhile: if the park is refused, the ticket is voided, so that no later wait gets it. */
static void begin_wait(rsb_machine *machine, void (*start)(ringspun_waker waker, void *data), void *data) {
    rs_machine *engine = machine->engine;
    ringspun_waker waker = {machine, rs_strand_id(rs_running(engine)), rs_next_ticket(engine)};
    start(waker, data);
    if (rs_refusal(engine, 0) != RS_WAKE_VALUE) rs_void_ticket(engine, waker.ticket);
}

static bool api_park(int64_t deadline, void (*start)(ringspun_waker waker, void *data), void *data, int64_t *value) {
    rsb_machine *machine = rsb_current();
    rsb_raise_refusal(machine);
    rs_expect_waker(machine->engine);
    begin_wait(machine, start, data);
    said_of(rsb_running(machine))->waits_for = NULL;
    int64_t result = 0;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_WAKER, 0, deadline, NULL, NULL, &result);
    if (kind == RS_WAKE_TIMEOUT) return false;
    rsb_raise_wake(machine, kind);
    if (value) *value = result;
    return true;
}

static VALUE raise_refusal(VALUE machine) {
    rsb_raise_refusal((rsb_machine *)machine);
    return Qnil;
}

static void refuse_or(rsb_machine *machine, void (*given_up)(void *data), void *data) {
    int state = 0;
    rb_protect(raise_refusal, (VALUE)machine, &state);
    if (!state) return;
    given_up(data);
    rb_jump_tag(state);
}

static bool api_park_or(int64_t deadline, const char *what, void (*start)(ringspun_waker waker, void *data),
                        void (*given_up)(void *data), void *data, int64_t *value) {
    rsb_machine *machine = rsb_current();
    if (RS_UNLIKELY(rs_refusal(machine->engine, 0) != RS_WAKE_VALUE || ruby_stack_check())) refuse_or(machine, given_up, data);
    begin_wait(machine, start, data);
    said_of(rsb_running(machine))->waits_for = what;
    int64_t result = 0;
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_WAKER, 0, deadline, NULL, NULL, &result);
    if (RS_UNLIKELY(kind != RS_WAKE_VALUE)) given_up(data);
    if (kind == RS_WAKE_TIMEOUT) return false;
    rsb_raise_wake(machine, kind);
    if (value) *value = result;
    return true;
}

/* The machine's memory stays until its last waker was woken, but its thread may have closed it by then. */
static void api_wake(ringspun_waker waker, int64_t value) {
    rsb_machine *machine = waker.machine;
    rs_message *message = rs_message_new(RS_MESSAGE_WAKE, waker.strand, waker.ticket);
    message->value = value;
    pthread_mutex_lock(&machine->wake_lock);
    if (machine->wakeable) {
        rs_send(machine->engine, message);
    } else {
        rs_drop_waker(machine->engine);
        rs_message_free(message);
    }
    pthread_mutex_unlock(&machine->wake_lock);
}

/* Only for wakers of park_or: those of park are counted, and end by api_wake. */
static void api_wake_here(ringspun_waker waker, int64_t value) {
    rsb_machine *machine = waker.machine;
    if (machine->open) rs_wake(machine->engine, waker.strand, waker.ticket, RS_WAKE_VALUE, value);
}

/* False for the root outside of a run: it is the thread's own code. */
static bool is_in_run(rsb_machine *machine) {
    if (!rs_is_root(machine->engine, rs_running(machine->engine))) return true;
    VALUE scheduler = rb_fiber_scheduler_current();
    return !NIL_P(scheduler) && RTEST(rb_obj_is_kind_of(scheduler, rsb_cScheduler));
}

static void *api_machine_here(void) {
    rsb_machine *machine = rsb_existing();
    if (!machine || !machine->open || rsb_between_strands(machine)) return NULL;
    return is_in_run(machine) ? machine : NULL;
}

/* Also between strands: a call at the end of one tick may ask for one at the next. */
static bool api_at_tick_end(void (*call)(VALUE object), VALUE object) {
    rsb_machine *machine = rsb_existing();
    if (!machine || !rsb_between_strands(machine)) machine = rsb_current();
    return rs_call_at_tick_end(machine->engine, call, object);
}

static void api_yield(void) { rsb_yield(rsb_current()); }

static long api_read(int fd, VALUE string, long length, long offset) {
    VALUE arguments[] = {INT2FIX(fd), string, LONG2NUM(length), LONG2NUM(offset)};
    return NUM2LONG(rb_funcallv(rsb_current()->self, rb_intern("read"), 4, arguments));
}

static long api_write(int fd, VALUE string) {
    return NUM2LONG(rb_funcall(rsb_current()->self, rb_intern("write"), 2, INT2FIX(fd), string));
}

static int api_wait_ready(int fd, int events) {
    return NUM2INT(rb_funcall(rsb_current()->self, rb_intern("poll"), 2, INT2FIX(fd), INT2FIX(events)));
}

static VALUE api_with_deadline(int64_t deadline, VALUE (*body)(VALUE argument), VALUE argument) {
    bool late;
    VALUE value = rsb_until(rsb_current(), deadline, body, argument, &late);
    if (late) rb_raise(rsb_eTimeout, "the deadline has passed");
    return value;
}

static void api_stream_peek(VALUE self, const char **bytes, size_t *length) {
    const rs_buffer *in = &rsb_stream_peek(self)->in;
    *bytes = in->bytes ? rs_buffer_at(in) : NULL;
    *length = rs_buffer_len(in);
}

static bool api_stream_more(VALUE self, int64_t deadline) { return rsb_stream_more(self, deadline, "stream_more"); }

/* The stream, which must have received `length` bytes; else raises. */
static rsb_stream *stream_with(VALUE self, size_t length, rsb_machine **machine) {
    rsb_stream *stream = rsb_stream_get(self, machine);
    if (length > rs_buffer_len(&stream->in)) rb_raise(rsb_eUsage, "the stream has not received so many bytes; see stream_peek");
    return stream;
}

static void api_stream_drop(VALUE self, size_t length) {
    rsb_machine *machine;
    rsb_stream *stream = stream_with(self, length, &machine);
    rsb_stream_drop(machine, stream, length);
}

static void *api_stream_take(VALUE self, size_t length, size_t *start, size_t *capacity) {
    rsb_machine *machine;
    rsb_stream *stream = stream_with(self, length, &machine);
    return rsb_stream_take_block(machine, stream, length, start, capacity);
}

static VALUE notice_fork(VALUE machine) {
    rsb_notice_fork((rsb_machine *)machine);
    return Qnil;
}

/* In a forked child, bytes in a write queue are the parent's until the machine has noticed the fork, which drops them. False: it
 * cannot begin anew. */
static bool has_noticed_fork(void) {
    rsb_machine *machine = rsb_existing();
    if (RS_LIKELY(!machine || machine->fork_count == rsb_forks)) return true;
    int state = 0;
    rb_protect(notice_fork, (VALUE)machine, &state);
    if (state) rb_set_errinfo(Qnil);
    return !state;
}

static bool api_stream_put(VALUE self, const void *bytes, size_t length) {
    return has_noticed_fork() && rsb_stream_try_put(rsb_stream_peek(self), bytes, length);
}

static size_t api_stream_unsent(VALUE self) {
    const rs_write_queue *queue = &rsb_stream_peek(self)->write_queue;
    return has_noticed_fork() && queue->machine ? rs_write_queue_untaken(queue) : 0;
}

static void api_waits_for(const char *what) { said_of(rsb_running(rsb_current()))->waits_meanwhile = what; }

static const ringspun_api api = {
    .version = RINGSPUN_API_VERSION, .now = api_now, .deadline = api_deadline, .park = api_park, .wake = api_wake,
    .yield = api_yield, .read = api_read, .write = api_write, .wait_ready = api_wait_ready, .with_deadline = api_with_deadline,
    .machine_here = api_machine_here, .park_or = api_park_or, .wake_here = api_wake_here, .at_tick_end = api_at_tick_end,
    .stream_peek = api_stream_peek, .stream_more = api_stream_more, .stream_drop = api_stream_drop, .stream_take = api_stream_take,
    .block_free = free, .stream_put = api_stream_put, .stream_unsent = api_stream_unsent,
    .waits_for = api_waits_for,
};

static void mark_tick_ends(rsb_machine *machine) { rs_tick_ends_each(machine->engine, rb_gc_mark); }

static rsb_part part = {.strand_size = sizeof(said_by_extensions), .mark = mark_tick_ends, .strand_waits_for = said};

void rsb_init_api(void) {
    rsb_register_part(&part);
    /* ringspun_get_api of ringspun.h reads this. */
    rb_define_const(rsb_mRingspun, "C_API", ULL2NUM((uintptr_t)&api));
}
