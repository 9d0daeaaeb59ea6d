/* read: the reading methods of Ringspun::Stream. Each looks into the buffer first, and reads more until there is enough. */
#include "tls.h"

#include <errno.h>
#include <poll.h>
#include <ruby/encoding.h>
#include <string.h>

/* Less room than this in the buffer is not worth a system call. */
#define ROOM_MIN 4096
/* Where there were more bytes than the last read had room for, the next one has so much. */
#define ROOM_MUCH 65536
/* A read past its deadline still takes bytes that are there, up to so many times. */
#define FILLS_IN_TIME 32
#define LIMIT 65536

static ID option_names[2];
static VALUE end_of_stream;

static VALUE string_of(const rsb_stream *stream, const char *bytes, size_t len) {
    VALUE string = rb_str_new(bytes, (long)len);
    if (stream->encoding != rb_ascii8bit_encindex()) rb_enc_associate_index(string, stream->encoding);
    return string;
}

/* In the caller's String, if there is one. */
static VALUE string_in(const rsb_stream *stream, VALUE buffer, const char *bytes, size_t len) {
    if (NIL_P(buffer)) return string_of(stream, bytes, len);
    rb_str_modify(buffer); /* rb_str_resize to the present length would leave its bytes shared */
    rb_str_resize(buffer, (long)len);
    if (len > 0) memcpy(RSTRING_PTR(buffer), bytes, len);
    ENC_CODERANGE_CLEAR(buffer);
    return rb_enc_associate_index(buffer, stream->encoding);
}

void rsb_stream_drop(rsb_machine *machine, rsb_stream *stream, size_t len) {
    rs_buffer_drop(rs_pool_of(machine->engine), &stream->in, len);
    stream->searched = 0;
}

/* Makes the String before it takes the bytes, because that may raise. */
static VALUE take_into(VALUE buffer, rsb_machine *machine, rsb_stream *stream, size_t len, size_t kept) {
    VALUE string = string_in(stream, buffer, rs_buffer_at(&stream->in), kept);
    rsb_stream_drop(machine, stream, len);
    return string;
}

static VALUE take(rsb_machine *machine, rsb_stream *stream, size_t len, size_t kept) {
    return take_into(Qnil, machine, stream, len, kept);
}

/* --- asking for more --- */

typedef struct {
    rsb_machine *machine;
    rsb_stream *stream;
    VALUE timeout;
    int64_t deadline_ns;
    uint32_t fills;             /* calls of fill() so far */
    bool collected;             /* the garbage collector was run for lack of memory */
    const char *what;
} reader;

static size_t len_of(const reader *r) { return rs_buffer_len(&r->stream->in); }

static void take_answer(const rs_op *op, void *argument) {
    reader *r = argument;
    r->stream->reading = false;
    if (rs_op_result(op) <= 0 || r->stream->closed) return;
    if (!rs_buffer_put(rs_pool_of(r->machine->engine), &r->stream->in, rs_op_request(op)->transfer.address, (size_t)rs_op_result(op))) r->stream->gap = true;
    rs_source_ready(&r->stream->watched);
}

NORETURN(static void fail_busy(const reader *r));
static void fail_busy(const reader *r) {
    rb_raise(rsb_eUsage, "%s: another strand reads from this stream already; let one read, and hand on what comes", r->what);
}

static size_t room_for(const rsb_stream *stream) {
    size_t held = rs_buffer_len(&stream->in);
    return stream->flows && held + ROOM_MIN < ROOM_MUCH ? ROOM_MUCH - held : ROOM_MIN;
}

/* Reads the bytes that are there; -EAGAIN: none. */
static int64_t try_fill(rsb_machine *machine, rsb_stream *stream, rs_request *request) {
    request->transfer.address = rs_buffer_room(rs_pool_of(machine->engine), &stream->in, room_for(stream));
    if (RS_UNLIKELY(!request->transfer.address)) {
        stream->flows = false;
        return RS_NO_MEMORY;
    }
    request->transfer.len = stream->in.capacity - stream->in.end;
    int64_t bytes = rs_try(machine->engine, request);
    stream->flows = bytes > (int64_t)RS_BUFFER_PIECE || (bytes > (int64_t)RS_BUFFER_PIECE / 2 && bytes == (int64_t)request->transfer.len);
    if (bytes > 0) rs_buffer_filled(&stream->in, (size_t)bytes), rs_source_ready(&stream->watched);
    else if (rs_buffer_len(&stream->in) == 0) rs_buffer_clear(rs_pool_of(machine->engine), &stream->in);
    return bytes;
}

