/* open: what a stream is made over and shown as, and its close. */
#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <ruby/encoding.h>
#include <sys/stat.h>
#include <unistd.h>

/* Unwritten bytes from which on a writer waits, where nothing else was asked for: what a pipe holds, pipe(7). */
#define HIGH_WATER 65536

static ID id_stream, option_names[3];

static bool is_socket(rsb_machine *machine, int fd) {
    struct stat st;
    if (rs_is_simulated(machine->engine)) return rs_sim_is_socket(machine->engine, fd);
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* A stream over a descriptor or an IO. The stream owns it from now on: it is closed with the stream, and nothing else may read or
 * write it.
 *
 * @param io [Integer, IO, OpenSSL::SSL::SSLSocket] a socket, a pipe, a terminal or a file; or a TLS connection after its
 *   handshake, whose own methods must not be used any more
 * @param timeout [Numeric, nil] seconds that each call may wait, unless it has a timeout of its own; nil: no limit
 * @param high_water [Integer] bytes; a write waits while more bytes than that have not left
 * @param encoding [Encoding, String] of the Strings that it returns; binary by default
 * @raise [UsageError, ClosedError]
 * @since 0.1.0
 */
static VALUE stream_initialize(int argc, VALUE *argv, VALUE self) {
    VALUE io, options, given[3] = {Qundef, Qundef, Qundef};
    rb_scan_args(argc, argv, "1:", &io, &options);
    if (!NIL_P(options)) rsb_options(options, 3, option_names, given);
    rsb_stream *stream = rsb_stream_peek(self);
    rsb_machine *machine = rsb_current();
    if (!NIL_P(stream->machine)) rb_raise(rsb_eUsage, "the stream was initialized already");
    VALUE tls_socket = rsb_is_tls_socket(io) ? io : Qnil;
    if (!NIL_P(tls_socket)) io = rsb_tls_io(machine, tls_socket);
    /* No object with to_io: it would do something with the bytes itself. */
    if (!RB_INTEGER_TYPE_P(io) && !RB_TYPE_P(io, T_FILE)) {
        rb_raise(rsb_eUsage, "a stream is over a descriptor or an IO, got %" PRIsVALUE, rsb_inspect(io));
    }
    int fd = rsb_io_fd(machine, io), out = RB_INTEGER_TYPE_P(io) ? fd : rsb_io_fd(machine, rsb_writing_end(io));
    int64_t timeout_ns = given[0] == Qundef ? RS_NEVER : rsb_timeout_ns(given[0]);
    stream->high_water = given[1] == Qundef ? HIGH_WATER : (size_t)rsb_integer(given[1], 1, INT32_MAX, "high_water");
    stream->encoding = given[2] == Qundef ? rb_ascii8bit_encindex() : rb_enc_to_index(rb_to_encoding(given[2]));
    stream->timeout_ns = timeout_ns;
    stream->machine = machine->self;
    stream->fork_count = machine->fork_count;
    stream->io = io;
    stream->fd = fd;
    stream->socket = is_socket(machine, fd);
    rs_write_queue_open(machine->engine, &stream->write_queue, stream->socket ? RS_OP_SEND : RS_OP_WRITE, out);
    if (RB_TYPE_P(io, T_FILE)) rs_write_queue_ask(&stream->write_queue, rsb_stream_is_open);
    if (!NIL_P(tls_socket)) rsb_tls_adopt(machine, stream, tls_socket);
    return self;
}

/* --- as an IO --- */

static VALUE io_for(rsb_machine *machine, const rsb_stream *stream) {
    VALUE arguments[3] = {stream->io, INT2NUM(rsb_mode_of(machine, stream->fd) & O_ACCMODE), rb_hash_new()};
    rb_hash_aset(arguments[2], ID2SYM(rb_intern("autoclose")), Qfalse);
    return rb_funcallv_kw(rb_cIO, rb_intern("for_fd"), 3, arguments, RB_PASS_KEYWORDS);
}

static bool is_shown(const rsb_stream *stream) {
    if (NIL_P(stream->shown)) return false;
    return stream->shown == stream->io || !RTEST(rb_funcall(stream->shown, rb_intern("closed?"), 0));
}

/* The stream's IO, or one for its descriptor: for IO.select, IO#wait and the like. Reading or writing it would bypass the
 * stream's buffers. It is always the same object, is closed with the stream, and does not close the descriptor itself; if it was
 * closed, this makes a new one. In a run it is readable while the stream has bytes in its buffer.
 *
 * @return [IO]
 * @raise [UsageError] when the stream is closed
 * @raise [UnsupportedError] on a simulated machine, whose descriptors are no IO's
 * @since 0.1.0 */
static VALUE stream_to_io(VALUE self) {
    rsb_stream *stream = rsb_stream_peek(self);
    if (stream->closed) rb_raise(rsb_eUsage, "to_io: the stream is closed; ask before");
    if (is_shown(stream)) return stream->shown;
    rsb_machine *machine;
    rsb_stream_get(self, &machine);
    if (rs_is_simulated(machine->engine)) rb_raise(rsb_eUnsupported, "to_io: a simulated descriptor is no IO's");
    rsb_stream_fd(machine, stream);
    stream->shown = RB_INTEGER_TYPE_P(stream->io) ? io_for(machine, stream) : stream->io;
    if (!OBJ_FROZEN(stream->shown)) rb_ivar_set(stream->shown, id_stream, self);
    return stream->shown;
}

bool rsb_stream_holds(const rsb_machine *machine, VALUE io) {
    VALUE self = rb_attr_get(io, id_stream);
    if (RS_LIKELY(NIL_P(self))) return false;
    const rsb_stream *stream = rsb_stream_peek(self);
    int fd;
    return !stream->closed && stream->machine == machine->self && rsb_stream_look(self, &fd);
}

/* Closes the IO of #to_io: its number may soon mean another descriptor. */
static VALUE stop_showing(VALUE argument) {
    rsb_stream *stream = (rsb_stream *)argument;
    VALUE shown = stream->shown;
    stream->shown = Qnil;
    if (NIL_P(shown)) return Qnil;
    if (!OBJ_FROZEN(shown)) rb_ivar_set(shown, id_stream, Qnil);
    return shown == stream->io ? Qnil : rb_funcall(shown, rb_intern("close"), 0);
}

/* --- its end --- */

typedef struct {
    rsb_machine *machine;
    rsb_stream *stream;
    VALUE timeout;
    bool drained;
} end_call;

static VALUE drain(VALUE argument) {
    end_call *call = (end_call *)argument;
    rsb_stream_drain(call->machine, call->stream, call->timeout);
    call->drained = true;
    return Qnil;
}

static VALUE close_descriptor(VALUE argument) {
    end_call *call = (end_call *)argument;
    rsb_stream_fd(call->machine, call->stream); /* raises if it was closed without the stream */
    rsb_close(call->machine, call->stream->io);
    return Qnil;
}

static void forget_bytes(rsb_machine *machine, rsb_stream *stream) {
    rsb_write_queue_end_op(machine, &stream->write_queue); /* if others have closed the descriptor, the op is still in flight */
    rs_buffer_clear(rs_pool_of(machine->engine), &stream->in);
    rs_write_queue_close(&stream->write_queue);
}

/* Runs in any case. If the bytes could not leave, that error is raised, and one of closing is not. */
static VALUE end_stream(VALUE argument) {
    end_call *call = (end_call *)argument;
    if (call->stream->closed) return Qnil; /* another strand has closed it meanwhile */
    call->stream->closed = true;
    int state = 0;
    rb_protect(stop_showing, (VALUE)call->stream, &state);
    rb_protect(close_descriptor, argument, &state);
    forget_bytes(call->machine, call->stream);
    if (state && call->drained) rb_jump_tag(state);
    return Qnil;
}

/* Closes a stream whose machine is closed. The descriptors of a simulated machine are no real ones. */
static void close_alone(rsb_machine *machine, rsb_stream *stream) {
    stream->closed = true;
    stop_showing((VALUE)stream);
    if (rs_is_simulated(machine->engine)) return;
    if (!RB_FIXNUM_P(stream->io)) rb_funcall(stream->io, rb_intern("close"), 0);
    else if (stream->write_queue.error != -EBADF && close(stream->fd) < 0 && errno != EINTR) rsb_fail(-errno, "close", stream->fd);
}

/* Waits until the written bytes have left, and closes the descriptor. Strands that wait for bytes, and later writes, get a
 * ClosedError. The stream is closed also if this raises.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds that the bytes have to leave; nil: no limit
 * @return [nil] also when it is closed already
 * @raise [TimeoutError, SystemCallError] when written bytes have not left, unless another call has raised that error before
 * @since 0.1.0
 */
static VALUE stream_close(int argc, VALUE *argv, VALUE self) {
    VALUE options;
    rb_scan_args(argc, argv, "0:", &options);
    rsb_stream_options with = rsb_stream_options_of(options, 0, NULL);
    rsb_stream *stream = rsb_stream_peek(self);
    if (stream->closed || NIL_P(stream->machine)) return Qnil;
    rsb_machine *machine = rsb_machine_any_thread(stream->machine);
    if (RS_UNLIKELY(!machine->open)) {
        close_alone(machine, stream);
        return Qnil;
    }
    end_call call = {.stream = stream, .timeout = with.timeout};
    rsb_stream_get(self, &call.machine);
    stream->write_closed = true;
    rb_ensure(drain, (VALUE)&call, end_stream, (VALUE)&call);
    RB_GC_GUARD(self);
    return Qnil;
}

void rsb_init_stream_open(void) {
    option_names[0] = rb_intern("timeout");
    option_names[1] = rb_intern("high_water");
    option_names[2] = rb_intern("encoding");
    id_stream = rb_intern("ringspun_stream");
    rb_define_method(rsb_cStream, "initialize", stream_initialize, -1);
    rb_define_method(rsb_cStream, "to_io", stream_to_io, 0);
    rb_define_method(rsb_cStream, "close", stream_close, -1);
}
