/* copy: Stream#copy_to by splice(2): bytes go from the stream to another descriptor inside the kernel.
 *
 * Between two sockets they go through a pipe. If a copy ends early, bytes in the pipe have left the first socket and not reached
 * the second. So end_copy puts them back into the stream's buffer, where the next read finds them. No other strand may read
 * during a copy.
 */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Above a pipe's default size of 64 KiB, and below what every user may set (pipe-max-size in pipe(7)). If the kernel refuses, the
 * pipe keeps its size. */
#define PIPE_SIZE 262144

typedef struct {
    rsb_machine *machine;
    rsb_stream *stream;
    VALUE self, to, timeout;
    const rsb_stream *other;    /* the stream whose descriptor `to` is; NULL: it is no stream's */
    int to_fd;
    uint32_t to_generation;
    VALUE pipe[2];              /* nil: no pipe is needed */
    rsb_unshared *ends;         /* of the pipe, which a forked child closes; NULL: a simulated pipe */
    uint64_t wanted, done;
    uint64_t held;              /* bytes in the pipe */
    bool unfit;                 /* these two cannot be spliced */
} copier;

static bool is_pipe(rsb_machine *machine, VALUE io) {
    struct stat st;
    return !rs_is_simulated(machine->engine) && fstat(rsb_io_fd(machine, io), &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Whose peer has not sent or taken bytes in time, or is gone: by EPIPE that of the side that is written. NULL: no stream's. */
static const rsb_stream *blamed(const copier *c, const rsb_mover *mover, int64_t result) {
    bool reads = mover->from == c->stream->io, writes = mover->to == c->to;
    bool other = result == RSB_TIME_IS_UP ? mover->awaits_room : result == -EPIPE || !reads || !c->stream->socket;
    if (other) return writes ? c->other : NULL;
    return reads ? c->stream : NULL;
}

/* Returns how many bytes were moved. Each piece has the whole timeout. Checks both descriptors: one may have been closed while
 * the other was waited for. */
static int64_t move(copier *c, rsb_mover *mover, uint64_t len) {
    rsb_mover_check(mover);
    mover->deadline_ns = rsb_stream_deadline(c->machine, c->stream, c->timeout);
    int64_t moved = rsb_move(mover, len);
    if (moved == RSB_TIME_IS_UP) {
        rsb_stream_blame(blamed(c, mover, moved), rsb_stream_time_is_up(c->stream, c->timeout, mover->what));
    }
    if (rsb_stream_says_gone(moved)) rsb_stream_blame(blamed(c, mover, moved), rb_syserr_new((int)-moved, mover->what));
    bool refused = moved == -EPERM || moved == -ENOSYS || moved == -EACCES; /* a sandbox forbids it */
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

/* An op reads into memory of its own, because the stream may be closed while a simulated kernel delays the read. */
static int64_t read_pipe(copier *c, void *bytes, size_t len) {
    rs_request request = {.kind = RS_OP_READ, .fd = FIX2INT(c->pipe[0]),
                          .transfer = {.address = bytes, .len = len, .offset = -1}};
    int64_t count = rs_try(c->machine->engine, &request);
    if (count != -EAGAIN) return count;
    request.transfer.address = request.owned = rs_try_alloc(len);
    if (!request.owned) return -ENOMEM;
    rsb_op_wait wait = {.flags = RS_PARK_SHIELDED, .answer = bytes, .answer_size = len};
    return rsb_perform(c->machine, &request, &wait);
}

/* True in a child that a signal handler has forked during the wait. The bytes are the parent's. */
static bool was_forked(const copier *c) { return c->ends && c->ends[0].fd < 0; }

static VALUE give_back(VALUE argument) {
    copier *c = (copier *)argument;
    if (!c->machine->open || was_forked(c)) return Qnil;
    char bytes[4096];
    rs_buffer *in = &c->stream->in;
    rs_pool *pool = rs_pool_of(c->machine->engine);
    bool room = c->held == 0 || c->stream->closed || rs_buffer_room(pool, in, c->held);
    while (c->held > 0) {
        int64_t count = read_pipe(c, bytes, c->held < sizeof(bytes) ? c->held : sizeof(bytes));
        if (count <= 0) break;
        c->held -= (uint64_t)count;
        if (c->stream->closed) continue;
        if (!room || !rs_buffer_put(pool, in, bytes, (size_t)count)) c->stream->gap = true;
    }
    if (c->held > 0 && !c->stream->closed) c->stream->gap = true;
    if (rs_buffer_len(in) == 0) rs_buffer_clear(pool, in);
    return Qnil;
}

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

/* False: there is no memory for what a pipe needs. */
static VALUE make_pipe(VALUE argument) {
    copier *c = (copier *)argument;
    rs_request request = {.kind = RS_OP_PIPE, .fd = -1};
    VALUE pair = rsb_make_pair(c->machine, &request, &request.pipe.pair, "copy_to");
    for (int i = 0; i < 2; i++) c->pipe[i] = RARRAY_AREF(pair, i);
    if (rs_is_simulated(c->machine->engine)) return Qtrue;
    c->ends = rs_try_alloc(sizeof(rsb_unshared) * 2);
    if (!c->ends) {
        close_pipe(argument);
        return Qfalse;
    }
    for (int i = 0; i < 2; i++) rsb_unshare(&c->ends[i], FIX2INT(c->pipe[i]));
    fcntl(FIX2INT(c->pipe[0]), F_SETPIPE_SZ, PIPE_SIZE);
    return Qtrue;
}

/* A sandbox forbids a pipe, or no descriptor is left. */
static VALUE no_pipe(VALUE unused, VALUE error) { return Qfalse; }

static VALUE end_copy(VALUE argument) {
    copier *c = (copier *)argument;
    rb_ensure(give_back, argument, close_pipe, argument);
    c->stream->reading = false;
    return Qnil;
}

/* For copy_to, when the buffer is empty. Returns how many bytes were moved; nil: copy_to must read and write instead. */
static VALUE stream_splice_to(VALUE self, VALUE to, VALUE length, VALUE timeout) {
    copier c = {.self = self, .timeout = timeout, .pipe = {Qnil, Qnil}};
    if (rsb_is_stream(to)) c.other = rsb_stream_peek(to);
    c.to = rsb_writing_end(c.other ? c.other->io : to);
    c.wanted = NIL_P(length) ? UINT64_MAX : (uint64_t)NUM2ULL(length);
    if (NIL_P(timeout)) c.timeout = Qundef;
    c.stream = rsb_stream_begin_read(self, c.timeout, "copy_to", &c.machine);
    if (!rsb_stream_is_plain(c.stream)) return Qnil;
    if (c.stream->ended || rs_buffer_len(&c.stream->in) > 0) return INT2FIX(0);
    c.to_fd = rsb_io_fd(c.machine, c.to);
    c.to_generation = rs_descriptor_generation(rs_descriptors_of(c.machine->engine), c.to_fd);
    bool needs_pipe = !is_pipe(c.machine, c.stream->io) && !is_pipe(c.machine, c.to);
    if (needs_pipe && !RTEST(rb_rescue2(make_pipe, (VALUE)&c, no_pipe, Qnil, rb_eSystemCallError, (VALUE)0))) return Qnil;
    c.stream->reading = true;
    rb_ensure(copy, (VALUE)&c, end_copy, (VALUE)&c);
    RB_GC_GUARD(to);
    return c.unfit && c.done == 0 ? Qnil : ULL2NUM(c.done);
}

static VALUE string_of(const rsb_stream *stream, VALUE max) {
    size_t len = rs_buffer_len(&stream->in);
    if (!NIL_P(max) && NUM2ULL(max) < len) len = (size_t)NUM2ULL(max);
    return rb_str_new(len > 0 ? rs_buffer_at(&stream->in) : "", (long)len);
}

/* A copy of the bytes in the buffer, at most `max`. */
static VALUE stream_buffered(VALUE self, VALUE max, VALUE timeout) {
    rsb_machine *machine;
    return string_of(rsb_stream_begin_read(self, NIL_P(timeout) ? Qundef : timeout, "copy_to", &machine), max);
}

/* Moves the bytes in the buffer, at most `max`, to another stream; returns how many. Each is in exactly one of the two streams,
 * also if this raises. */
static VALUE stream_pass_on(VALUE self, VALUE other, VALUE max, VALUE timeout) {
    rsb_machine *machine;
    rsb_stream *stream = rsb_stream_begin_read(self, NIL_P(timeout) ? Qundef : timeout, "copy_to", &machine);
    VALUE bytes = string_of(stream, max);
    rsb_stream_put(other, bytes, "copy_to");
    rs_buffer_drop(rs_pool_of(machine->engine), &stream->in, (size_t)RSTRING_LEN(bytes));
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
