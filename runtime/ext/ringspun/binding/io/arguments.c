/* arguments: checks what callers pass to the I/O methods, before anything is done: numbers, descriptors, paths, buffers. A wrong
 * argument raises a UsageError that says what is expected, a closed IO a ClosedError.
 */
#include "io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a read that says none: a piece of a stream's buffer (RS_BUFFER_PIECE). */
#define DEFAULT_LENGTH 16384
/* The most that Linux transfers in one call: read(2), NOTES. */
#define LENGTH_MAX 0x7ffff000

/* The machine's table of descriptors is as long as the largest number. This is above Linux's default limit of 1048576
 * (/proc/sys/fs/nr_open in proc(5)). */
#define DESCRIPTOR_MAX (1 << 22)

/* The flag of a String that is temporarily locked: STR_TMPLOCK in string.c of CRuby. No header has it, so find_locked_flag looks
 * for it. 0: not found. */
static VALUE locked_flag;

/* --- numbers, descriptors, paths --- */

uint32_t rsb_flags(VALUE value, const char *what) { return (uint32_t)rsb_integer(value, 0, UINT32_MAX, what); }

static VALUE descriptor_of(VALUE io) { return INT2FIX(rb_io_descriptor(io)); }

int rsb_fd_of_io(VALUE io) {
    int state = 0;
    VALUE fd = rb_protect(descriptor_of, io, &state);
    if (!state) return FIX2INT(fd);
    rb_set_errinfo(Qnil);
    return -1;
}

/* Whether the IO of an RS_REQUEST_OF_OBJECT still has its number. The loop calls this, so a closed IO is noticed without an
 * exception. (If only one end of the IO is closed, an exception is raised and caught.) */
static bool op_is_open(const rs_op *op) {
    VALUE io = (VALUE)rs_op_kept(op);
    return !RTEST(rb_io_closed_p(io)) && rsb_fd_of_io(io) == rs_op_request(op)->fd;
}

static VALUE io_of(VALUE object) {
    if (RB_TYPE_P(object, T_FILE)) return object;
    VALUE io = rb_respond_to(object, rb_intern("to_io")) ? rb_funcall(object, rb_intern("to_io"), 0) : Qnil;
    if (RB_TYPE_P(io, T_FILE)) return io;
    rb_raise(rsb_eUsage, "expected a descriptor: an Integer or an IO, got %" PRIsVALUE, rsb_inspect(object));
}

int rsb_fd(VALUE io) {
    if (RS_LIKELY(RB_INTEGER_TYPE_P(io))) {
        int fd = (int)rsb_integer(io, 0, INT32_MAX, "a descriptor");
        if (RS_UNLIKELY(fd > DESCRIPTOR_MAX)) rb_raise(rsb_eClosed, "descriptor %d is not open; no process has that many", fd);
        return fd;
    }
    VALUE file = io_of(io);
    int fd = rsb_fd_of_io(file);
    if (fd < 0) rb_raise(rsb_eClosed, "%" PRIsVALUE " is not open (any more); pass an IO that is", rsb_inspect(file));
    return fd;
}

/* IO.popen and the like make IO objects with two descriptors. */
VALUE rsb_writing_end(VALUE io) { return RB_INTEGER_TYPE_P(io) ? io : rb_io_get_write_io(io_of(io)); }

/* The program may have closed the IO object's descriptor, and opened another with the same number, without the machine. */
int rsb_io_fd(rsb_machine *machine, VALUE io) {
    int fd = rsb_fd(io);
    if (RS_UNLIKELY(!RB_INTEGER_TYPE_P(io)) && rs_is_simulated(machine->engine)) {
        rb_raise(rsb_eUsage, "a simulated machine knows only the descriptors that it made, which are Integers; got %" PRIsVALUE,
                 rsb_inspect(io));
    }
    if (RS_UNLIKELY(!RB_FIXNUM_P(io))) rs_descriptor_forget(rs_descriptors_of(machine->engine), fd);
    return fd;
}

uint32_t rsb_generation(rsb_machine *machine, VALUE io) {
    return RB_FIXNUM_P(io) ? rs_descriptor_generation(rs_descriptors_of(machine->engine), (int)FIX2LONG(io)) : 0;
}

/* For an IO object, rsb_io_fd raises if it is closed. */
void rsb_check_descriptor(rsb_machine *machine, VALUE io, int fd, uint32_t generation, const char *what) {
    int now = RB_INTEGER_TYPE_P(io) ? fd : rsb_io_fd(machine, io);
    bool same = now == fd && rs_descriptor_generation(rs_descriptors_of(machine->engine), fd) == generation;
    if (RS_UNLIKELY(!same)) rsb_fail(-EBADF, what, fd);
}