static int64_t wait_to_fill(reader *r, rs_request *request) {
    rsb_raise_refusal(r->machine);
    request->transfer.address = NULL;
    /* No more bytes than there is room for already, because there may be no memory for them when they come. */
    bool all_new = rs_buffer_len(&r->stream->in) == 0;
    if (all_new || request->transfer.len > RS_BUFFER_PIECE) request->transfer.len = RS_BUFFER_PIECE;
    request->options = RS_REQUEST_ANY_BUFFER;
    r->stream->reading = true;
    rsb_op_wait wait = {.answers_close = true, .deadline_ns = r->deadline_ns, .take = take_answer, .argument = r};
    int64_t bytes = rsb_perform(r->machine, request, &wait);
    rsb_stream_get(r->stream->self, &r->machine); /* raises if it was closed after the bytes had come */
    return bytes;
}

static bool is_late(const reader *r) { return r->deadline_ns != RS_NEVER && rs_now(r->machine->engine) >= r->deadline_ns; }

/* A reader that never waits, because there are always bytes, gives way at the end of its turn, and meets its deadline. */
static void give_way(reader *r) {
    rsb_end_turn(r->machine);
    rsb_stream_get(r->stream->self, &r->machine);
    if (r->fills > FILLS_IN_TIME && is_late(r)) rsb_stream_timed_out(r->stream, r->timeout, r->what);
}

static void end_wait(const rs_op *op, void *argument) {
    reader *r = argument;
    (void)op;
    r->stream->reading = false;
}

/* True: most likely there are no bytes, so wait before trying. A read with a deadline tries first, to get the bytes that are
 * there; so does a strand that must not wait. */
static bool waits_first(reader *r) {
    return r->deadline_ns == RS_NEVER && rsb_tls_may_be_dry(r->stream->tls) &&
           rs_refusal(r->machine->engine, 0) == RS_WAKE_VALUE;
}

/* Reads decrypted bytes; -EAGAIN with the events to poll for: none. */
static int64_t try_through(reader *r, uint32_t *events) {
    rs_machine *engine = r->machine->engine;
    rs_buffer *in = &r->stream->in;
    char *room = rs_buffer_room(rs_pool_of(engine), in, ROOM_MIN);
    if (RS_UNLIKELY(!room)) return RS_NO_MEMORY;
    int64_t bytes = rsb_tls_read(r->stream->tls, room, in->capacity - in->end, events);
    if (bytes > 0) {
        rs_buffer_filled(in, (size_t)bytes);
        rs_source_ready(&r->stream->watched);
        rs_count_inline(engine);
    } else if (rs_buffer_len(in) == 0) {
        rs_buffer_clear(rs_pool_of(engine), in);
    }
    return bytes;
}

static int64_t fill_through(reader *r) {
    rsb_stream *stream = r->stream;
    for (;;) {
        rs_request request = {.kind = RS_OP_POLL, .fd = rsb_stream_fd(r->machine, stream), .poll.events = POLLIN};
        int64_t bytes = waits_first(r) ? -EAGAIN : try_through(r, &request.poll.events);
        if (bytes != -EAGAIN) return bytes;
        rsb_raise_refusal(r->machine);
        stream->reading = true;
        rsb_op_wait wait = {.answers_close = true, .deadline_ns = r->deadline_ns, .take = end_wait, .argument = r};
        int64_t ready = rsb_perform(r->machine, &request, &wait);
        rsb_stream_get(stream->self, &r->machine);
        if (ready < 0) return ready;
    }
}

static int64_t fill_directly(reader *r) {
    rsb_stream *stream = r->stream;
    rs_request request = {.kind = stream->socket ? RS_OP_RECV : RS_OP_READ, .fd = rsb_stream_fd(r->machine, stream),
                          .transfer.offset = -1};
    int64_t bytes = try_fill(r->machine, stream, &request);
    return bytes == -EAGAIN ? wait_to_fill(r, &request) : bytes;
}

NORETURN(static void fail_gap(const reader *r));
static void fail_gap(const reader *r) {
    rb_raise(rsb_eError, "%s: bytes have come for which there was no memory, and are lost; what came before them is still there; "
             "close the stream", r->what);
}

