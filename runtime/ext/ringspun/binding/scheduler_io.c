/* scheduler_io: the hooks by which stock IO objects read, write and wait.
 *
 * The memory behind a hook's buffer is CRuby's: the String of a caller, or an IO's own buffer, which another strand may free by
 * closing the IO while we wait. So nothing but a try that does not wait touches it: what a wait has brought lies in a buffer of
 * the machine's and is copied, if the IO is still open, and what a file is to be given to write is copied before.
 */
#include "scheduler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a worker, or the kernel, is given at a time. */
#define PIECE_MAX (1u << 20)

static ID id_sort;

/* --- what an IO is --- */

/* What stands behind an IO's number is looked up once and written down in the IO itself: of the number alone nobody could tell
 * whether it still means the same. One that is frozen is looked up every time. */
enum { SORT_KIND = 7, SORT_SOCKET = 8, SORT_BYTES = 16, SORT_TELLS_REST = 32, SORT_BITS = 6 };

/* A socket says so itself, which takes less of the stack than a look at what it is. */
RSB_APART static long look_up(rsb_machine *machine, int fd) {
    int type = 0, family = 0;
    socklen_t size = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return rs_descriptor_classify(fd);
    if (!(fcntl(fd, F_GETFL) & O_NONBLOCK)) return RS_FD_BLOCKING;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
    rs_request made = {.kind = RS_OP_SOCKET, .flags = (uint32_t)family, .mode = (uint32_t)type};
    rs_descriptor_note(&machine->engine.descriptors, fd, RS_FD_STREAM, true);
    rs_socket_made(&machine->engine, &made, fd);
    const rs_descriptor *descriptor = &machine->engine.descriptors.table[fd];
    return RS_FD_STREAM | SORT_SOCKET | (descriptor->bytes ? SORT_BYTES : 0) | (descriptor->tells_rest ? SORT_TELLS_REST : 0);
}

static void know(rsb_machine *machine, VALUE io, int fd) {
    VALUE known = rb_attr_get(io, id_sort);
    if (RS_UNLIKELY(NIL_P(known) || FIX2LONG(known) >> SORT_BITS != fd)) {
        known = LONG2FIX(((long)fd << SORT_BITS) | look_up(machine, fd));
        if (!OBJ_FROZEN(io)) rb_ivar_set(io, id_sort, known);
    }
    long sort = FIX2LONG(known);
    rs_descriptor *descriptor = rs_descriptor_get(&machine->engine.descriptors, fd);
    descriptor->kind = sort & SORT_KIND;
    descriptor->socket = sort & SORT_SOCKET;
    descriptor->bytes = sort & SORT_BYTES;
    descriptor->tells_rest = sort & SORT_TELLS_REST;
}

static VALUE descriptor_of(VALUE io) { return INT2FIX(rb_io_descriptor(io)); }

static bool is_open_as(VALUE io, int fd) {
    int state = 0;
    VALUE now = rb_protect(descriptor_of, io, &state);
    if (!state) return FIX2INT(now) == fd;
    rb_set_errinfo(Qnil);
    return false;
}

NORETURN(static void fail_closed(void));
static void fail_closed(void) { rb_raise(rb_eIOError, "stream closed in another strand"); }

static int64_t io_deadline(rsb_machine *machine, VALUE io) {
    VALUE timeout = rb_io_timeout(io);
    return RS_LIKELY(NIL_P(timeout)) ? RS_NEVER : rsb_interval_end(machine, timeout);
}

/* --- without a machine that may park, or in a world of its own --- */

typedef struct {
    uint8_t kind;
    int fd;
    void *address;
    size_t len;
    int64_t offset;
    int timeout_ms;
    short events;
    int64_t result;
} outside_call;