/* The number is looked up before the yield, because afterwards it may mean another descriptor. If the object is closed already,
 * this raises after the yield: a strand that retries forever must not hold the thread. */
static int fd_after_others(rsb_machine *machine, VALUE io, VALUE *source) {
    VALUE object = RB_INTEGER_TYPE_P(io) ? io : io_of(io);
    int fd = RB_TYPE_P(object, T_FILE) ? rsb_fd_of_io(object) : rsb_fd(object);
    if (source) *source = rsb_own_source(*source);
    uint32_t generation = fd < 0 ? 0 : rs_descriptor_generation(rs_descriptors_of(machine->engine), fd);
    rsb_end_turn(machine);
    if (fd >= 0) rsb_check_descriptor(machine, object, fd, generation, rb_id2name(rb_frame_this_func()));
    return rsb_io_fd(machine, object);
}

int rsb_op_source_fd(rsb_machine *machine, VALUE io, VALUE *source) {
    if (RS_LIKELY(!rs_turn_ends(machine->engine))) return rsb_io_fd(machine, io);
    return fd_after_others(machine, io, source);
}

int rsb_op_fd(rsb_machine *machine, VALUE io) { return rsb_op_source_fd(machine, io, NULL); }

static VALUE path_of(VALUE path) { return rb_get_path(path); }

/* What rb_get_path itself raises for an object that is no path. */
static bool refuses_path(VALUE error) {
    return rsb_is_exception(error) && (rb_obj_is_kind_of(error, rb_eTypeError) || rb_obj_is_kind_of(error, rb_eArgError) ||
                                       rb_obj_is_kind_of(error, rb_eEncodingError));
}