/* Runs the garbage collector, once a read. No bytes are lost: they are read only if there is room for them. */
static void collect(reader *r) {
    if (r->collected) rsb_fail_memory();
    r->collected = true;
    rsb_collect_for(len_of(r) + ROOM_MIN);
}

/* Reads once more from the descriptor, or gives way. False: the stream has ended. */
static bool fill(reader *r) {
    rsb_stream *stream = r->stream;
    if (stream->ended) return false;
    if (RS_UNLIKELY(stream->reading)) fail_busy(r);
    if (RS_UNLIKELY(stream->gap)) fail_gap(r);
    r->fills++;
    if (RS_UNLIKELY(rs_turn_ends(r->machine->engine))) {
        give_way(r);
        return true;
    }
    int64_t bytes = RS_UNLIKELY(stream->tls != NULL) ? fill_through(r) : fill_directly(r);
    if (RS_LIKELY(bytes > 0)) return true;
    if (RS_UNLIKELY(bytes == RS_NO_MEMORY)) {
        collect(r);
        return true;
    }
    if (bytes == RSB_TIME_IS_UP) rsb_stream_timed_out(stream, r->timeout, r->what);
    if (bytes < 0) rsb_stream_refused(r->machine, stream, bytes, r->what, stream->fd);
    stream->ended = true;
    return false;
}

/* Reads until there are `wanted` bytes. False: the stream has ended before that. */
static bool fill_to(reader *r, uint64_t wanted) {
    while (len_of(r) < wanted) {
        if (!fill(r)) return false;
    }
    return true;
}

NORETURN(static void fail_ended(const reader *r, uint64_t came, uint64_t wanted));
static void fail_ended(const reader *r, uint64_t came, uint64_t wanted) {
    rsb_stream_blame(r->stream, rsb_error(end_of_stream, "%s: the stream ended after %" PRIu64 " of %" PRIu64 " bytes", r->what,
                                          came, wanted));
}

static void skip_rest(reader *r) {
    rsb_stream *stream = r->stream;
    uint64_t wanted = stream->to_skip;
    while (stream->to_skip > 0) {
        if (len_of(r) == 0 && !fill(r)) {
            uint64_t came = wanted - stream->to_skip;
            stream->to_skip = 0;
            fail_ended(r, came, wanted);
        }
        uint64_t len = len_of(r) < stream->to_skip ? len_of(r) : stream->to_skip;
        rsb_stream_drop(r->machine, stream, len);
        stream->to_skip -= len;
    }
}

NORETURN(static void fail_shaking(const reader *r));
static void fail_shaking(const reader *r) {
    rb_raise(rsb_eUsage, "%s: another strand is at the TLS handshake; wait until it is done", r->what);
}

static reader begin(VALUE self, VALUE timeout, const char *what) {
    reader r = {.timeout = timeout, .what = what};
    r.stream = rsb_stream_get(self, &r.machine);
    r.deadline_ns = rsb_stream_deadline(r.machine, r.stream, timeout);
    if (RS_UNLIKELY(r.stream->shaking)) fail_shaking(&r);
    if (RS_UNLIKELY(r.stream->reading)) fail_busy(&r); /* even if the buffer has enough bytes */
    if (RS_UNLIKELY(r.stream->to_skip > 0)) skip_rest(&r);
    return r;
}

rsb_stream *rsb_stream_begin_read(VALUE self, VALUE timeout, const char *what, rsb_machine **machine) {
    reader r = begin(self, timeout, what);
    *machine = r.machine;
    return r.stream;
}

bool rsb_stream_more(VALUE self, int64_t deadline_ns, const char *what) {
    reader r = begin(self, Qnil, what);
    r.deadline_ns = deadline_ns;
    return fill_to(&r, len_of(&r) + 1);
}

char *rsb_stream_take_block(rsb_machine *machine, rsb_stream *stream, size_t len, size_t *start, size_t *capacity) {
    rs_buffer front;
    if (!rs_buffer_split(rs_pool_of(machine->engine), &stream->in, len, &front)) rsb_fail_memory();
    stream->searched = 0;
    rs_buffer_trim(&front);
    *start = front.start;
    *capacity = front.capacity;
    return rs_buffer_release(rs_pool_of(machine->engine), &front);
}

static uint64_t length_of(VALUE value, int64_t min, const char *what) { return (uint64_t)rsb_integer(value, min, LONG_MAX, what); }

/* --- so many bytes --- */

