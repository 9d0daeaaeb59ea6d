/* write: the writing methods of Ringspun::Stream. A write puts its bytes into the write queue, from which they leave at the end
 * of the tick. It waits while more than the high-water mark have not left. */
#include "tls.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* When the machine closes, written bytes have so long to leave. */
#define LAST_BYTES_NS 1000000000

/* When a TLS client closes, session tickets have so long to come: usually one round trip, and the second comes right after the
 * first. */
#define TICKETS_NS 5000000000
#define MORE_TICKETS_NS 20000000

typedef struct {
    rsb_machine *machine;
    rsb_stream *stream;
    VALUE timeout;
    int64_t deadline_ns;
    const char *what;
    bool closes;
} writer;

static void check_error(writer *w) {
    int64_t error = w->stream->write_queue.error;
    if (RS_LIKELY(!error)) return;
    w->stream->error_raised = true;
    rsb_stream_refused(w->machine, w->stream, error, w->what, w->stream->write_queue.fd);
}

static const rsb_list_kind for_departure = {.what = "what was written to a Stream to leave"};

/* Waits until at most `most` of the bytes queued now remain. Bytes of later writers do not count, or a strand among many writers
 * would wait forever. */
static void wait_until_left(writer *w, size_t most) {
    rs_write_queue *queue = &w->stream->write_queue;
    rs_write_queue_flush(queue);
    for (uint64_t mark = queue->put - most; rs_write_queue_left(queue) < mark;) {
        rs_wake_kind kind = rsb_wait(w->machine, RS_WAIT_LIST, 0, w->deadline_ns, &queue->waiters, &for_departure, NULL);
        bool closed = w->closes && w->stream->closed; /* another strand has closed it, and raises its error */
        if (kind == RS_WAKE_TIMEOUT && !closed) rsb_stream_timed_out(w->stream, w->timeout, w->what);
        if (kind != RS_WAKE_VALUE && kind != RS_WAKE_TIMEOUT) rsb_raise_wake(w->machine, kind);
        if (closed) return;
        rsb_stream_get(w->stream->self, &w->machine);
        if (rs_write_queue_left(queue) < mark) rs_write_queue_flush(queue);
    }
    check_error(w);
}

static writer begin(VALUE self, VALUE timeout, const char *what) {
    writer w = {.timeout = timeout, .what = what};
    w.stream = rsb_stream_get(self, &w.machine);
    if (RS_UNLIKELY(w.stream->write_closed)) rb_raise(rsb_eClosed, "%s: the stream is closed for writing", what);
    if (RS_UNLIKELY(w.stream->shaking)) {
        rb_raise(rsb_eUsage, "%s: another strand is at the TLS handshake; wait until it is done", what);
    }
    check_error(&w);
    rsb_stream_fd(w.machine, w.stream);
    return w;
}

/* Makes room for all bytes, or raises before any is queued. */
static void reserve(writer *w, size_t bytes) {
    rs_write_queue *queue = &w->stream->write_queue;
    if (RS_LIKELY(rs_write_queue_reserve(queue, bytes))) return;
    rsb_collect_for(bytes);
    if (!rs_write_queue_reserve(queue, bytes)) rsb_fail_memory();
}

