/* io: bytes and descriptors: read, write and their kin, open, close, files, children.
 *
 * Every method fills an rs_request and hands it to one path (rsb_request): tried at once with the GVL held, and only when
 * it would wait made into an op, for which the buffer is locked. So a String that the kernel may write into cannot be
 * changed, moved or freed meanwhile, and a call that does not wait locks and allocates nothing.
 */
#include "io.h"

#include <ruby/encoding.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LENGTH 16384

/* --- descriptors --- */

static VALUE descriptor_of(VALUE io) { return INT2FIX(rb_io_descriptor(io)); }

int rsb_fd(VALUE io) {
    if (RS_LIKELY(RB_FIXNUM_P(io))) {
        long fd = FIX2LONG(io);
        if (RS_UNLIKELY(fd < 0 || fd > INT32_MAX)) rb_raise(rsb_eUsage, "%ld is not a descriptor", fd);
        return (int)fd;
    }
    VALUE file = rb_check_convert_type(io, T_FILE, "IO", "to_io");
    if (NIL_P(file)) {
        rb_raise(rsb_eUsage, "expected a descriptor: an Integer or an IO, got %" PRIsVALUE, rb_inspect(io));
    }
    int state = 0;
    VALUE fd = rb_protect(descriptor_of, file, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        rb_raise(rsb_eClosed, "%" PRIsVALUE " is closed", rb_inspect(file));
    }
    return FIX2INT(fd);
}

/* --- one path for all requests --- */

typedef struct {
    rsb_machine *machine;
    rs_request *request;
    VALUE buffer;
    void *answer;
    size_t answer_size;
} pending;

static VALUE perform(VALUE argument) {
    pending *p = (pending *)argument;
    return LL2NUM(rsb_perform_with(p->machine, p->request, p->buffer, 0, p->answer, p->answer_size));
}


static void lock_or_refuse(VALUE (*lock)(VALUE), VALUE buffer) {
    int state = 0;
    rb_protect(lock, buffer, &state);
    if (!state) return;
    rb_set_errinfo(Qnil);
    rb_raise(rsb_eUsage, "the buffer is in use by another operation; give every one its own");
}

static int64_t perform_locked(pending *p) {
    bool string = RB_TYPE_P(p->buffer, T_STRING);
    lock_or_refuse(string ? rb_str_locktmp : rb_io_buffer_lock, p->buffer);
    return NUM2LL(rb_ensure(perform, (VALUE)p, string ? rb_str_unlocktmp : rb_io_buffer_unlock, p->buffer));
}

/* A source that others might change while the op waits is replaced by a frozen view, which shares the bytes. */
static VALUE freeze_source(rs_request *request, VALUE string) {
    if (OBJ_FROZEN(string)) return string;
    const char *before = RSTRING_PTR(string);
    VALUE frozen = rb_str_new_frozen(string);
    request->address = RSTRING_PTR(frozen) + ((char *)request->address - before);
    return frozen;
}

int64_t rsb_wait_for(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction) {
    if (NIL_P(buffer)) return rsb_perform(machine, request, Qnil);
    if (direction == RSB_OUT && RB_TYPE_P(buffer, T_STRING)) {
        return rsb_perform(machine, request, freeze_source(request, buffer));
    }
    return perform_locked(&(pending){machine, request, buffer, NULL, 0});
}

int64_t rsb_message_wait(rsb_machine *machine, rs_request *request, VALUE buffer, void *answer, size_t answer_size,
                         rsb_direction direction) {
    pending p = {machine, request, buffer, answer, answer_size};
    if (direction == RSB_OUT && RB_TYPE_P(buffer, T_STRING)) return NUM2LL(perform((VALUE)&p));
    return perform_locked(&p);
}

int64_t rsb_request(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what) {
    int64_t result = rs_try(&machine->engine, request);
    if (RS_LIKELY(result != -EAGAIN)) {
        if (RS_UNLIKELY(result < 0)) rsb_fail(result, what, request->fd);
        rsb_after_inline(machine);
        return result;
    }
    result = rsb_wait_for(machine, request, buffer, direction);
    if (RS_UNLIKELY(result < 0)) rsb_fail(result, what, request->fd);
    return result;
}

/* Writes and sends go on until everything is out. Cut short by a cancellation after the first byte, they return what is
 * out, and the cancellation meets the next wait. */
