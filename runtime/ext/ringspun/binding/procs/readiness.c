/* readiness: waits for the readiness of an IO that Evaluation#resume! can end: Ringspun.await_readable and the like. */
#include "evaluation.h"
#include "binding/io/io.h"

#include <errno.h>
#include <poll.h>
#include <ruby/io.h>

static ID option_names[3];

typedef struct {
    rsb_limit limit;
    bool poll_first;
} options;

/* Also takes a Hash that is no keywords, as programs for old Rubies pass it. */
static options options_of(int argc, const VALUE *argv) {
    VALUE given[3] = {Qundef, Qundef, Qundef};
    if (argc > 0) {
        VALUE options = argc == 1 ? rb_check_hash_type(argv[0]) : Qnil;
        if (NIL_P(options)) rb_raise(rsb_eUsage, "expected within:, timeout_result: and poll_first:, and nothing else");
        rsb_options(options, 3, option_names, given);
    }
    return (options){{given[1] == Qundef ? Qnil : given[1], given[2]}, given[0] == Qundef || RTEST(given[0])};
}

static VALUE await_ready(const options *how, VALUE io, uint32_t events, const char *what, bool *closed) {
    VALUE value;
    rsb_machine *machine = rsb_current();
    int fd = how->poll_first ? rsb_op_fd(machine, io) : rsb_io_fd(machine, io);
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = events};
    int64_t result = how->poll_first ? rs_try(machine->engine, &request) : -EAGAIN;
    if (result == -EAGAIN) {
        int64_t deadline_ns = rsb_limit_end(machine, &how->limit);
        rsb_resumable(machine);
        result = rsb_perform(machine, &request, &(rsb_op_wait){.answers_close = true, .deadline_ns = deadline_ns});
        if (rsb_was_resumed(machine, RS_WAKE_VALUE, &value)) return value;
        if (result == RSB_TIME_IS_UP) return rsb_limit_passed(machine, &how->limit);
    }
    if (RS_LIKELY(result >= 0)) return Qtrue;
    if (closed && result == -EBADF) *closed = true;
    else rsb_fail(result, what, fd);
    return Qnil;
}

static VALUE await_argument(int argc, const VALUE *argv, uint32_t events, const char *what) {
    if (argc == 0) rb_raise(rsb_eUsage, "%s: expected an IO", what);
    options how = options_of(argc - 1, argv + 1);
    return await_ready(&how, events == POLLOUT ? rsb_writing_end(argv[0]) : argv[0], events, what, NULL);
}

/* Like CRuby's methods of an IO: raises IOError if the IO is closed, before or during the wait. */
static VALUE await_self(int argc, const VALUE *argv, VALUE io, uint32_t events, const char *what) {
    options how = options_of(argc, argv);
    VALUE end = events == POLLOUT ? rb_io_get_write_io(io) : io;
    bool closed = false;
    rb_io_descriptor(end);
    VALUE value = await_ready(&how, end, events, what, &closed);
    if (RS_UNLIKELY(closed)) rb_raise(rb_eIOError, "stream closed in another strand");
    return value;
}

/* Waits until the IO can be read without waiting, or has ended.
 *
 * May switch strands.
 *
 * @param io [IO, Integer]
 * @param within [Numeric, nil] seconds; nil: no limit
 * @param timeout_result [Object] what is returned when the time is up; without it a TimeoutError is raised
 * @param poll_first [Boolean] first poll once, and if it is ready return without a wait; false saves that poll
 * @return [true, Object] true; if {Evaluation#resume!} ended the wait, its argument
 * @raise [Evaluation::TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE module_await_readable(int argc, VALUE *argv, VALUE module) {
    return await_argument(argc, argv, POLLIN, "await_readable");
}

/* Waits until the IO can be written to without waiting.
 *
 * May switch strands.
 *
 * @param (see #await_readable)
 * @return (see #await_readable)
 * @raise (see #await_readable)
 * @since 0.1.0
 */
static VALUE module_await_writable(int argc, VALUE *argv, VALUE module) {
    return await_argument(argc, argv, POLLOUT, "await_writable");
}

/* {Ringspun.await_readable} of this IO, with its options.
 *
 * May switch strands.
 *
 * @return [true, Object] true; if {Evaluation#resume!} ended the wait, its argument
 * @raise [Evaluation::TimeoutError] when the time is up
 * @raise [IOError] when it is closed, or is closed meanwhile
 * @since 0.1.0
 */
static VALUE io_await_readable(int argc, VALUE *argv, VALUE io) { return await_self(argc, argv, io, POLLIN, "await_readable"); }

/* {Ringspun.await_writable} of this IO, with its options.
 *
 * May switch strands.
 *
 * @return [true, Object] true; if {Evaluation#resume!} ended the wait, its argument
 * @raise [Evaluation::TimeoutError] when the time is up
 * @raise [IOError] when it is closed, or is closed meanwhile
 * @since 0.1.0
 */
static VALUE io_await_writable(int argc, VALUE *argv, VALUE io) { return await_self(argc, argv, io, POLLOUT, "await_writable"); }

/* Called before an op that tries at once: counts it, and gives way at the end of the turn (rsb_after_inline). */
static VALUE module_before_inline(VALUE module) {
    rsb_after_inline(rsb_current());
    return Qnil;
}

void rsb_init_readiness(void) {
    option_names[0] = rb_intern("poll_first");
    option_names[1] = rb_intern("within");
    option_names[2] = rb_intern("timeout_result");
    rb_define_singleton_method(rsb_mRingspun, "await_readable", module_await_readable, -1);
    rb_define_singleton_method(rsb_mRingspun, "await_writable", module_await_writable, -1);
    rb_define_private_method(rb_singleton_class(rsb_mRingspun), "before_inline", module_before_inline, 0);
    VALUE waits = rb_define_module_under(rsb_mRingspun, "IOMethods");
    rb_define_method(waits, "await_readable", io_await_readable, -1);
    rb_define_method(waits, "await_writable", io_await_writable, -1);
}