static void put(writer *w, VALUE string) {
    rs_write_queue_put(&w->stream->write_queue, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

void rsb_stream_put(VALUE self, VALUE string, const char *what) {
    writer w = begin(self, Qundef, what);
    reserve(&w, (size_t)RSTRING_LEN(string));
    put(&w, string);
}

bool rsb_stream_try_put(rsb_stream *stream, const void *bytes, size_t len) {
    if (stream->closed || stream->write_closed || stream->shaking || !stream->write_queue.machine) return false;
    return rs_write_queue_put(&stream->write_queue, bytes, len) == (int64_t)len;
}

/* A strand whose peer reads as fast as it writes never waits, so it gives way at the end of its turn. */
static void give_way(writer *w) {
    if (RS_LIKELY(!rs_turn_ends(w->machine->engine))) return;
    rsb_end_turn(w->machine);
    rsb_stream_get(w->stream->self, &w->machine);
}

static void keep_below(writer *w) {
    if (RS_LIKELY(rs_write_queue_len(&w->stream->write_queue) <= w->stream->high_water)) return;
    give_way(w);
    w->deadline_ns = rsb_stream_deadline(w->machine, w->stream, w->timeout);
    wait_until_left(w, w->stream->high_water);
}

static VALUE string_of(VALUE object, const char *what) {
    VALUE string = rb_check_string_type(object);
    if (NIL_P(string)) rb_raise(rsb_eUsage, "%s: expected a String, got %" PRIsVALUE, what, rsb_inspect(object));
    return string;
}

/* Options come last, in a Hash: no String is one. */
static VALUE options_in(int *argc, const VALUE *argv) {
    if (*argc == 0 || !RB_TYPE_P(argv[*argc - 1], T_HASH)) return Qnil;
    return argv[--*argc];
}

static VALUE write_all(int argc, VALUE *argv, VALUE self, const char *what, bool line) {
    VALUE options = options_in(&argc, argv);
    size_t bytes = 0;
    for (int i = 0; i < argc; i++) argv[i] = string_of(argv[i], what); /* first: to_str of the program may do anything */
    writer w = begin(self, rsb_stream_options_of(options, 0, NULL).timeout, what);
    for (int i = 0; i < argc; i++) bytes += (size_t)RSTRING_LEN(argv[i]);
    reserve(&w, bytes + line);
    for (int i = 0; i < argc; i++) put(&w, argv[i]);
    if (line) rs_write_queue_put(&w.stream->write_queue, "\n", 1);
    keep_below(&w);
    return SIZET2NUM(bytes + line);
}

/* Writes the Strings, one after the other. They leave after the strands that are ready have had their turn, together with other
 * bytes written until then. While more bytes than the high-water mark have not left, it waits. If that wait is cancelled or times
 * out, the bytes leave all the same.
 *
 * May switch strands.
 *
 * @param strings [Array<String>]
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Integer] bytes
 * @raise [UsageError, ClosedError, TimeoutError]
 * @raise [SystemCallError] when these bytes, or bytes written before, cannot leave
 * @since 0.1.0
 */
static VALUE stream_write(int argc, VALUE *argv, VALUE self) { return write_all(argc, argv, self, "write", false); }

/* Like {#write}, with LF after the last String.
 *
 * May switch strands.
 *
 * @param strings [Array<String>]
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Integer] bytes
 * @raise (see #write)
 * @since 0.1.0
 */
static VALUE stream_write_line(int argc, VALUE *argv, VALUE self) { return write_all(argc, argv, self, "write_line", true); }

/* Sends close_notify after all bytes have left. In a close, an error of that does not raise: the other side may be gone. */
static void end_session(writer *w) {
    rsb_stream *stream = w->stream;
    while (!rsb_tls_has_ended(stream->tls)) {
        rs_request request = {.kind = RS_OP_POLL, .fd = stream->write_queue.fd};
        int64_t result = rsb_tls_end(stream->tls, &request.poll.events);
        if (result == -EAGAIN) {
            rsb_raise_refusal(w->machine);
            result = rsb_perform(w->machine, &request, &(rsb_op_wait){.answers_close = true, .deadline_ns = w->deadline_ns});
            if (w->closes && (stream->closed || result < 0)) return;
            rsb_stream_get(stream->self, &w->machine);
            if (result == RSB_TIME_IS_UP) rsb_stream_timed_out(stream, w->timeout, w->what);
            continue;
        }
        if (result < 0 && !w->closes) rsb_stream_refused(w->machine, stream, result, w->what, stream->fd);
        return;
    }
}

/* Whether a reset could lose bytes: some have not been acknowledged (SIOCOUTQ in tcp(7)). Unix sockets are not reset so. */
static bool may_lose(int fd) {
    int domain = AF_UNIX, bytes = 0;
    socklen_t len = sizeof(domain);
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
    return domain != AF_UNIX && ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/* Waits for session tickets, because those that come after the close reset the connection (rsb_tls_sweep). A server that sends
 * none closes its side when it has our close_notify. */
static void await_tickets(writer *w) {
    rsb_stream *stream = w->stream;
    bool shut = false, more = false;
    while (!stream->closed && rsb_tls_sweep(stream->tls)) {
        rs_request request = {.kind = RS_OP_POLL, .fd = rsb_stream_fd(w->machine, stream), .poll.events = POLLIN};
        bool heard = rsb_tls_has_heard(stream->tls);
        if (heard && (more || !may_lose(request.fd))) return;
        more = heard;
        if (!shut) shutdown(request.fd, SHUT_WR);
        shut = true;
        int64_t deadline_ns = rsb_deadline_after(w->machine, heard ? MORE_TICKETS_NS : TICKETS_NS);
        if (w->deadline_ns < deadline_ns) deadline_ns = w->deadline_ns;
        rsb_raise_refusal(w->machine);
        rsb_op_wait wait = {.answers_close = true, .deadline_ns = deadline_ns};
        if (rsb_perform(w->machine, &request, &wait) < 0) return;
    }
}

void rsb_stream_drain(rsb_machine *machine, rsb_stream *stream, VALUE timeout) {
    writer w = {.machine = machine, .stream = stream, .timeout = timeout, .what = "close", .closes = true};
    if (stream->write_queue.error && stream->error_raised) return;
    w.deadline_ns = rsb_stream_deadline(machine, stream, timeout);
    wait_until_left(&w, 0);
    if (!stream->tls || stream->closed) return;
    end_session(&w);
    await_tickets(&w);
}

void rsb_write_queue_end_op(rsb_machine *machine, rs_write_queue *queue) {
    while (rs_write_queue_stop(queue)) {
        rsb_wait(machine, RS_WAIT_LIST, RS_PARK_SHIELDED, RS_NEVER, &queue->waiters, &for_departure, NULL);
    }
}

static void leave_within(rsb_machine *machine, rs_write_queue *queue, int64_t deadline_ns) {
    VALUE self = ((rsb_stream *)queue)->self; /* nothing else may keep the stream alive once all bytes have left */
    rs_write_queue_flush(queue);
    while (queue->op && rs_now(machine->engine) < deadline_ns) {
        rsb_wait(machine, RS_WAIT_LIST, RS_PARK_SHIELDED, deadline_ns, &queue->waiters, &for_departure, NULL);
        rs_write_queue_flush(queue);
    }
    rsb_write_queue_end_op(machine, queue);
    RB_GC_GUARD(self);
}

/* Written bytes have LAST_BYTES_NS to leave. */
static void streams_end(rsb_machine *machine) {
    int64_t deadline_ns = rsb_deadline_after(machine, LAST_BYTES_NS);
    for (rs_write_queue *queue = NULL; (queue = rs_write_queues_next(machine->engine, queue));) {
        if (rs_write_queue_len(queue) == 0) continue;
        leave_within(machine, queue, deadline_ns);
        if (rs_write_queue_len(queue) == 0) queue = NULL; /* begin again: streams may have been made and closed meanwhile */
    }
}

/* Sends what was written last in a run or in the program: the machine may have no further tick. In a forked child that has not
 * used its machine, those bytes are the parent's. */
static VALUE machine_flush_streams(VALUE class) {
    rsb_machine *machine = rsb_existing();
    if (machine && machine->fork_count == rsb_forks) rs_flush(machine->engine);
    return Qnil;
}

static writer begin_flush(int argc, VALUE *argv, VALUE self, const char *what) {
    VALUE options;
    rb_scan_args(argc, argv, "0:", &options);
    writer w = begin(self, rsb_stream_options_of(options, 0, NULL).timeout, what);
    give_way(&w);
    w.deadline_ns = rsb_stream_deadline(w.machine, w.stream, w.timeout);
    return w;
}

/* Waits until the kernel has all written bytes.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [self]
 * @raise (see #write)
 * @since 0.1.0
 */
static VALUE stream_flush(int argc, VALUE *argv, VALUE self) {
    writer w = begin_flush(argc, argv, self, "flush");
    wait_until_left(&w, 0);
    return self;
}

/* Waits until all written bytes have left, and closes the writing side: the other side reads the end of the stream. Reading goes
 * on.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [nil]
 * @raise [UnsupportedError] when it is no socket
 * @raise (see #write)
 * @since 0.1.0
 */
static VALUE stream_close_write(int argc, VALUE *argv, VALUE self) {
    writer w = begin_flush(argc, argv, self, "close_write");
    if (!w.stream->socket) rb_raise(rsb_eUnsupported, "close_write: only a socket can be closed in one direction");
    do wait_until_left(&w, 0);
    while (rs_write_queue_len(&w.stream->write_queue) > 0); /* others may have written meanwhile */
    w.stream->write_closed = true;
    if (w.stream->tls) {
        end_session(&w);
        return Qnil;
    }
    rs_request request = {.kind = RS_OP_SHUTDOWN, .fd = rsb_stream_fd(w.machine, w.stream), .shutdown.how = SHUT_WR};
    rsb_request(w.machine, &request, Qnil, RSB_OUT, "close_write");
    return Qnil;
}

static rsb_part part = {.ends = streams_end};

void rsb_init_stream_write(void) {
    rsb_register_part(&part);
    rb_define_method(rsb_cStream, "write", stream_write, -1);
    rb_define_method(rsb_cStream, "write_line", stream_write_line, -1);
    rb_define_method(rsb_cStream, "flush", stream_flush, -1);
    rb_define_method(rsb_cStream, "close_write", stream_close_write, -1);
    rb_define_private_method(rb_singleton_class(rsb_cMachine), "flush_streams", machine_flush_streams, 0);
}
