/* vector: Machine#readv and #writev.
 *
 * Each buffer of a vector is locked or frozen during the op, and pinned: an Array keeps its elements alive, but compaction may
 * move them, and the bytes of a short String move with it.
 *
 * The kernel takes at most IOV_MAX parts at once (readv(2)). Where there are more, the last of them go through one String of
 * ours: in several calls a datagram would be several, and a second read might wait though the first has bytes.
 */
#include "io.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    rsb_machine *machine;
    rs_request request;
    const char *what;
    bool reading;
    VALUE given;                /* the caller's buffers */
    VALUE buffers;              /* the buffers instead of them: frozen Strings, and Strings instead of slices */
    VALUE used;                 /* those that the op uses, IOV_MAX at most */
    VALUE tail;                 /* the String instead of the last of them, on the stack, which pins it; or nil */
    VALUE locked;               /* the locked ones among them */
    VALUE *pins;                /* the buffers again, in memory that the collector scans conservatively, which pins them */
    struct iovec *parts;        /* of the request; freed after the op has ended */
} vector;

/* --- buffers --- */

static VALUE list_of(VALUE buffers) {
    VALUE list = rb_check_array_type(buffers);
    if (NIL_P(list) || RARRAY_LEN(list) == 0) rb_raise(rsb_eUsage, "expected an Array of one or more Strings or IO::Buffers");
    return rb_ary_dup(list);
}

/* A buffer that an op may use until it ends: the given one, a frozen String, or a String instead of a slice. */
static VALUE own_buffer(VALUE buffer, bool reading) {
    if (!reading && (RB_TYPE_P(buffer, T_STRING) || rsb_is_buffer(buffer))) return rsb_own_source(buffer);
    if (RB_TYPE_P(buffer, T_STRING)) {
        rsb_string_writable(buffer);
        rb_str_modify(buffer);
        return buffer;
    }
    if (!rsb_is_buffer(buffer)) {
        rb_raise(rsb_eUsage, "expected a String or an IO::Buffer, got %" PRIsVALUE, rb_obj_class(buffer));
    }
    rsb_buffer_check(buffer);
    if (!rsb_is_slice(buffer)) return buffer;
    rs_transfer part = {0};
    rsb_source_of(buffer, &part);
    return rb_str_new(part.address, (long)part.len);
}

static VALUE lock_one(VALUE buffer) {
    return RB_TYPE_P(buffer, T_STRING) ? rb_str_locktmp(buffer) : rb_io_buffer_lock(buffer);
}

/* Whether it stands for the first time in a list that may have it more than once, as what is written may. */
static bool is_new(VALUE *seen, VALUE buffer) {
    if (NIL_P(*seen)) *seen = rb_hash_new();
    if (RTEST(rb_hash_lookup(*seen, buffer))) return false;
    rb_hash_aset(*seen, buffer, Qtrue);
    return true;
}

static void lock_all(vector *v) {
    VALUE seen = Qnil;
    for (long i = 0; i < RARRAY_LEN(v->buffers); i++) {
        VALUE buffer = RARRAY_AREF(v->buffers, i);
        if (!v->reading && (RB_TYPE_P(buffer, T_STRING) || !is_new(&seen, buffer))) continue;
        int state = 0;
        rb_protect(lock_one, buffer, &state);
        if (state) {
            rb_set_errinfo(Qnil);
            rb_raise(rsb_eUsage, "a buffer is in use by another operation, or stands twice in the list; give every one its "
                     "own");
        }
        rb_ary_push(v->locked, buffer);
    }
}

static VALUE give_back(VALUE argument) {
    vector *v = (vector *)argument;
    for (long i = 0; i < RARRAY_LEN(v->locked); i++) {
        VALUE buffer = RARRAY_AREF(v->locked, i);
        if (RB_TYPE_P(buffer, T_STRING)) rb_str_unlocktmp(buffer);
        else rb_io_buffer_unlock(buffer);
    }
    free(v->parts);
    return Qnil;
}

/* --- the op --- */

#define TAIL_FROM (IOV_MAX - 1)

/* Room for the last buffers, or the bytes of these. */
static VALUE tail_of(const vector *v) {
    VALUE tail = rb_str_buf_new(0);
    long total = 0;
    for (long i = TAIL_FROM; i < RARRAY_LEN(v->buffers); i++) {
        rs_transfer part = {0};
        rsb_source_of(RARRAY_AREF(v->buffers, i), &part);
        if (!v->reading) rb_str_cat(tail, part.address, (long)part.len);
        else if (__builtin_add_overflow(total, (long)part.len, &total)) rsb_fail_memory();
    }
    if (v->reading) rb_str_resize(tail, total);
    return tail;
}

static void choose_used(vector *v) {
    v->used = v->buffers;
    if (RS_LIKELY(RARRAY_LEN(v->buffers) <= IOV_MAX)) return;
    v->tail = tail_of(v);
    v->used = rb_ary_subseq(v->buffers, 0, TAIL_FROM);
    rb_ary_push(v->used, v->tail);
}