static void *call_outside(void *argument) {
    outside_call *call = argument;
    struct pollfd descriptor = {.fd = call->fd, .events = call->events};
    switch (call->kind) {
    case RS_OP_READ: call->result = read(call->fd, call->address, call->len); break;
    case RS_OP_WRITE: call->result = write(call->fd, call->address, call->len); break;
    case RS_OP_PREAD: call->result = pread(call->fd, call->address, call->len, call->offset); break;
    case RS_OP_PWRITE: call->result = pwrite(call->fd, call->address, call->len, call->offset); break;
    default: call->result = poll(&descriptor, 1, call->timeout_ms);
    }
    if (call->result < 0) call->result = -errno;
    else if (call->kind == RS_OP_POLL && call->result > 0) call->result = descriptor.revents;
    return NULL;
}

RSB_APART static int64_t outside(outside_call call) {
    call.result = -EINTR;
    rb_nogvl(call_outside, &call, RUBY_UBF_IO, NULL, 0);
    return call.result;
}

static bool serves(const rsb_machine *machine) { return machine && !machine->engine.backend->closed_world; }

/* --- readiness --- */

static uint32_t mask_of(VALUE events) {
    uint32_t mask = (uint32_t)rsb_integer(events, 0, UINT32_MAX, "io_wait: the events");
    if (mask && (mask & ~(uint32_t)(POLLIN | POLLPRI | POLLOUT)) == 0) return mask;
    rb_raise(rsb_eUsage, "io_wait: %u is no mask of events; combine IO::READABLE, IO::PRIORITY and IO::WRITABLE", mask);
}

/* An error, or the other side's end, is news for whoever waits for anything. */
static VALUE ready_events(int64_t result, uint32_t mask) {
    uint32_t ready = (uint32_t)result & mask;
    return UINT2NUM(ready ? ready : mask);
}

static int milliseconds(VALUE timeout) {
    if (NIL_P(timeout)) return -1;
    struct timespec interval = rb_time_timespec_interval(timeout);
    if (interval.tv_sec > 1000000) return 1000000000;
    return (int)(interval.tv_sec * 1000 + (interval.tv_nsec + 999999) / 1000000);
}

/* Called when an IO is not ready: waits until it is.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param events [Integer] IO::READABLE, IO::PRIORITY and IO::WRITABLE, combined
 * @param timeout [Numeric, nil] seconds
 * @return [Integer, false] the events that it is ready for; false when the time is up
 * @raise [IOError] when the IO is closed meanwhile by {Machine#close}
 * @since 0.1.0
 */
static VALUE scheduler_io_wait(VALUE self, VALUE io, VALUE events, VALUE timeout) {
    uint32_t mask = mask_of(events);
    rsb_machine *machine = rsb_hook_machine(self);
    int fd = rb_io_descriptor(io);
    if (timeout == Qundef) timeout = rb_io_timeout(io);
    if (RS_UNLIKELY(!serves(machine))) {
        int64_t result = outside((outside_call){.kind = RS_OP_POLL, .fd = fd, .events = (short)mask, .timeout_ms = milliseconds(timeout)});
        if (result < 0) rb_syserr_fail((int)-result, "io_wait");
        return result == 0 ? Qfalse : ready_events(result, mask);
    }
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .flags = mask};
    int64_t result;
    if (timeout == INT2FIX(0)) {
        rsb_after_inline(machine);
        result = rs_try(&machine->engine, &request);
        if (result == -EAGAIN) return Qfalse;
    } else {
        result = rsb_perform_until(machine, &request, rsb_interval_end(machine, timeout), NULL, NULL);
        if (result == -ETIMEDOUT) return Qfalse;
    }
    if (RS_UNLIKELY(result < 0)) {
        if (!is_open_as(io, fd)) fail_closed();
        rb_syserr_fail((int)-result, "io_wait");
    }
    return ready_events(result, mask);
}

/* --- transfers --- */

typedef struct {
    rsb_machine *machine;       /* NULL: none that may park */
    VALUE io, buffer;
    char *memory;               /* in the buffer, where the request's bytes come from or go to */
    rs_request request;         /* for what is left; `done` are those that a wait has brought */
} transfer;

static bool reads(const transfer *t) { return t->request.kind == RS_OP_READ || t->request.kind == RS_OP_PREAD; }