static reader begin_with_length(int argc, VALUE *argv, VALUE self, VALUE *length, const char *what) {
    VALUE options;
    rb_scan_args(argc, argv, "1:", length, &options);
    return begin(self, rsb_stream_options_of(options, 0, NULL).timeout, what);
}

static reader begin_with_buffer(int argc, VALUE *argv, VALUE self, VALUE *length, VALUE *buffer, const char *what) {
    VALUE options;
    rb_scan_args(argc, argv, "02:", length, buffer, &options);
    if (!NIL_P(*buffer) && !RB_TYPE_P(*buffer, T_STRING)) {
        rb_raise(rsb_eUsage, "%s: the buffer must be a String, got %" PRIsVALUE, what, rsb_inspect(*buffer));
    }
    if (!NIL_P(*buffer)) rb_check_frozen(*buffer);
    return begin(self, rsb_stream_options_of(options, 0, NULL).timeout, what);
}

static VALUE nothing_in(VALUE buffer) {
    if (!NIL_P(buffer)) rb_str_resize(buffer, 0);
    return Qnil;
}

/* Reads exactly length bytes, or all bytes until the end of the stream.
 *
 * May switch strands.
 *
 * @param length [Integer, nil] bytes; nil: until the end
 * @param buffer [String, nil] gets the bytes and is returned, instead of a new String; empty at the end of the stream
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [String, nil] nil when the stream has ended before the first byte; an empty String then if there is no length
 * @raise [EndOfStreamError] when it ends after fewer bytes; they can still be read
 * @raise [TimeoutError] when the time is up; the bytes that came can still be read
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE stream_read(int argc, VALUE *argv, VALUE self) {
    VALUE length, buffer;
    reader r = begin_with_buffer(argc, argv, self, &length, &buffer, "read");
    if (NIL_P(length)) {
        while (fill(&r)) continue;
        return take_into(buffer, r.machine, r.stream, len_of(&r), len_of(&r));
    }
    uint64_t wanted = length_of(length, 0, "length");
    if (!fill_to(&r, wanted)) {
        if (len_of(&r) == 0) return nothing_in(buffer);
        fail_ended(&r, len_of(&r), wanted);
    }
    return take_into(buffer, r.machine, r.stream, wanted, wanted);
}

/* Reads the bytes that are there; waits until there are some.
 *
 * May switch strands.
 *
 * @param max [Integer, nil] bytes; nil: no limit
 * @param buffer [String, nil] as for {#read}
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [String, nil] nil at the end
 * @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
 * @since 0.1.0
 */
static VALUE stream_read_partial(int argc, VALUE *argv, VALUE self) {
    VALUE max, buffer;
    reader r = begin_with_buffer(argc, argv, self, &max, &buffer, "read_partial");
    uint64_t most = NIL_P(max) ? LONG_MAX : length_of(max, 1, "max");
    if (!fill_to(&r, 1)) return nothing_in(buffer);
    size_t len = len_of(&r) < most ? len_of(&r) : most;
    return take_into(buffer, r.machine, r.stream, len, len);
}

/* Returns the next bytes and leaves them in the stream.
 *
 * May switch strands.
 *
 * @param length [Integer] bytes that it waits for
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [String] length bytes; fewer when the stream ends before
 * @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
 * @since 0.1.0
 */
static VALUE stream_peek(int argc, VALUE *argv, VALUE self) {
    VALUE length;
    reader r = begin_with_length(argc, argv, self, &length, "peek");
    uint64_t wanted = length_of(length, 1, "length");
    size_t len = fill_to(&r, wanted) ? wanted : len_of(&r);
    return string_of(r.stream, len > 0 ? rs_buffer_at(&r.stream->in) : "", len);
}

/* Reads that many bytes and drops them. If a timeout or a cancellation ends it early, the next read drops the rest.
 *
 * May switch strands.
 *
 * @param length [Integer] bytes
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [nil]
 * @raise [EndOfStreamError] when the stream ends before
 * @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
 * @since 0.1.0
 */
static VALUE stream_skip(int argc, VALUE *argv, VALUE self) {
    VALUE length;
    reader r = begin_with_length(argc, argv, self, &length, "skip");
    r.stream->to_skip = length_of(length, 0, "length");
    skip_rest(&r);
    return Qnil;
}

/* Waits until there are bytes to read, or the stream has ended.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Boolean] true: the stream has ended, and all bytes are read
 * @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
 * @since 0.1.0
 */