static void describe(vector *v) {
    long count = RARRAY_LEN(v->used);
    v->parts = rsb_alloc(sizeof(*v->parts) * (size_t)count);
    uint64_t used = 0;
    for (long i = 0; i < count; i++) {
        rs_transfer part = {0};
        rsb_source_of(RARRAY_AREF(v->used, i), &part);
        if (part.len > 0) v->parts[used++] = (struct iovec){.iov_base = part.address, .iov_len = part.len};
    }
    v->request.vector.parts = v->parts;
    v->request.vector.count = used;
}

static VALUE run(VALUE argument) {
    vector *v = (vector *)argument;
    lock_all(v);
    choose_used(v);
    describe(v);
    if (v->reading && v->request.vector.count == 0) {
        rb_raise(rsb_eUsage, "readv: the buffers hold no bytes, and each takes as many as it holds; make them larger first");
    }
    if (v->reading) return LL2NUM(rsb_request(v->machine, &v->request, v->used, RSB_IN, v->what));
    return LL2NUM(rsb_request_all(v->machine, &v->request, v->used, RSB_OUT, v->what));
}

/* Marks the Strings as modified, and copies what was read into Strings instead: to the last buffers, and to slices. */
static void hand_out(const vector *v, uint64_t bytes) {
    uint64_t tail_used = 0;
    for (long i = 0; i < RARRAY_LEN(v->given) && bytes > 0; i++) {
        VALUE buffer = RARRAY_AREF(v->given, i), own = RARRAY_AREF(v->buffers, i);
        rs_transfer part = {0};
        rsb_source_of(own, &part);
        uint64_t len = part.len < bytes ? part.len : bytes;
        bytes -= len;
        if (len > 0 && own == buffer && RB_TYPE_P(own, T_STRING)) rb_str_modify(own);
        if (RS_UNLIKELY(!NIL_P(v->tail)) && i >= TAIL_FROM) {
            rsb_source_of(own, &part);
            memcpy(part.address, RSTRING_PTR(v->tail) + tail_used, len);
            tail_used += len;
        }
        if (own == buffer || len == 0) continue;
        rsb_buffer_check(buffer);
        rs_transfer target = {0};
        rsb_source_of(buffer, &target);
        memcpy(target.address, part.address, len);
    }
}

static void take_buffers(vector *v) {
    for (long i = 0; i < RARRAY_LEN(v->given); i++) {
        v->pins[i] = own_buffer(RARRAY_AREF(v->given, i), v->reading);
        rb_ary_push(v->buffers, v->pins[i]);
    }
}

static VALUE perform(VALUE self, VALUE io, VALUE buffers, rs_op_kind kind, const char *what) {
    rsb_machine *machine = rsb_machine_of(self);
    vector v = {.machine = machine, .what = what, .reading = kind == RS_OP_READV, .given = list_of(buffers), .tail = Qnil};
    v.buffers = rb_ary_new();
    v.locked = rb_ary_new();
    VALUE pins_owner;
    v.pins = ALLOCV_N(VALUE, pins_owner, RARRAY_LEN(v.given));
    /* A write sends the bytes as they are at the call, so its buffers are taken before other strands may run. Buffers to read
     * into are taken after that, because they must still be writable then. */
    if (!v.reading) take_buffers(&v);
    int fd = rsb_op_fd(machine, v.reading ? io : rsb_writing_end(io));
    if (v.reading) take_buffers(&v);
    v.request = (rs_request){.kind = (uint8_t)kind, .fd = fd, .vector.offset = -1};
    VALUE result = rb_ensure(run, (VALUE)&v, give_back, (VALUE)&v);
    if (v.reading) hand_out(&v, NUM2ULL(result));
    if (v.reading) rsb_raise_pending(machine);
    ALLOCV_END(pins_owner);
    RB_GC_GUARD(v.given);
    RB_GC_GUARD(v.buffers);
    RB_GC_GUARD(v.used);
    RB_GC_GUARD(v.tail);
    RB_GC_GUARD(v.locked);
    return result;
}

/* Reads the bytes that are there into several buffers, one after the other. Each buffer is filled up to its present size, and
 * keeps it.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffers [Array<String, IO::Buffer>]
 * @return [Integer] bytes read in all; 0 at the end of the stream
 * @since 0.1.0
 */
static VALUE machine_readv(VALUE self, VALUE io, VALUE buffers) { return perform(self, io, buffers, RS_OP_READV, "readv"); }

/* Writes all bytes of several buffers with as few system calls as possible.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffers [Array<String, IO::Buffer>]
 * @return [Integer] bytes written: all, unless an error, a cancellation or a Machine#close came after the first; the next call or
 *   wait raises it
 * @since 0.1.0
 */
static VALUE machine_writev(VALUE self, VALUE io, VALUE buffers) {
    return perform(self, io, buffers, RS_OP_WRITEV, "writev");
}

void rsb_init_vector(void) {
    rb_define_method(rsb_cMachine, "readv", machine_readv, 2);
    rb_define_method(rsb_cMachine, "writev", machine_writev, 2);
}