static bool is_file(const transfer *t) {
    rs_fd_kind kind = rs_descriptor_kind(&t->machine->engine.descriptors, t->request.fd);
    return kind == RS_FD_FILE_LOCAL || kind == RS_FD_FILE_REMOTE;
}

static inline size_t length_of(VALUE number, const char *what) {
    if (RS_LIKELY(RB_FIXNUM_P(number) && FIX2LONG(number) >= 0)) return (size_t)FIX2LONG(number);
    return (size_t)rsb_integer(number, 0, INT64_MAX, what);
}

NORETURN(static void refuse_buffer(const transfer *t, size_t size, size_t offset, size_t minimum));
static void refuse_buffer(const transfer *t, size_t size, size_t offset, size_t minimum) {
    if (!rsb_is_buffer(t->buffer)) rb_raise(rsb_eUsage, "expected an IO::Buffer, got %" PRIsVALUE, rb_obj_class(t->buffer));
    if (offset <= size && minimum <= size - offset) {
        rb_raise(rsb_eUsage, "the IO::Buffer is read-only; a read needs one that it can change");
    }
    rb_raise(rsb_eUsage, "buffer too small: %zu bytes wanted at offset %zu, but it holds %zu", minimum, offset, size);
}

/* Where the buffer's memory begins, if it is one that will do. */
static inline char *memory_of(const transfer *t, size_t offset, size_t minimum, size_t *size) {
    void *base = NULL;
    bool known = !RB_SPECIAL_CONST_P(t->buffer) && (RS_LIKELY(rb_class_of(t->buffer) == rb_cIOBuffer) || rsb_is_buffer(t->buffer));
    if (RS_UNLIKELY(!known)) refuse_buffer(t, 0, 0, 0);
    enum rb_io_buffer_flags flags = rb_io_buffer_get_bytes(t->buffer, &base, size);
    bool fits = offset <= *size && minimum <= *size - offset && !(reads(t) && (flags & RB_IO_BUFFER_READONLY));
    if (RS_UNLIKELY(!fits)) refuse_buffer(t, *size, offset, minimum);
    return base;
}

/* Without a minimum CRuby wants to know that nothing is there, as read_nonblock does, or waits then by io_wait and asks again.
 * Of what is written in C, nothing that a program calls is for not waiting: it waits here, which is half the work. (Of sysread and
 * syswrite CRuby would make an error.) */
static bool must_wait(void) { return rsb_called_from_c(); }

/* From the buffer in which the op has its bytes. */
static void take_arrival(const rs_op *op, void *argument) {
    transfer *t = argument;
    if (op->result <= 0 || !is_open_as(t->io, t->request.fd)) return;
    void *base = NULL;
    size_t size = 0;
    rb_io_buffer_get_bytes(t->buffer, &base, &size);
    size_t place = (size_t)(t->memory - (char *)base);
    if (!base || place > size || (size_t)op->result > size - place) return;
    memcpy(t->memory, op->request.address, (size_t)op->result);
    t->request.done = (uint64_t)op->result;
}

static inline int64_t wait_to_read(transfer *t) {
    t->request.address = NULL;
    t->request.options = RS_REQUEST_ANY_BUFFER;
    if (t->request.len > PIECE_MAX) t->request.len = PIECE_MAX;
    int64_t result = rsb_perform_until(t->machine, &t->request, io_deadline(t->machine, t->io), take_arrival, t);
    if (result > 0 && t->request.done == 0) fail_closed();
    return result;
}

/* Its bytes are copied for the op. */
RSB_APART static int64_t wait_for_file(transfer *t) {
    if (t->request.len > PIECE_MAX) t->request.len = PIECE_MAX;
    t->request.extra = t->request.address = memcpy(rs_alloc(t->request.len), t->memory, t->request.len);
    return rsb_perform_until(t->machine, &t->request, RS_NEVER, NULL, NULL);
}

