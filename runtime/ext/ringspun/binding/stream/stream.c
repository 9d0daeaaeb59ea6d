/* stream: Ringspun::Stream as an object: its memory, and what all its methods share. */
#include "stream.h"

#include <errno.h>

VALUE rsb_cStream;
static ID id_timeout, id_blamed;

static void stream_mark(void *data) {
    rsb_stream *stream = data;
    rb_gc_mark(stream->machine);
    rb_gc_mark(stream->io);
    rb_gc_mark(stream->shown);
    rb_gc_mark(stream->tls_socket);
}

/* write_queue.machine is NULL if the machine was closed. If its thread has ended without closing it, the machine may be freed
 * before or after its streams. Then, and at the end of the process, an op may be in flight here; otherwise an op keeps its stream
 * alive. */
static void stream_free(void *data) {
    rsb_stream *stream = data;
    if (stream->write_queue.machine) {
        rs_buffer_clear(rs_pool_of(stream->write_queue.machine), &stream->in);
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
    stream->machine = stream->io = stream->shown = stream->tls_socket = Qnil;
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
    bool same = rs_descriptor_generation(rs_descriptors_of(machine->engine), stream->fd) == stream->write_queue.generation;
    if (RS_UNLIKELY(!same)) rsb_fail(-EBADF, "stream", stream->fd); /* closed without the stream; the number may be in use again */
    return stream->fd;
}

bool rsb_is_stream(VALUE object) { return rb_typeddata_is_kind_of(object, &stream_type); }

rs_source *rsb_stream_source(VALUE self) {
    rsb_machine *machine;
    return &rsb_stream_get(self, &machine)->watched;
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

bool rsb_stream_is_open(const rs_write_queue *queue) {
    VALUE io = rb_io_get_write_io(((const rsb_stream *)queue)->io);
    return !RTEST(rb_io_closed_p(io)) && rb_io_descriptor(io) == queue->fd;
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

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE stream_closed_p(VALUE self) { return rsb_stream_peek(self)->closed ? Qtrue : Qfalse; }

/* Keeps streams alive whose bytes have not left. */
static void streams_mark(rsb_machine *machine) {
    for (rs_write_queue *queue = NULL; (queue = rs_write_queues_next(machine->engine, queue));) {
        if (rs_write_queue_len(queue) > 0 || queue->op) rb_gc_mark(((rsb_stream *)queue)->self);
    }
}

static rsb_part part = {.mark = streams_mark};

void rsb_init_stream(void) {
    rsb_register_part(&part);
    id_timeout = rb_intern("timeout");
    id_blamed = rb_intern("ringspun_blamed");
    rsb_cStream = rb_define_class_under(rsb_mRingspun, "Stream", rb_cObject);
    rb_define_alloc_func(rsb_cStream, stream_allocate);
    rb_define_method(rsb_cStream, "initialize_copy", rsb_refuse_copy, 1);
    rb_define_method(rsb_cStream, "timeout", stream_timeout, 0);
    rb_define_method(rsb_cStream, "timeout=", stream_set_timeout, 1);
    rb_define_private_method(rsb_cStream, "blame", blame, 1);
    rb_define_private_method(rsb_cStream, "peers_fault?", stream_peers_fault_p, 1);
    rb_define_private_method(rsb_cStream, "over", stream_over, 0);
    rb_define_method(rsb_cStream, "closed?", stream_closed_p, 0);
}