/* The object's own to_path may wait, throw or exit: whatever ends it that way passes through. */
VALUE rsb_path(VALUE path) {
    int state = 0;
    VALUE string = rb_protect(path_of, path, &state);
    if (!state) return string;
    VALUE error = rb_errinfo();
    if (!refuses_path(error)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    rb_raise(rsb_eUsage, "expected a path (String or Pathname): %" PRIsVALUE, error);
}

/* --- strings --- */

static bool string_locked(VALUE string) { return (RBASIC(string)->flags & locked_flag) != 0; }

void rsb_string_writable(VALUE string) {
    if (RS_UNLIKELY(OBJ_FROZEN(string))) rb_raise(rsb_eUsage, "the String is frozen; a read needs one that it can change");
    if (RS_UNLIKELY(string_locked(string))) rsb_fail_busy();
}

static rsb_target string_target(VALUE string, VALUE length, VALUE at) {
    size_t offset = NIL_P(at) ? 0 : (size_t)rsb_integer(at, 0, INT64_MAX, "offset");
    size_t size = NIL_P(length) ? DEFAULT_LENGTH : (size_t)rsb_integer(length, 0, LENGTH_MAX, "length");
    size_t present = (size_t)RSTRING_LEN(string);
    if (offset > present) {
        rb_raise(rsb_eUsage, "offset %zu lies behind the end of the String (%zu bytes)", offset, present);
    }
    rsb_string_writable(string);
    if (rb_str_capacity(string) >= offset + size) rb_str_modify(string);
    else rb_str_modify_expand(string, (long)(offset + size - present));
    return (rsb_target){string, RSTRING_PTR(string) + offset, size, offset, true};
}

/* The program has copied the String during the wait. Copies share their bytes until one is modified (copy on write):
 * rb_str_modify has moved this String, and what was read is in the old place. Plain malloc, because a garbage collection could
 * free the old place. */
static void fill_again(VALUE string, size_t offset, const void *address, size_t bytes) {
    void *copy = memcpy(rsb_alloc(bytes + 1), address, bytes);
    long present = RSTRING_LEN(string);
    if ((size_t)present < offset + bytes) rb_str_modify_expand(string, (long)(offset + bytes) - present);
    memcpy(RSTRING_PTR(string) + offset, copy, bytes);
    free(copy);
}

void rsb_target_filled(const rsb_target *target, int64_t result) {
    if (!target->string) return;
    VALUE string = target->buffer;
    /* With MSG_TRUNC the result is the datagram's whole length: recv(2). */
    size_t bytes = (uint64_t)result > target->length ? target->length : (size_t)result;
    rb_str_modify(string);
    if (RS_UNLIKELY(RSTRING_PTR(string) + target->offset != (char *)target->address)) {
        fill_again(string, target->offset, target->address, bytes);
    }
    rb_str_set_len(string, (long)(target->offset + bytes));
}

/* --- IO::Buffers --- */

typedef struct {
    VALUE buffer;
    void *base;
    size_t size;
    bool write;
} span;

static VALUE fetch_span(VALUE argument) {
    span *s = (span *)argument;
    const void *base;
    if (!s->write) {
        rb_io_buffer_get_bytes_for_reading(s->buffer, &base, &s->size);
        s->base = (void *)base;
        return Qnil;
    }
    rb_io_buffer_get_bytes_for_writing(s->buffer, &s->base, &s->size);
    /* There is no other way to find out whether an op has locked the buffer. */
    rb_io_buffer_lock(s->buffer);
    return rb_io_buffer_unlock(s->buffer);
}

static span span_of(VALUE buffer, bool write) {
    span s = {.buffer = buffer, .write = write};
    int state = 0;
    rb_protect(fetch_span, (VALUE)&s, &state);
    /* A read of 0 bytes would look like the end of the stream. */
    if (!state && !s.base) rb_raise(rsb_eUsage, "this IO::Buffer cannot be used here: it was freed, or never had a size");
    if (!state) return s;
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    if (rb_obj_is_kind_of(error, rb_path2class("IO::Buffer::LockedError"))) rsb_fail_busy();
    rb_raise(rsb_eUsage, "this IO::Buffer cannot be used here: %" PRIsVALUE, error);
}

void rsb_buffer_check(VALUE buffer) { span_of(buffer, true); }

static rsb_target buffer_target(VALUE buffer, VALUE length, VALUE at) {
    span s = span_of(buffer, true);
    size_t offset = NIL_P(at) ? 0 : (size_t)rsb_integer(at, 0, INT64_MAX, "offset");
    if (offset > s.size) rb_raise(rsb_eUsage, "buffer too small: offset %zu, but it holds %zu bytes", offset, s.size);
    size_t wanted = NIL_P(length) ? s.size - offset : (size_t)rsb_integer(length, 0, INT64_MAX, "length");
    if (wanted > s.size - offset) {
        rb_raise(rsb_eUsage, "buffer too small: %zu bytes wanted at offset %zu, but it holds %zu; make it larger or ask for "
                 "less", wanted, offset, s.size);
    }
    return (rsb_target){buffer, (char *)s.base + offset, wanted, offset, false};
}

bool rsb_is_buffer(VALUE object) { return rb_obj_is_kind_of(object, rb_cIOBuffer); }

/* A slice uses the memory of another buffer, and locking the slice does not lock that buffer. */
bool rsb_is_slice(VALUE buffer) {
    return !RTEST(rb_funcall(buffer, rb_intern("internal?"), 0)) && !RTEST(rb_funcall(buffer, rb_intern("mapped?"), 0)) &&
           !RTEST(rb_funcall(buffer, rb_intern("external?"), 0));
}

/* --- either --- */

rsb_target rsb_target_of(VALUE buffer, VALUE length, VALUE at) {
    if (RS_LIKELY(RB_TYPE_P(buffer, T_STRING))) return string_target(buffer, length, at);
    if (rsb_is_buffer(buffer)) return buffer_target(buffer, length, at);
    rb_raise(rsb_eUsage, "expected a String or an IO::Buffer to read into, got %" PRIsVALUE, rb_obj_class(buffer));
}

void rsb_source_of(VALUE buffer, rs_transfer *transfer) {
    if (RS_LIKELY(RB_TYPE_P(buffer, T_STRING))) {
        transfer->address = RSTRING_PTR(buffer);
        transfer->len = (uint64_t)RSTRING_LEN(buffer);
    } else if (rsb_is_buffer(buffer)) {
        span s = span_of(buffer, false);
        transfer->address = s.base;
        transfer->len = s.size;
    } else {
        rb_raise(rsb_eUsage, "expected a String or an IO::Buffer to write, got %" PRIsVALUE, rb_obj_class(buffer));
    }
}

VALUE rsb_own_source(VALUE buffer) {
    if (RS_LIKELY(RB_TYPE_P(buffer, T_STRING))) return rb_str_new_frozen(buffer);
    if (!rsb_is_buffer(buffer) || !rsb_is_slice(buffer)) return buffer;
    rs_transfer part = {0};
    rsb_source_of(buffer, &part);
    return rb_str_new(part.address, (long)part.len);
}

void rsb_fail_busy(void) { rb_raise(rsb_eUsage, "the buffer is in use by another operation; give every one its own"); }

static void find_locked_flag(void) {
    VALUE string = rb_str_new_cstr("");
    VALUE before = RBASIC(string)->flags;
    rb_str_locktmp(string);
    VALUE changed = RBASIC(string)->flags ^ before;
    rb_str_unlocktmp(string);
    if ((changed & (changed - 1)) == 0 && RBASIC(string)->flags == before) locked_flag = changed;
}

void rsb_init_arguments(void) {
    rsb_driver.is_open = op_is_open;
    find_locked_flag();
}