/* 0: there is room, perhaps. */
RSB_APART static int64_t wait_for_room(transfer *t) {
    rs_request request = {.kind = RS_OP_POLL, .fd = t->request.fd, .flags = POLLOUT};
    int64_t ready = rsb_perform_until(t->machine, &request, io_deadline(t->machine, t->io), NULL, NULL);
    return ready < 0 ? ready : 0;
}

/* Answers as a system call would: what was transferred, or -errno. */
static inline int64_t step(transfer *t, bool may_wait) {
    may_wait = may_wait || is_file(t);
    rs_descriptor *descriptor = rs_descriptor_get(&t->machine->engine.descriptors, t->request.fd);
    /* Who does not wait wants to know, and not a guess. */
    if (descriptor->drained && !may_wait && !(may_wait = must_wait())) descriptor->drained = false;
    int64_t result = rs_try(&t->machine->engine, &t->request);
    if (RS_LIKELY(result != -EAGAIN)) return result;
    if (!may_wait && !must_wait()) return result;
    do {
        result = reads(t) ? wait_to_read(t) : is_file(t) ? wait_for_file(t) : wait_for_room(t);
        if (RS_UNLIKELY(result == -ETIMEDOUT)) rb_raise(rb_eIOTimeoutError, "Blocking operation timed out!");
        if (!is_open_as(t->io, t->request.fd)) fail_closed();
        if (result != 0 || reads(t)) return result;
        result = rs_try(&t->machine->engine, &t->request);
    } while (result == -EAGAIN);
    return result;
}

static inline void next_request(transfer *t, uint8_t kind, int fd, size_t len, int64_t offset) {
    t->request = (rs_request){.kind = kind, .fd = fd, .address = t->memory, .len = len, .offset = offset};
}

/* Goes on until so much is done; 0: once. `from`: in the file, -1 for the descriptor's own position. */
static inline VALUE run(transfer *t, uint8_t kind, size_t offset, size_t minimum, size_t maximum, int64_t from) {
    size_t most, done = 0;
    t->request.kind = kind;
    t->memory = memory_of(t, offset, minimum, &most) + offset;
    most -= offset;
    if (most > maximum) most = maximum;
    int fd = rb_io_descriptor(t->io);
    if (RS_UNLIKELY(!serves(t->machine))) {
        return LL2NUM(outside((outside_call){.kind = kind, .fd = fd, .address = t->memory, .len = most, .offset = from}));
    }
    if (RS_UNLIKELY(rsb_turn_ends(t->machine))) {
        rsb_yield(t->machine);
        if (!is_open_as(t->io, fd)) fail_closed();
    }
    know(t->machine, t->io, fd);
    do {
        next_request(t, kind, fd, most - done, from < 0 ? -1 : from + (int64_t)done);
        int64_t result = step(t, minimum > 0);
        if (result < 0) return LL2NUM(done > 0 ? (int64_t)done : result);
        if (result == 0) break;
        done += (size_t)result;
        t->memory += result;
    } while (done < minimum);
    return LL2NUM((int64_t)done);
}

/* --- the two contracts --- */

/* Up to version 3 of the hooks `length` is the least that is wanted, and 0 means: once, whatever is there. */
static inline VALUE at_least(VALUE self, VALUE io, VALUE buffer, int64_t from, VALUE length, VALUE offset, uint8_t kind) {
    transfer t = {.machine = rsb_hook_machine(self), .io = io, .buffer = buffer};
    return run(&t, kind, length_of(offset, "offset"), length_of(length, "length"), SIZE_MAX, from);
}

/* From version 4 on it is the most, and always once. */
static inline VALUE at_most(VALUE self, VALUE io, VALUE buffer, int64_t from, VALUE length, VALUE offset, uint8_t kind) {
    transfer t = {.machine = rsb_hook_machine(self), .io = io, .buffer = buffer};
    return run(&t, kind, length_of(offset, "offset"), 0, length_of(length, "length"), from);
}

static int64_t place_of(VALUE from) { return rsb_integer(from, 0, INT64_MAX, "file offset"); }