int64_t rsb_request_all(rsb_machine *machine, rs_request *request, VALUE buffer, const char *what) {
    uint64_t total = request->len;
    int64_t result = rs_try(&machine->engine, request);
    if (RS_LIKELY(result == (int64_t)total)) {
        rsb_after_inline(machine);
        return result;
    }
    if (result < 0 && result != -EAGAIN) rsb_fail(result, what, request->fd);
    int64_t done = result > 0 ? result : 0;
    request->address = (char *)request->address + done;
    request->len -= (uint64_t)done;
    if (request->offset >= 0) request->offset += done;
    request->options |= RS_REQUEST_ALL;
    if (done > 0 && rs_refusal(&machine->engine, 0) != RS_WAKE_VALUE) return done;
    result = rsb_wait_for(machine, request, buffer, RSB_OUT);
    if (result < 0 && done > 0) return done;
    if (result < 0) rsb_fail(result, what, request->fd);
    return done + result;
}

int64_t rsb_request_extra(rsb_machine *machine, rs_request *request, const char *what) {
    int64_t result = rs_try(&machine->engine, request);
    if (result == -EAGAIN) {
        result = rsb_wait_for(machine, request, Qnil, RSB_OUT);
    } else {
        free(request->extra);
        if (result >= 0) rsb_after_inline(machine);
    }
    if (result < 0) rsb_fail(result, what, request->fd);
    return result;
}

/* --- buffers --- */

static size_t length_argument(VALUE length, const char *what) {
    if (!RB_INTEGER_TYPE_P(length)) rb_raise(rsb_eUsage, "%s must be an Integer, got %" PRIsVALUE, what, rb_inspect(length));
    long long value = NUM2LL(length);
    if (value < 0) rb_raise(rsb_eUsage, "%s must not be negative, got %lld", what, value);
    return (size_t)value;
}

static rsb_target string_target(VALUE string, VALUE length, VALUE at) {
    size_t offset = NIL_P(at) ? 0 : length_argument(at, "offset");
    size_t size = NIL_P(length) ? DEFAULT_LENGTH : length_argument(length, "length");
    size_t present = (size_t)RSTRING_LEN(string);
    if (offset > present) {
        rb_raise(rsb_eUsage, "offset %zu lies behind the end of the String (%zu bytes)", offset, present);
    }
    if (OBJ_FROZEN(string)) rb_raise(rsb_eUsage, "the String is frozen; a read needs one that it can change");
    if (size > LONG_MAX - offset) rb_raise(rsb_eUsage, "length %zu is too large", size);
    if (rb_str_capacity(string) >= offset + size) rb_str_modify(string);
    else rb_str_modify_expand(string, (long)(offset + size - present));
    return (rsb_target){string, RSTRING_PTR(string) + offset, size, offset, true};
}

static rsb_target buffer_target(VALUE buffer, VALUE length, VALUE at) {
    void *base;
    size_t size;
    rb_io_buffer_get_bytes_for_writing(buffer, &base, &size);
    size_t offset = NIL_P(at) ? 0 : length_argument(at, "offset");
    if (offset > size) rb_raise(rsb_eUsage, "buffer too small: offset %zu, but it holds %zu bytes", offset, size);
    size_t wanted = NIL_P(length) ? size - offset : length_argument(length, "length");
    if (wanted > size - offset) {
        rb_raise(rsb_eUsage, "buffer too small: %zu bytes wanted at offset %zu, but it holds %zu; make it larger or ask for "
                 "less", wanted, offset, size);
    }
    return (rsb_target){buffer, (char *)base + offset, wanted, offset, false};
}

rsb_target rsb_target_of(VALUE buffer, VALUE length, VALUE at) {
    if (RS_LIKELY(RB_TYPE_P(buffer, T_STRING))) return string_target(buffer, length, at);
    if (rb_obj_is_kind_of(buffer, rb_cIOBuffer)) return buffer_target(buffer, length, at);
    rb_raise(rsb_eUsage, "expected a String or an IO::Buffer to read into, got %" PRIsVALUE, rb_obj_class(buffer));
}

void rsb_target_filled(const rsb_target *target, int64_t bytes) {
    if (!target->string) return;
    rb_str_set_len(target->buffer, (long)target->offset + (long)bytes);
    ENC_CODERANGE_CLEAR(target->buffer);
}

void rsb_source_of(VALUE buffer, rs_request *request) {
    if (RS_LIKELY(RB_TYPE_P(buffer, T_STRING))) {
        request->address = RSTRING_PTR(buffer);
        request->len = (uint64_t)RSTRING_LEN(buffer);
    } else if (rb_obj_is_kind_of(buffer, rb_cIOBuffer)) {
        const void *base;
        size_t size;
        rb_io_buffer_get_bytes_for_reading(buffer, &base, &size);
        request->address = (void *)base;
        request->len = size;
    } else {
        rb_raise(rsb_eUsage, "expected a String or an IO::Buffer to write, got %" PRIsVALUE, rb_obj_class(buffer));
    }
}

