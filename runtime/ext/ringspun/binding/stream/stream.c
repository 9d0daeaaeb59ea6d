/* stream: Ringspun::Stream as an object: how it is made, marked and closed, and what all its methods share. */
#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <ruby/encoding.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIGH_WATER 65536

VALUE rsb_cStream;
static ID id_timeout, id_stream, id_blamed, option_names[3];

static void stream_mark(void *data) {
    rsb_stream *stream = data;
    rb_gc_mark(stream->machine);
    rb_gc_mark(stream->io);
    rb_gc_mark(stream->shown);
    if (stream->tls) rsb_tls_mark(stream->tls);
}

/* write_queue.machine is NULL if the machine was closed. If its thread has ended without closing it, the machine may be freed
 * before or after its streams. Then, and at the end of the process, an op may be in flight here; otherwise an op keeps its stream
 * alive. */
static void stream_free(void *data) {
    rsb_stream *stream = data;
    if (stream->write_queue.machine) {
        rs_buffer_clear(stream->write_queue.machine->pool, &stream->in);
        rs_write_queue_abandon(&stream->write_queue);
    }
    free(stream->in.bytes);
    rs_source_drop(&stream->watched);
    xfree(stream->tls);
    xfree(stream);
}

static void stream_compact(void *data) {
    rsb_stream *stream = data;
    stream->self = rb_gc_location(stream->self);
}

static size_t stream_size(const void *data) {
    const rsb_stream *stream = data;
    return sizeof(*stream) + stream->in.capacity + stream->write_queue.filling.capacity + stream->write_queue.sending.capacity;
}

