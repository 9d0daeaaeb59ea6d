/* readiness: waiting for an IO as an evaluation does. */
#include "evaluation.h"

#include <errno.h>
#include <poll.h>

static ID option_names[3];

static VALUE await_ready(int argc, VALUE *argv, VALUE io, uint32_t events, const char *what) {
    VALUE given[3] = {Qundef, Qundef, Qundef}, options, value;
    rb_scan_args(argc, argv, "0:", &options);
    if (RS_UNLIKELY(!NIL_P(options))) rb_get_kwargs(options, option_names, 0, 3, given);
    rsb_limit limit = {given[0] == Qundef ? Qnil : given[0], given[1]};
    rsb_machine *machine = rsb_current();
    rs_request request = {.kind = RS_OP_POLL, .fd = rsb_fd(io), .flags = events};
    int64_t result = -EAGAIN;
    if (given[2] == Qundef || RTEST(given[2])) {
        rsb_after_inline(machine);
        result = rs_try(&machine->engine, &request);
    }
    if (result == -EAGAIN) {
        int64_t deadline_ns = rsb_limit_end(machine, &limit);
        rsb_resumable(machine);
        result = rsb_perform_until(machine, &request, deadline_ns, NULL, NULL);
        if (rsb_was_resumed(machine, RS_WAKE_VALUE, &value)) return value;
        if (result == -ETIMEDOUT) return rsb_limit_passed(machine, &limit);
    }
    if (RS_UNLIKELY(result < 0)) rsb_fail(result, what, request.fd);
    return Qtrue;
}

/* Waits until the IO can be read from without waiting, or has come to its end.
 *
 * May switch strands.
 *
 * @param io [IO, Integer]
 * @param within [Numeric, nil] seconds; nil: as long as it takes
 * @param timeout_result [Object] what is returned when the time is up; without it a TimeoutError is raised
 * @param poll_first [Boolean] whether to look first if it is ready, which then takes no turn; false for one that never is
 * @return [true] or what {Evaluation#resume!} says
 * @raise [Evaluation::TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE module_await_readable(int argc, VALUE *argv, VALUE module) {
    if (argc == 0) rb_raise(rsb_eUsage, "await_readable: expected an IO");
    return await_ready(argc - 1, argv + 1, argv[0], POLLIN, "await_readable");
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
    if (argc == 0) rb_raise(rsb_eUsage, "await_writable: expected an IO");
    return await_ready(argc - 1, argv + 1, argv[0], POLLOUT, "await_writable");
}

/* {Ringspun.await_readable} of this IO.
 *
 * May switch strands.
 *
 * @return [true] or what {Evaluation#resume!} says
 * @raise [Evaluation::TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE io_await_readable(int argc, VALUE *argv, VALUE io) { return await_ready(argc, argv, io, POLLIN, "await_readable"); }

/* {Ringspun.await_writable} of this IO.
 *
 * May switch strands.
 *
 * @return [true] or what {Evaluation#resume!} says
 * @raise [Evaluation::TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE io_await_writable(int argc, VALUE *argv, VALUE io) { return await_ready(argc, argv, io, POLLOUT, "await_writable"); }

void rsb_init_readiness(void) {
    option_names[0] = rb_intern("within");
    option_names[1] = rb_intern("timeout_result");
    option_names[2] = rb_intern("poll_first");
    rb_define_singleton_method(rsb_mRingspun, "await_readable", module_await_readable, -1);
    rb_define_singleton_method(rsb_mRingspun, "await_writable", module_await_writable, -1);
    VALUE waits = rb_define_module_under(rsb_mRingspun, "IOMethods");
    rb_define_method(waits, "await_readable", io_await_readable, -1);
    rb_define_method(waits, "await_writable", io_await_writable, -1);
}