static int64_t file_offset(VALUE offset) {
    if (!RB_INTEGER_TYPE_P(offset)) rb_raise(rsb_eUsage, "file offset must be an Integer, got %" PRIsVALUE, rb_inspect(offset));
    long long value = NUM2LL(offset);
    if (value < 0) rb_raise(rsb_eUsage, "file offset must not be negative, got %lld", value);
    return value;
}

/* --- read and write --- */

static VALUE read_into(VALUE self, rs_request *request, rsb_target target, const char *what) {
    rsb_machine *machine = rsb_machine_of(self);
    request->address = target.address;
    request->len = target.length;
    int64_t bytes = rsb_request(machine, request, target.buffer, RSB_IN, what);
    rsb_target_filled(&target, bytes);
    return LL2NUM(bytes);
}

/* Reads what is there, at most length bytes; waits until there is something.
 *
 * May switch strands.
 *
 * @param io [Integer, IO] a descriptor
 * @param buffer [String, IO::Buffer] a String is cut or grown to what was read; an IO::Buffer keeps its size
 * @param length [Integer] bytes; default 16384 for a String, what fits for an IO::Buffer
 * @param offset [Integer] where in the buffer
 * @return [Integer] bytes read; 0 at the end of the stream
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_read(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 4);
    rs_request request = {.kind = RS_OP_READ, .fd = rsb_fd(argv[0]), .offset = -1};
    return read_into(self, &request, rsb_target_of(argv[1], argc > 2 ? argv[2] : Qnil, argc > 3 ? argv[3] : Qnil), "read");
}

/* Reads at a place of a file.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param length [Integer] bytes
 * @param offset [Integer] where in the buffer
 * @return [Integer] bytes read; 0 at the end of the file
 * @since 0.1.0
 */
static VALUE machine_pread(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 3, 5);
    rs_request request = {.kind = RS_OP_PREAD, .fd = rsb_fd(argv[0]), .offset = file_offset(argv[2])};
    return read_into(self, &request, rsb_target_of(argv[1], argc > 3 ? argv[3] : Qnil, argc > 4 ? argv[4] : Qnil), "pread");
}

static VALUE write_from(VALUE self, rs_request *request, VALUE buffer, const char *what) {
    rsb_machine *machine = rsb_machine_of(self);
    rsb_source_of(buffer, request);
    VALUE result = LL2NUM(rsb_request_all(machine, request, buffer, what));
    RB_GC_GUARD(buffer);
    return result;
}

/* Writes all of it.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @return [Integer] bytes written: all, unless a cancellation came after the first (it meets the next wait)
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_write(VALUE self, VALUE io, VALUE buffer) {
    rs_request request = {.kind = RS_OP_WRITE, .fd = rsb_fd(io), .offset = -1};
    return write_from(self, &request, buffer, "write");
}

/* Writes all of it at a place of a file.
 *
 * May switch strands.
 *
 * @param from [Integer] offset in the file, in bytes
 * @return [Integer] bytes written
 * @since 0.1.0
 */
static VALUE machine_pwrite(VALUE self, VALUE io, VALUE buffer, VALUE from) {
    rs_request request = {.kind = RS_OP_PWRITE, .fd = rsb_fd(io), .offset = file_offset(from)};
    return write_from(self, &request, buffer, "pwrite");
}

/* --- vectors --- */

static VALUE vector_of(VALUE buffers) {
    VALUE list = rb_check_array_type(buffers);
    if (NIL_P(list) || RARRAY_LEN(list) == 0 || RARRAY_LEN(list) > IOV_MAX) {
        rb_raise(rsb_eUsage, "expected an Array of 1 to %d Strings or IO::Buffers", IOV_MAX);
    }
    return rb_ary_dup(list);
}

static VALUE lock_one(VALUE buffer) {
    return RB_TYPE_P(buffer, T_STRING) ? rb_str_locktmp(buffer) : rb_io_buffer_lock(buffer);
}

static VALUE unlock_all(VALUE list) {
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE buffer = RARRAY_AREF(list, i);
        if (RB_TYPE_P(buffer, T_STRING)) rb_str_unlocktmp(buffer);
        else rb_io_buffer_unlock(buffer);
    }
    return Qnil;
}

/* All or none. */
static void lock_all(VALUE list) {
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        int state = 0;
        rb_protect(lock_one, RARRAY_AREF(list, i), &state);
        if (!state) continue;
        rb_set_errinfo(Qnil);
        unlock_all(rb_ary_subseq(list, 0, i));
        rb_raise(rsb_eUsage, "a buffer is in use by another operation, or stands twice in the list");
    }
}