static const rb_data_type_t stream_type = {
    .wrap_struct_name = "Ringspun::Stream",
    .function = {.dmark = stream_mark, .dfree = stream_free, .dsize = stream_size, .dcompact = stream_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE stream_allocate(VALUE class) {
    rsb_stream *stream;
    VALUE self = TypedData_Make_Struct(class, rsb_stream, &stream_type, stream);
    stream->self = self;
    stream->machine = stream->io = stream->shown = Qnil;
    stream->fd = -1;
    return self;
}

rsb_stream *rsb_stream_peek(VALUE self) {
    rsb_stream *stream;
    TypedData_Get_Struct(self, rsb_stream, &stream_type, stream);
    return stream;
}

rsb_stream *rsb_stream_get(VALUE self, rsb_machine **machine) {
    rsb_stream *stream = rsb_stream_peek(self);
    if (RS_UNLIKELY(stream->closed)) rb_raise(rsb_eClosed, "the stream is closed");
    if (RS_UNLIKELY(NIL_P(stream->machine))) rb_raise(rsb_eUsage, "the stream was not initialized; call super in initialize");
    *machine = rsb_machine_of(stream->machine);
    if (RS_UNLIKELY(stream->fork_count != (*machine)->fork_count)) {
        stream->fork_count = (*machine)->fork_count;
        stream->reading = false; /* the reading strand is the parent's */
    }
    return stream;
}

int rsb_stream_fd(rsb_machine *machine, rsb_stream *stream) {
    if (!RB_FIXNUM_P(stream->io) && (!stream->made_io || RTEST(rb_io_closed_p(stream->io)))) return rsb_io_fd(machine, stream->io);
    bool same = rs_descriptor_generation(machine->engine.descriptors, stream->fd) == stream->write_queue.generation;
    if (RS_UNLIKELY(!same)) rsb_fail(-EBADF, "stream", stream->fd); /* closed without the stream; the number may be in use again */
    return stream->fd;
}

bool rsb_is_stream(VALUE object) { return rb_typeddata_is_kind_of(object, &stream_type); }

rs_source *rsb_stream_source(VALUE self) {
    rsb_machine *machine;
    return &rsb_stream_get(self, &machine)->watched;
}

bool rsb_stream_look(VALUE self, int *fd) {
    rsb_machine *machine;
    rsb_stream *stream = rsb_stream_get(self, &machine);
    if (rs_buffer_len(&stream->in) > stream->to_skip || stream->ended) return true;
    if (stream->tls && !stream->reading && !rsb_tls_is_empty(machine, stream)) return true;
    *fd = rsb_stream_fd(machine, stream);
    return false;
}

/* --- whose fault an error is --- */

/* By its number: an error that somebody keeps does not keep the stream. */
static VALUE blame(VALUE self, VALUE error) { return OBJ_FROZEN(error) ? Qnil : rb_ivar_set(error, id_blamed, rb_obj_id(self)); }

void rsb_stream_blame(const rsb_stream *stream, VALUE error) {
    if (stream) blame(stream->self, error);
    rb_exc_raise(error);
}

bool rsb_stream_says_gone(int64_t result) { return result == -ECONNRESET || result == -EPIPE || result == -ETIMEDOUT; }

/* Whether the stream has raised that error, for what its other side has done or has not done. */
static VALUE stream_peers_fault_p(VALUE self, VALUE error) {
    VALUE blamed = rb_attr_get(error, id_blamed);
    return !NIL_P(blamed) && rb_equal(blamed, rb_obj_id(self)) ? Qtrue : Qfalse;
}

void rsb_stream_refused(rsb_machine *machine, rsb_stream *stream, int64_t result, const char *what, int fd) {
    if (result == -EBADF) rsb_stream_fd(machine, stream);
    if (rsb_stream_says_gone(result)) rsb_stream_blame(stream, rb_syserr_new((int)-result, what));
    if (result == -EPROTO && stream->tls) rsb_tls_fail(stream, what);
    rsb_refused(machine, result, what, fd);
}

/* --- options --- */

rsb_stream_options rsb_stream_options_of(VALUE options, int count, const ID *names) {
    rsb_stream_options found = {Qundef, {Qundef, Qundef}};
    if (NIL_P(options)) return found;
    ID all[3] = {id_timeout};
    VALUE given[3] = {Qundef, Qundef, Qundef};
    for (int i = 0; i < count; i++) all[i + 1] = names[i];
    rsb_options(options, count + 1, all, given);
    return (rsb_stream_options){given[0], {given[1], given[2]}};
}

int64_t rsb_stream_deadline(rsb_machine *machine, const rsb_stream *stream, VALUE timeout) {
    if (RS_UNLIKELY(timeout != Qundef)) return rsb_deadline(machine, timeout, "timeout");
    return rsb_deadline_after(machine, stream->timeout_ns);
}

VALUE rsb_stream_time_is_up(const rsb_stream *stream, VALUE timeout, const char *what) {
    if (NIL_P(timeout)) return rsb_error(rsb_eTimeout, "%s: the deadline has passed", what);
    VALUE seconds = timeout == Qundef ? rsb_seconds(stream->timeout_ns) : timeout;
    return rsb_error(rsb_eTimeout, "%s: timed out after %" PRIsVALUE " s", what, seconds);
}

void rsb_stream_timed_out(const rsb_stream *stream, VALUE timeout, const char *what) {
    rsb_stream_blame(stream, rsb_stream_time_is_up(stream, timeout, what));
}

static bool is_socket(rsb_machine *machine, int fd) {
    struct stat st;
    if (rs_is_simulated(&machine->engine)) return rs_sim_is_socket(&machine->engine, fd);
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

bool rsb_stream_is_open(const rs_write_queue *queue) {
    VALUE io = rb_io_get_write_io(((const rsb_stream *)queue)->io);
    return !RTEST(rb_io_closed_p(io)) && rb_io_descriptor(io) == queue->fd;
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
    rs_write_queue_open(&machine->engine, &stream->write_queue, stream->socket ? RS_OP_SEND : RS_OP_WRITE, out);
    if (RB_TYPE_P(io, T_FILE)) rs_write_queue_ask(&stream->write_queue, rsb_stream_is_open);
    if (!NIL_P(tls_socket)) rsb_tls_adopt(machine, stream, tls_socket);
    return self;
}

/* Sets how many seconds each call may wait from now on, unless it has a timeout of its own; nil: no limit.
 *
 * @since 0.1.0 */
static VALUE stream_set_timeout(VALUE self, VALUE seconds) {
    rsb_machine *machine;
    rsb_stream_get(self, &machine)->timeout_ns = rsb_timeout_ns(seconds);
    return seconds;
}

/* @return [Float, nil] seconds; nil: no limit
 * @since 0.1.0 */
static VALUE stream_timeout(VALUE self) {
    int64_t timeout_ns = rsb_stream_peek(self)->timeout_ns;
    return timeout_ns == RS_NEVER ? Qnil : rsb_seconds(timeout_ns);
}

/* @return [Integer, IO] the descriptor or the IO of the stream */
static VALUE stream_over(VALUE self) { return rsb_stream_peek(self)->io; }

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
    if (rs_is_simulated(&machine->engine)) rb_raise(rsb_eUnsupported, "to_io: a simulated descriptor is no IO's");
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

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE stream_closed_p(VALUE self) { return rsb_stream_peek(self)->closed ? Qtrue : Qfalse; }

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
    rs_buffer_clear(machine->engine.pool, &stream->in);
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
    if (rs_is_simulated(&machine->engine)) return;
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

/* Keeps streams alive whose bytes have not left. */
static void streams_mark(rsb_machine *machine) {
    for (rs_write_queue *queue = NULL; (queue = rs_write_queues_next(&machine->engine, queue));) {
        if (rs_write_queue_len(queue) > 0 || queue->op) rb_gc_mark(((rsb_stream *)queue)->self);
    }
}

static rsb_part part = {.mark = streams_mark};

void rsb_init_stream(void) {
    rsb_register_part(&part);
    id_timeout = option_names[0] = rb_intern("timeout");
    option_names[1] = rb_intern("high_water");
    option_names[2] = rb_intern("encoding");
    rsb_cStream = rb_define_class_under(rsb_mRingspun, "Stream", rb_cObject);
    rb_define_alloc_func(rsb_cStream, stream_allocate);
    rb_define_method(rsb_cStream, "initialize", stream_initialize, -1);
    rb_define_method(rsb_cStream, "initialize_copy", rsb_refuse_copy, 1);
    rb_define_method(rsb_cStream, "timeout", stream_timeout, 0);
    rb_define_method(rsb_cStream, "timeout=", stream_set_timeout, 1);
    id_stream = rb_intern("ringspun_stream");
    id_blamed = rb_intern("ringspun_blamed");
    rb_define_private_method(rsb_cStream, "blame", blame, 1);
    rb_define_private_method(rsb_cStream, "peers_fault?", stream_peers_fault_p, 1);
    rb_define_method(rsb_cStream, "to_io", stream_to_io, 0);
    rb_define_private_method(rsb_cStream, "over", stream_over, 0);
    rb_define_method(rsb_cStream, "closed?", stream_closed_p, 0);
    rb_define_method(rsb_cStream, "close", stream_close, -1);
    rsb_init_stream_read();
    rsb_init_stream_write();
    rsb_init_stream_copy();
    rsb_init_stream_tls();
}