/* Called by IO#read and its kin.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param length [Integer] the least to read, in bytes; 0: once, what there is, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_read(VALUE self, VALUE io, VALUE buffer, VALUE length, VALUE offset) {
    return at_least(self, io, buffer, -1, length, offset, RS_OP_READ);
}

/* Called by IO#write and its kin.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param length [Integer] the least to write, in bytes; 0: once, what there is, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_write(VALUE self, VALUE io, VALUE buffer, VALUE length, VALUE offset) {
    return at_least(self, io, buffer, -1, length, offset, RS_OP_WRITE);
}

/* Called by IO#pread.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param length [Integer] the least to read, in bytes; 0: once, what there is, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_pread(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE length, VALUE offset) {
    return at_least(self, io, buffer, place_of(from), length, offset, RS_OP_PREAD);
}

/* Called by IO#pwrite.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param length [Integer] the least to write, in bytes; 0: once, what there is, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_pwrite(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE length, VALUE offset) {
    return at_least(self, io, buffer, place_of(from), length, offset, RS_OP_PWRITE);
}

/* Called by IO#read and its kin.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param offset [Integer] in the buffer
 * @param length [Integer] the most to read, in bytes
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE most_read(VALUE self, VALUE io, VALUE buffer, VALUE offset, VALUE length) {
    return at_most(self, io, buffer, -1, length, offset, RS_OP_READ);
}

/* Called by IO#write and its kin.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param offset [Integer] in the buffer
 * @param length [Integer] the most to write, in bytes
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE most_write(VALUE self, VALUE io, VALUE buffer, VALUE offset, VALUE length) {
    return at_most(self, io, buffer, -1, length, offset, RS_OP_WRITE);
}

/* Called by IO#pread.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param offset [Integer] in the buffer
 * @param length [Integer] the most to read, in bytes
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE most_pread(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE offset, VALUE length) {
    return at_most(self, io, buffer, place_of(from), length, offset, RS_OP_PREAD);
}

/* Called by IO#pwrite.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param offset [Integer] in the buffer
 * @param length [Integer] the most to write, in bytes
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE most_pwrite(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE offset, VALUE length) {
    return at_most(self, io, buffer, place_of(from), length, offset, RS_OP_PWRITE);
}

/* --- closing --- */

/* Called by IO#close of newer Rubies: strands that wait on the descriptor get an error first.
 *
 * May switch strands.
 *
 * @param fd [Integer] a descriptor
 * @return [true]
 * @since 0.1.0
 */
static VALUE scheduler_io_close(VALUE self, VALUE fd) {
    int number = (int)rsb_integer(fd, 0, INT32_MAX, "io_close: the descriptor");
    rsb_machine *machine = rsb_hook_machine(self);
    if (serves(machine)) {
        rsb_close(machine, fd);
    } else if (close(number) != 0 && errno != EINTR) {
        rb_sys_fail("close");
    }
    return Qtrue;
}

void rsb_init_scheduler_io(void) {
    id_sort = rb_intern("ringspun_sort");
    rb_define_method(rsb_cScheduler, "io_wait", scheduler_io_wait, 3);
    rb_define_method(rsb_cScheduler, "io_close", scheduler_io_close, 1);
    VALUE length_first = rb_define_module_under(rsb_cScheduler, "LengthFirst");
    rb_define_method(length_first, "io_read", least_read, 4);
    rb_define_method(length_first, "io_write", least_write, 4);
    rb_define_method(length_first, "io_pread", least_pread, 5);
    rb_define_method(length_first, "io_pwrite", least_pwrite, 5);
    VALUE offset_first = rb_define_module_under(rsb_cScheduler, "OffsetFirst");
    rb_define_method(offset_first, "io_read", most_read, 4);
    rb_define_method(offset_first, "io_write", most_write, 4);
    rb_define_method(offset_first, "io_pread", most_pread, 5);
    rb_define_method(offset_first, "io_pwrite", most_pwrite, 5);
    rb_include_module(rsb_cScheduler, RUBY_FIBER_SCHEDULER_VERSION < 4 ? length_first : offset_first);
}