static struct iovec *vector_parts(VALUE list, bool reading) {
    long count = RARRAY_LEN(list);
    for (long i = 0; i < count; i++) {
        VALUE buffer = RARRAY_AREF(list, i);
        if (reading && RB_TYPE_P(buffer, T_STRING)) rb_str_modify(buffer);
        else if (!RB_TYPE_P(buffer, T_STRING) && !rb_obj_is_kind_of(buffer, rb_cIOBuffer)) {
            rb_raise(rsb_eUsage, "expected a String or an IO::Buffer, got %" PRIsVALUE, rb_obj_class(buffer));
        } else if (!reading && RB_TYPE_P(buffer, T_STRING)) {
            rb_ary_store(list, i, rb_str_new_frozen(buffer));
        }
    }
    struct iovec *parts = rs_alloc(sizeof(*parts) * (size_t)count);
    for (long i = 0; i < count; i++) {
        VALUE buffer = RARRAY_AREF(list, i);
        rs_request part = {0};
        rsb_source_of(buffer, &part);
        parts[i] = (struct iovec){.iov_base = part.address, .iov_len = part.len};
    }
    return parts;
}

static void skip_bytes(rs_request *request, uint64_t bytes) {
    struct iovec *part = request->address;
    while (bytes > 0) {
        uint64_t step = bytes < part->iov_len ? bytes : part->iov_len;
        part->iov_base = (char *)part->iov_base + step;
        part->iov_len -= step;
        bytes -= step;
        if (part->iov_len == 0) {
            part++;
            request->len--;
        }
    }
    request->address = part;
}

typedef struct {
    rsb_machine *machine;
    rs_request request;
    VALUE list;
    const char *what;
    bool all;
} vector_call;

static int64_t vector_once(vector_call *call) {
    int64_t result = rs_try(&call->machine->engine, &call->request);
    if (result != -EAGAIN) return result;
    /* The op owns its iovecs; ours go on describing what is left. */
    rs_request request = call->request;
    size_t size = sizeof(struct iovec) * request.len;
    request.extra = memcpy(rs_alloc(size), request.address, size);
    request.address = request.extra;
    return rsb_perform(call->machine, &request, call->list);
}

static VALUE vector_run(VALUE argument) {
    vector_call *call = (vector_call *)argument;
    int64_t done = 0;
    for (;;) {
        int64_t result = vector_once(call);
        if (result < 0 && done == 0) rsb_fail(result, call->what, call->request.fd);
        if (result <= 0) break;
        done += result;
        if (!call->all) break;
        skip_bytes(&call->request, (uint64_t)result);
        if (call->request.offset >= 0) call->request.offset += result;
        if (call->request.len == 0 || rs_refusal(&call->machine->engine, 0) != RS_WAKE_VALUE) break;
    }
    return LL2NUM(done);
}

static VALUE free_parts(VALUE parts) {
    free((void *)parts);
    return Qnil;
}

static VALUE vector_guarded(VALUE argument) {
    vector_call *call = (vector_call *)argument;
    if (call->all) return vector_run(argument);
    lock_all(call->list);
    return rb_ensure(vector_run, argument, unlock_all, call->list);
}

static VALUE vector(VALUE self, VALUE io, VALUE buffers, rs_op_kind kind, const char *what) {
    vector_call call = {rsb_machine_of(self), {.kind = (uint8_t)kind, .fd = rsb_fd(io), .offset = -1}, vector_of(buffers),
                        what, kind == RS_OP_WRITEV};
    struct iovec *parts = vector_parts(call.list, kind == RS_OP_READV);
    call.request.address = parts;
    call.request.len = (uint64_t)RARRAY_LEN(call.list);
    VALUE result = rb_ensure(vector_guarded, (VALUE)&call, free_parts, (VALUE)parts);
    RB_GC_GUARD(call.list);
    rsb_after_inline(call.machine);
    return result;
}

/* Reads what is there into several buffers, one after the other; each takes as many bytes as it holds now, and keeps its
 * size.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffers [Array<String, IO::Buffer>]
 * @return [Integer] bytes read in all
 * @since 0.1.0
 */
static VALUE machine_readv(VALUE self, VALUE io, VALUE buffers) { return vector(self, io, buffers, RS_OP_READV, "readv"); }

/* Writes all of several buffers with as few system calls as possible.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffers [Array<String, IO::Buffer>]
 * @return [Integer] bytes written in all
 * @since 0.1.0
 */
static VALUE machine_writev(VALUE self, VALUE io, VALUE buffers) {
    return vector(self, io, buffers, RS_OP_WRITEV, "writev");
}

void rsb_init_io(void) {
    rb_define_method(rsb_cMachine, "read", machine_read, -1);
    rb_define_method(rsb_cMachine, "pread", machine_pread, -1);
    rb_define_method(rsb_cMachine, "write", machine_write, 2);
    rb_define_method(rsb_cMachine, "pwrite", machine_pwrite, 3);
    rb_define_method(rsb_cMachine, "readv", machine_readv, 2);
    rb_define_method(rsb_cMachine, "writev", machine_writev, 2);
    rsb_init_file();
}