static VALUE stream_eof_p(int argc, VALUE *argv, VALUE self) {
    VALUE options;
    rb_scan_args(argc, argv, "0:", &options);
    reader r = begin(self, rsb_stream_options_of(options, 0, NULL).timeout, "eof?");
    return fill_to(&r, 1) ? Qfalse : Qtrue;
}

/* --- up to a mark --- */

typedef struct {
    const char *mark;
    size_t mark_len;
    size_t limit;
    bool chomp;
} search;

static const char LINE_END[] = "\n";

NORETURN(static void fail_long(const reader *r, size_t limit));
static void fail_long(const reader *r, size_t limit) {
    rsb_stream_blame(r->stream, rsb_error(rsb_eLimit, "%s: no end within the limit of %" PRIuSIZE " bytes; what came is still there: "
                                          "read it, or close the stream", r->what, limit));
}

static const char *find(const search *s, const char *bytes, size_t len) {
    return s->mark_len == 1 ? memchr(bytes, s->mark[0], len) : memmem(bytes, len, s->mark, s->mark_len);
}

static void forget_search(rsb_stream *stream, const char *mark) {
    stream->searched = 0;
    stream->searched_for = mark;
}

/* Reads until the mark is in the buffer. Returns how many bytes are before it; -1: the stream has ended without it. */
static int64_t fill_to_mark(reader *r, const search *s) {
    for (;;) {
        rsb_stream *stream = r->stream;
        /* The last search, or that of a strand that has run meanwhile, was for another mark. */
        if (stream->searched_for != s->mark) forget_search(stream, s->mark);
        size_t len = len_of(r), from = stream->searched;
        if (len > from) {
            const char *bytes = rs_buffer_at(&stream->in), *found = find(s, bytes + from, len - from);
            if (RS_LIKELY(found != NULL)) {
                if (RS_UNLIKELY((size_t)(found - bytes) > s->limit)) fail_long(r, s->limit);
                return found - bytes;
            }
            stream->searched = len < s->mark_len ? 0 : len - s->mark_len + 1;
        }
        if (RS_UNLIKELY(stream->searched > s->limit)) fail_long(r, s->limit); /* an earlier call may have searched */
        if (!fill(r)) return -1;
    }
}

/* nil: the stream has ended. */
static VALUE next_line(reader *r, const search *s) {
    int64_t len = fill_to_mark(r, s);
    if (RS_UNLIKELY(len < 0)) return len_of(r) == 0 ? Qnil : take(r->machine, r->stream, len_of(r), len_of(r));
    size_t kept = s->chomp ? (size_t)len : (size_t)len + 1;
    if (s->chomp && len > 0 && rs_buffer_at(&r->stream->in)[len - 1] == '\r') kept--;
    return take(r->machine, r->stream, (size_t)len + 1, kept);
}

static size_t limit_of(VALUE limit) { return limit == Qundef ? LIMIT : (size_t)rsb_integer(limit, 1, LONG_MAX, "limit"); }

static search line_search(const rsb_stream_options *options) {
    bool chomp = options->named[1] == Qundef || RTEST(options->named[1]);
    return (search){.mark = LINE_END, .mark_len = 1, .limit = limit_of(options->named[0]), .chomp = chomp};
}

/* Reads a line, without the LF or CRLF at its end. The last line may have no end.
 *
 * May switch strands.
 *
 * @param limit [Integer] bytes that the line may have
 * @param chomp [Boolean] false: with LF or CRLF
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [String, nil] nil at the end
 * @raise [LimitError] when it is longer; its bytes can still be read
 * @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
 * @since 0.1.0
 */
static VALUE stream_read_line(int argc, VALUE *argv, VALUE self) {
    VALUE options = Qnil;
    if (RS_UNLIKELY(argc > 0)) rb_scan_args(argc, argv, "0:", &options);
    rsb_stream_options with = rsb_stream_options_of(options, 2, option_names);
    search s = line_search(&with);
    reader r = begin(self, with.timeout, "read_line");
    return next_line(&r, &s);
}

/* Reads up to a delimiter, which is dropped.
 *
 * May switch strands.
 *
 * @param delimiter [String] one byte or more
 * @param limit [Integer] bytes that may come before it
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [String, nil] nil when the stream has ended before the first byte
 * @raise [EndOfStreamError] when it ends without the delimiter; the bytes that came can still be read
 * @raise [LimitError] when there are more; they can still be read
 * @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
 * @since 0.1.0
 */
