/* copy: what comes on one stream goes on to another descriptor, and never comes into the program.
 *
 * Two sockets need a pipe between them, and what is in there has left the first and not reached the second. So a copy that is cut
 * short, by whatever, gives that back to the stream: the next who reads finds it (end_copy). Meanwhile nobody else may read.
 */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than a pipe has by itself, and as much as any user may ask for. Where the kernel has no more to give, it stays as it is. */
#define PIPE_SIZE 262144

typedef struct {
    rsb_machine *machine;
    rsb_stream *stream;
    VALUE self, to, timeout;
    int to_fd;
    uint32_t to_generation;
    VALUE pipe[2];              /* nil: none is needed */
    rsb_unshared *ends;         /* the same two, for a forked child; NULL: of a simulated pipe */
    uint64_t wanted, done;
    uint64_t held;              /* bytes in the pipe */
    bool unfit;                 /* these two cannot be spliced */
} copier;

static bool is_pipe(rsb_machine *machine, VALUE io) {
    struct stat st;
    return !rs_is_simulated(&machine->engine) && fstat(rsb_io_fd(machine, io), &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Each piece has its own time. 0 and more: moved. While this waited at the one side, the other may have been closed. */
static int64_t move(copier *c, rsb_mover *mover, uint64_t len) {
    rsb_mover_check(mover);
    mover->deadline_ns = rsb_stream_deadline(c->machine, c->stream, c->timeout);
    int64_t moved = rsb_move(mover, len);
    if (moved == RSB_TIME_IS_UP) rsb_stream_timed_out(c->stream, c->timeout, mover->what);
    bool refused = moved == -EPERM || moved == -ENOSYS || moved == -EACCES; /* by a sandbox */
    if ((moved == -EINVAL && c->done == 0) || refused) {
        c->unfit = true;
        return 0;
    }
    if (moved < 0) rsb_fail_move(mover, moved);
    return moved;
}

static void give_way(copier *c) {
    rsb_after_inline(c->machine);
    rsb_stream_get(c->self, &c->machine);
}

static void copy_by_way_of_pipe(copier *c, rsb_mover *in, rsb_mover *out) {
    while (c->done < c->wanted) {
        give_way(c);
        c->held = (uint64_t)move(c, in, c->wanted - c->done);
        if (c->held == 0) {
            c->stream->ended = !c->unfit;
            return;
        }
        while (c->held > 0) {
            uint64_t moved = (uint64_t)move(c, out, c->held);
            if (c->unfit) return;
            c->held -= moved;
            c->done += moved;
        }
    }
}

static void copy_at_once(copier *c, rsb_mover *mover) {
    while (c->done < c->wanted) {
        give_way(c);
        uint64_t moved = (uint64_t)move(c, mover, c->wanted - c->done);
        if (moved == 0) {
            c->stream->ended = !c->unfit;
            return;
        }
        c->done += moved;
    }
}

static VALUE copy(VALUE argument) {
    copier *c = (copier *)argument;
    rsb_stream_get(c->self, &c->machine);
    rsb_stream_fd(c->machine, c->stream);
    rsb_check_descriptor(c->machine, c->to, c->to_fd, c->to_generation, "copy_to");
    if (NIL_P(c->pipe[0])) {
        rsb_mover mover = rsb_mover_of(c->machine, RS_OP_SPLICE, c->stream->io, c->to, "copy_to");
        c->unfit = !rsb_mover_fits(&mover);
        if (!c->unfit) copy_at_once(c, &mover);
        return Qnil;
    }
    rsb_mover in = rsb_mover_of(c->machine, RS_OP_SPLICE, c->stream->io, c->pipe[1], "copy_to");
    rsb_mover out = rsb_mover_of(c->machine, RS_OP_SPLICE, c->pipe[0], c->to, "copy_to");
    c->unfit = !rsb_mover_fits(&in) || !rsb_mover_fits(&out);
    if (!c->unfit) copy_by_way_of_pipe(c, &in, &out);
    return Qnil;
}

/* Into memory of the op's own, for the stream may be closed while a simulated kernel takes its time. */
static int64_t read_pipe(copier *c, void *bytes, size_t len) {
    rs_request request = {.kind = RS_OP_READ, .fd = FIX2INT(c->pipe[0]),
                          .transfer = {.address = bytes, .len = len, .offset = -1}};
    int64_t count = rs_try(&c->machine->engine, &request);
    if (count != -EAGAIN) return count;
    request.transfer.address = request.owned = rs_alloc(len);
    rsb_op_wait wait = {.flags = RS_PARK_SHIELDED, .answer = bytes, .answer_size = len};
    return rsb_perform(c->machine, &request, &wait);
}

/* By a signal handler that ran on top of the wait, and this is the child: the bytes are the parent's. */
static bool was_forked(const copier *c) { return c->ends && c->ends[0].fd < 0; }

static VALUE give_back(VALUE argument) {
    copier *c = (copier *)argument;
    if (!c->machine->open || was_forked(c)) return Qnil;
    char bytes[4096];
    rs_buffer *in = &c->stream->in;
    rs_pool *pool = c->machine->engine.pool;
    bool room = c->held == 0 || c->stream->closed || rs_buffer_room(pool, in, c->held);
    while (c->held > 0) {
        int64_t count = read_pipe(c, bytes, c->held < sizeof(bytes) ? c->held : sizeof(bytes));
        if (count <= 0) break;
        c->held -= (uint64_t)count;
        if (c->stream->closed) continue;
        if (!room || !rs_buffer_put(pool, in, bytes, (size_t)count)) c->stream->gap = true;
    }
    if (rs_buffer_len(in) == 0) rs_buffer_clear(pool, in);
    return Qnil;
}

static VALUE make_pipe(VALUE argument) {
    copier *c = (copier *)argument;
    rs_request request = {.kind = RS_OP_PIPE, .fd = -1};
    VALUE pair = rsb_make_pair(c->machine, &request, &request.pipe.pair, "copy_to");
    bool simulated = rs_is_simulated(&c->machine->engine);
    if (!simulated) c->ends = rs_alloc(sizeof(rsb_unshared) * 2);
    for (int i = 0; i < 2; i++) {
        c->pipe[i] = RARRAY_AREF(pair, i);
        if (!simulated) rsb_unshare(&c->ends[i], FIX2INT(c->pipe[i]));
    }
    if (!simulated) fcntl(FIX2INT(c->pipe[0]), F_SETPIPE_SZ, PIPE_SIZE);
    return Qtrue;
}

/* A sandbox forbids it, or no descriptor is left. */
static VALUE no_pipe(VALUE unused, VALUE error) { return Qfalse; }

static VALUE close_pipe(VALUE argument) {
    copier *c = (copier *)argument;
    for (int i = 0; i < 2; i++) {
        VALUE end = c->pipe[i];
        c->pipe[i] = Qnil;
        if (NIL_P(end) || (c->ends && rsb_unshared_leave(&c->ends[i]) < 0)) continue;
        if (c->machine->open) rsb_close(c->machine, end);
        else if (c->ends) close(FIX2INT(end));
    }
    free(c->ends);
    return Qnil;
}

static VALUE end_copy(VALUE argument) {
    copier *c = (copier *)argument;
    rb_ensure(give_back, argument, close_pipe, argument);
    c->stream->reading = false;
    return Qnil;
}

/* For copy_to, when nothing is buffered any more: nil when that is for Ruby to do, by reading and writing. */
static VALUE stream_splice_to(VALUE self, VALUE to, VALUE length, VALUE timeout) {
    copier c = {.self = self, .to = rsb_writing_end(to), .timeout = timeout, .pipe = {Qnil, Qnil}};
    c.wanted = NIL_P(length) ? UINT64_MAX : (uint64_t)NUM2ULL(length);
    if (NIL_P(timeout)) c.timeout = Qundef;
    c.stream = rsb_stream_begin_read(self, c.timeout, "copy_to", &c.machine);
    if (!rsb_stream_is_plain(c.stream)) return Qnil;
    if (c.stream->ended || rs_buffer_len(&c.stream->in) > 0) return INT2FIX(0);
    c.to_fd = rsb_io_fd(c.machine, c.to);
    c.to_generation = rs_descriptor_generation(c.machine->engine.descriptors, c.to_fd);
    bool needs_pipe = !is_pipe(c.machine, c.stream->io) && !is_pipe(c.machine, c.to);
    if (needs_pipe && !RTEST(rb_rescue2(make_pipe, (VALUE)&c, no_pipe, Qnil, rb_eSystemCallError, (VALUE)0))) return Qnil;
    c.stream->reading = true;
    rb_ensure(copy, (VALUE)&c, end_copy, (VALUE)&c);
    return c.unfit && c.done == 0 ? Qnil : ULL2NUM(c.done);
}

static VALUE string_of(const rsb_stream *stream, VALUE max) {
    size_t len = rs_buffer_len(&stream->in);
    if (!NIL_P(max) && NUM2ULL(max) < len) len = (size_t)NUM2ULL(max);
    return rb_str_new(len > 0 ? rs_buffer_at(&stream->in) : "", (long)len);
}

/* A copy of what has come and is not taken yet, at most so many bytes of it. */
static VALUE stream_buffered(VALUE self, VALUE max, VALUE timeout) {
    rsb_machine *machine;
    return string_of(rsb_stream_begin_read(self, NIL_P(timeout) ? Qundef : timeout, "copy_to", &machine), max);
}

/* The same goes on to another stream: how many bytes. It has them or this one has, whatever happens. */
static VALUE stream_pass_on(VALUE self, VALUE other, VALUE max, VALUE timeout) {
    rsb_machine *machine;
    rsb_stream *stream = rsb_stream_begin_read(self, NIL_P(timeout) ? Qundef : timeout, "copy_to", &machine);
    VALUE bytes = string_of(stream, max);
    rsb_stream_put(other, bytes, "copy_to");
    rs_buffer_drop(machine->engine.pool, &stream->in, (size_t)RSTRING_LEN(bytes));
    stream->searched = 0;
    return LONG2NUM(RSTRING_LEN(bytes));
}

static VALUE stream_plain_p(VALUE self) {
    rsb_machine *machine;
    return rsb_stream_is_plain(rsb_stream_get(self, &machine)) ? Qtrue : Qfalse;
}

void rsb_init_stream_copy(void) {
    rb_define_private_method(rsb_cStream, "splice_to", stream_splice_to, 3);
    rb_define_private_method(rsb_cStream, "pass_on", stream_pass_on, 3);
    rb_define_private_method(rsb_cStream, "buffered", stream_buffered, 2);
    rb_define_private_method(rsb_cStream, "plain?", stream_plain_p, 0);
}