static VALUE stream_read_until(int argc, VALUE *argv, VALUE self) {
    VALUE delimiter, options;
    rb_scan_args(argc, argv, "1:", &delimiter, &options);
    rsb_stream_options with = rsb_stream_options_of(options, 1, option_names);
    if (!RB_TYPE_P(delimiter, T_STRING) || RSTRING_LEN(delimiter) == 0) {
        rb_raise(rsb_eUsage, "read_until: expected a String of one byte or more, got %" PRIsVALUE, rsb_inspect(delimiter));
    }
    delimiter = rb_str_new_frozen(delimiter);
    search s = {.mark = RSTRING_PTR(delimiter), .mark_len = (size_t)RSTRING_LEN(delimiter), .limit = limit_of(with.named[0])};
    reader r = begin(self, with.timeout, "read_until");
    forget_search(r.stream, s.mark);
    int64_t len = fill_to_mark(&r, &s);
    RB_GC_GUARD(delimiter);
    if (RS_LIKELY(len >= 0)) return take(r.machine, r.stream, (size_t)len + s.mark_len, (size_t)len);
    if (len_of(&r) == 0) return Qnil;
    rsb_stream_blame(r.stream, rsb_error(end_of_stream, "read_until: the stream ended after %" PRIuSIZE " bytes without the delimiter",
                                         len_of(&r)));
}

/* --- all of it --- */

/* Yields one line after the other, as {#read_line} returns them.
 *
 * May switch strands.
 *
 * @param limit [Integer] bytes that a line may have
 * @param chomp [Boolean] false: with LF or CRLF
 * @param timeout [Numeric, nil] seconds for each line; nil: no limit
 * @yieldparam line [String]
 * @return [nil] at the end
 * @raise (see #read_line)
 * @since 0.1.0
 */
static VALUE stream_each_line(int argc, VALUE *argv, VALUE self) {
    RETURN_SIZED_ENUMERATOR_KW(self, argc, argv, NULL, rb_keyword_given_p());
    VALUE options, line;
    rb_scan_args(argc, argv, "0:", &options);
    rsb_stream_options with = rsb_stream_options_of(options, 2, option_names);
    search s = line_search(&with);
    for (;;) {
        reader r = begin(self, with.timeout, "each_line");
        if (NIL_P(line = next_line(&r, &s))) return Qnil;
        rb_yield(line);
    }
}

/* Yields the bytes as they come.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds for each piece; nil: no limit
 * @yieldparam bytes [String]
 * @return [nil] at the end
 * @raise (see #read_partial)
 * @since 0.1.0
 */
static VALUE stream_each_chunk(int argc, VALUE *argv, VALUE self) {
    RETURN_SIZED_ENUMERATOR_KW(self, argc, argv, NULL, rb_keyword_given_p());
    VALUE chunk;
    while (!NIL_P(chunk = stream_read_partial(argc, argv, self))) rb_yield(chunk);
    return Qnil;
}

bool rsb_stream_look(VALUE self, int *fd) {
    rsb_machine *machine;
    rsb_stream *stream = rsb_stream_get(self, &machine);
    if (rs_buffer_len(&stream->in) > stream->to_skip || stream->ended) return true;
    if (stream->tls && !stream->reading && !rsb_tls_is_empty(machine, stream)) return true;
    *fd = rsb_stream_fd(machine, stream);
    return false;
}

void rsb_init_stream_read(void) {
    option_names[0] = rb_intern("limit");
    option_names[1] = rb_intern("chomp");
    end_of_stream = rb_define_class_under(rsb_mRingspun, "EndOfStreamError", rsb_eError);
    rb_define_method(rsb_cStream, "read", stream_read, -1);
    rb_define_method(rsb_cStream, "read_partial", stream_read_partial, -1);
    rb_define_method(rsb_cStream, "peek", stream_peek, -1);
    rb_define_method(rsb_cStream, "skip", stream_skip, -1);
    rb_define_method(rsb_cStream, "eof?", stream_eof_p, -1);
    rb_define_method(rsb_cStream, "read_line", stream_read_line, -1);
    rb_define_method(rsb_cStream, "read_until", stream_read_until, -1);
    rb_define_method(rsb_cStream, "each_line", stream_each_line, -1);
    rb_define_method(rsb_cStream, "each_chunk", stream_each_chunk, -1);
}
