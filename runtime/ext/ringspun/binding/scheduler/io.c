/* io: the hooks io_wait, io_read, io_write, io_pread and io_pwrite, by which CRuby's IO objects wait and transfer bytes.
 *
 * The memory of a hook's buffer is CRuby's: the String of a caller, or an IO's own buffer, which another strand frees if it
 * closes the IO during the wait. So only a try that does not wait uses that memory. An op reads into a buffer of the machine,
 * which is copied if the IO is still open, and bytes to write to a file are copied before.
 */
#include "scheduler.h"
#include "binding/stream/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The most bytes of one op. */
#define PIECE_MAX (1u << 20)

/* Objects that are no IO and only have a `fileno` have no timeout. */
static VALUE timeout_of(VALUE io) { return RB_TYPE_P(io, T_FILE) ? rb_io_timeout(io) : Qnil; }

RSB_APART static int64_t io_deadline(rsb_machine *machine, VALUE io) {
    VALUE timeout = timeout_of(io);
    return RS_LIKELY(NIL_P(timeout)) ? RS_NEVER : rsb_interval_end(machine, timeout);
}

/* --- plain calls: nothing may park, or the machine is simulated --- */

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

/* Repeats the call after EINTR: any other signal may have interrupted it. */
static int64_t outside(outside_call call) {
    int64_t deadline_ns = call.timeout_ms < 0 ? RS_NEVER : rs_clock_ns() + call.timeout_ms * RSB_MILLISECOND_NS;
    for (;;) {
        call.result = -EINTR;
        rb_nogvl(call_outside, &call, RUBY_UBF_IO, NULL, 0);
        if (call.result != -EINTR) return call.result;
        rb_thread_check_ints();
        if (deadline_ns == RS_NEVER) continue;
        call.timeout_ms = rsb_milliseconds(deadline_ns - rs_clock_ns());
    }
}

/* For a real IO in a simulation: other strands go on meanwhile. A limit raises, because virtual time does not pass during the
 * wait. */
static int64_t poll_simulated(rsb_machine *machine, VALUE io, int fd, short events, int timeout_ms) {
    struct pollfd descriptor = {.fd = fd, .events = events};
    for (;;) {
        int64_t result = outside((outside_call){.kind = RS_OP_POLL, .fd = fd, .events = events});
        if (result != 0 || timeout_ms == 0) return result;
        if (timeout_ms > 0) rsb_fail_outside_time("io_wait");
        rsb_wait_outside(machine, &(rsb_outside_wait){.polls = &descriptor, .count = 1});
        if (!rsb_is_open_as(io, fd)) rsb_fail_closed();
    }
}

static bool serves(const rsb_machine *machine) { return machine && !rs_is_simulated(machine->engine); }

/* --- readiness --- */

static uint32_t mask_of(VALUE events) {
    uint32_t mask = (uint32_t)rsb_integer(events, 0, UINT32_MAX, "io_wait: the events");
    if (mask && (mask & ~(uint32_t)(POLLIN | POLLPRI | POLLOUT)) == 0) return mask;
    rb_raise(rsb_eUsage, "io_wait: %u is no mask of events; combine IO::READABLE, IO::PRIORITY and IO::WRITABLE", mask);
}

/* An error, or the end of the other side, counts as readiness for all the events waited for. */
static VALUE ready_events(int64_t result, uint32_t mask) {
    uint32_t ready = (uint32_t)result & mask;
    return UINT2NUM(ready ? ready : mask);
}

static int milliseconds(VALUE timeout) { return rsb_milliseconds(NIL_P(timeout) ? RS_NEVER : rsb_interval_ns(timeout)); }

NORETURN(static void fail_timeout(void));
static void fail_timeout(void) { rb_raise(rb_eIOTimeoutError, "Blocking operation timed out!"); }

/* The time is up. IO#wait and the like return nil for false. In a read or a write CRuby would raise an error of the present
 * `errno`, so this raises IO::TimeoutError. */
static VALUE out_of_time(bool of_io) {
    static const char *const waits[] = {"wait_readable", "wait_writable", "wait", "wait_priority"};
    bool only_waits = !of_io;
    for (size_t i = 0; !only_waits && i < sizeof(waits) / sizeof(*waits); i++) only_waits = rsb_called_by("IO", waits[i]);
    if (!only_waits) fail_timeout();
    return Qfalse;
}

/* The op says whether the descriptor was closed meanwhile, and the IO does not: a strand whose wait ends by a close may run before the
 * strand that closes the IO. */
static void note_close(const rs_op *op, void *closed) { *(bool *)closed = rs_op_was_closed(op); }

/* Called when an IO is not ready: waits until it is.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param events [Integer] IO::READABLE, IO::PRIORITY and IO::WRITABLE, combined
 * @param timeout [Numeric, nil] seconds; nil: the IO's own timeout
 * @return [Integer, false] the ready events; false when the time is up
 * @raise [IOError] when the IO is closed meanwhile by {Machine#close}
 * @raise [IO::TimeoutError] when the IO's own time is up, for a read or a write
 * @since 0.1.0
 */
static VALUE scheduler_io_wait(VALUE self, VALUE io, VALUE events, VALUE timeout) {
    uint32_t mask = mask_of(events);
    rsb_machine *machine = rsb_hook_machine(self);
    int fd = rb_io_descriptor(io);
    bool own = NIL_P(timeout) || timeout == Qundef;
    if (own) timeout = timeout_of(io);
    if (RS_UNLIKELY(!serves(machine))) {
        outside_call plain = {.kind = RS_OP_POLL, .fd = fd, .events = (short)mask, .timeout_ms = milliseconds(timeout)};
        int64_t result = machine ? poll_simulated(machine, io, fd, plain.events, plain.timeout_ms) : outside(plain);
        if (machine) rsb_leave_hook(machine);
        if (result < 0) rb_syserr_fail((int)-result, "io_wait");
        return result == 0 ? out_of_time(own) : ready_events(result, mask);
    }
    if ((mask & POLLIN) && RS_UNLIKELY(rsb_stream_holds(machine, io))) return ready_events(POLLIN, mask);
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = mask};
    bool closed = false;
    int64_t result = -EAGAIN;
    if (timeout == INT2FIX(0)) {
        rsb_before_look(machine);
        request.fd = fd = rb_io_descriptor(io); /* again: other strands may have closed it */
        result = rs_try(machine->engine, &request);
        if (result == -EAGAIN) result = RSB_TIME_IS_UP;
    } else if (RS_UNLIKELY(rs_refusal(machine->engine, 0) != RS_WAKE_VALUE)) {
        result = rs_try(machine->engine, &request); /* who may not wait is told what is ready */
    }
    if (result == -EAGAIN) {
        rsb_op_wait wait = {.io = io, .answers_close = true, .deadline_ns = rsb_interval_end(machine, timeout), .take = note_close,
                            .argument = &closed};
        result = rsb_perform(machine, &request, &wait);
    }
    rsb_leave_hook(machine);
    if (result == RSB_TIME_IS_UP) return out_of_time(own);
    if (RS_UNLIKELY(result < 0)) {
        if (closed || !rsb_is_open_as(io, fd)) rsb_fail_closed();
        rb_syserr_fail((int)-result, "io_wait");
    }
    return ready_events(result, mask);
}

/* --- transfers --- */

typedef struct {
    rsb_machine *machine;
    VALUE io, buffer;
    VALUE sort;                 /* of the IO's descriptor; nil: others have run since, and may have reopened it */
    char *memory;               /* where the buffer has its offset; NULL: others have run since, and may have freed it */
    size_t offset;              /* in the buffer, in bytes */
    size_t minimum;             /* bytes after which it ends; 0: one call, without waiting */
    size_t most;
    size_t done;
    rs_request request;
    bool cut;                   /* the op was cut to PIECE_MAX, so its result is no short transfer */
    bool waits;                 /* it has to wait */
    bool closed;                /* its last wait has ended because a strand closes the descriptor */
} transfer;

static bool reads(uint8_t kind) { return kind == RS_OP_READ || kind == RS_OP_PREAD; }

/* The memory of the buffer; size 0 if it was freed. */
static size_t memory_of(VALUE buffer, char **base, bool *writable) {
    void *address;
    size_t size;
    enum rb_io_buffer_flags flags = rb_io_buffer_get_bytes(buffer, &address, &size);
    *base = address;
    *writable = !(flags & RB_IO_BUFFER_READONLY);
    return size;
}

/* Checks the arguments, and bounds `most` by the buffer's size. */
RSB_APART static void check_call(transfer *t) {
    bool plain = !RB_SPECIAL_CONST_P(t->buffer) && rb_class_of(t->buffer) == rb_cIOBuffer;
    if (RS_UNLIKELY(!plain) && !rsb_is_buffer(t->buffer)) {
        rb_raise(rsb_eUsage, "expected an IO::Buffer, got %" PRIsVALUE, rb_obj_class(t->buffer));
    }
    bool writable;
    char *base;
    size_t size = memory_of(t->buffer, &base, &writable);
    if (reads(t->request.kind) && !writable) {
        rb_raise(rsb_eUsage, "the IO::Buffer is read-only; a read needs one that it can change");
    }
    if (t->offset > size || t->minimum > size - t->offset) {
        rb_raise(rsb_eUsage, "buffer too small: %zu bytes wanted at offset %zu, but it holds %zu", t->minimum, t->offset, size);
    }
    if (t->most > size - t->offset) t->most = size - t->offset;
    t->memory = base ? base + t->offset : NULL;
}

/* Finds the address again after other strands have run: they may have freed or resized the program's own IO::Buffer. False: it is
 * too small now. */
static bool find_memory(transfer *t) {
    char *base;
    bool writable;
    size_t size = memory_of(t->buffer, &base, &writable);
    if (t->offset + t->most > size || (reads(t->request.kind) && !writable)) return false;
    t->request.transfer.address = base ? base + t->offset + t->done : NULL;
    return true;
}

static void need_memory(transfer *t) {
    if (RS_LIKELY(find_memory(t))) return;
    rb_raise(rsb_eUsage, "the IO::Buffer was freed or made smaller while another strand ran");
}

RSB_APART static void check_after_wait(transfer *t) {
    if (t->closed || !rsb_is_open_as(t->io, t->request.fd)) rsb_fail_closed();
    need_memory(t);
}

/* Whether a transfer without a minimum must wait. After -EAGAIN CRuby either returns to the program, as in read_nonblock, or
 * calls io_wait and the hook again (io_read_nonblock and rb_io_maybe_wait_readable in io.c). Methods written in C are never the
 * non-blocking ones, so the hook waits for them at once, which is half the work. (For sysread and syswrite CRuby would raise
 * -EAGAIN.) */
static bool must_wait(const transfer *t) {
    return rsb_called_from_c() && !(t->request.kind == RS_OP_WRITE && rsb_waits_itself(t->io));
}

/* Copies the bytes that the op has read, if IO and buffer are still there. */
static void take_arrival(const rs_op *op, void *argument) {
    transfer *t = argument;
    note_close(op, &t->closed);
    if (rs_op_result(op) <= 0 || !rsb_is_open_as(t->io, t->request.fd) || !find_memory(t)) return;
    memcpy(t->request.transfer.address, rs_op_request(op)->transfer.address, (size_t)rs_op_result(op));
}

static void cut(transfer *t, rs_request *request) {
    t->cut = request->transfer.len > PIECE_MAX;
    if (t->cut) request->transfer.len = PIECE_MAX;
}

/* Uses t->request itself, to keep the stack small. */
static int64_t wait_to_read(transfer *t) {
    t->request.transfer.address = NULL;
    t->request.options |= RS_REQUEST_ANY_BUFFER;
    cut(t, &t->request);
    rsb_op_wait wait = {.io = t->io, .answers_close = true, .deadline_ns = io_deadline(t->machine, t->io), .take = take_arrival,
                        .argument = t};
    return rsb_perform(t->machine, &t->request, &wait);
}

static rs_fd_kind kind_of(const transfer *t) { return rs_descriptor_kind(rs_descriptors_of(t->machine->engine), t->request.fd); }

/* Writes a copy of the bytes to a file by an op. For other descriptors it waits until there is room; the caller tries again. */
RSB_APART static int64_t wait_to_write(transfer *t) {
    rs_request request = t->request;
    rsb_op_wait wait = {.answers_close = true, .deadline_ns = io_deadline(t->machine, t->io), .take = note_close,
                        .argument = &t->closed};
    if (!rs_fd_is_file(kind_of(t))) {
        request = (rs_request){.kind = RS_OP_POLL, .fd = t->request.fd, .poll.events = POLLOUT};
        wait.io = t->io;
        int64_t ready = rsb_perform(t->machine, &request, &wait);
        return ready < 0 ? ready : 0;
    }
    cut(t, &request);
    uint64_t len = request.transfer.len;
    request.owned = request.transfer.address = memcpy(rsb_alloc(len), t->request.transfer.address, len);
    return rsb_perform(t->machine, &request, &wait);
}

static bool waits_for_itself(const transfer *t) { return t->minimum > 0 || rs_fd_is_file(kind_of(t)); }

static int64_t try_once(transfer *t, bool *may_wait) {
    rs_descriptors *descriptors = rs_descriptors_of(t->machine->engine);
    *may_wait = waits_for_itself(t);
    /* A call that does not wait needs the kernel's answer, and not the hint that the descriptor is empty (`drained`). */
    bool guess = rs_descriptor_is_drained(descriptors, t->request.fd) && !*may_wait;
    if (guess && !(*may_wait = must_wait(t))) rs_descriptor_may_have(descriptors, t->request.fd);
    /* CRuby locks an IO while a write is in its hook, and whoever is no strand may not wait for that lock. */
    if (!reads(t->request.kind)) return rs_try(t->machine->engine, &t->request);
    int64_t result = rs_ask(t->machine->engine, &t->request);
    if (RS_LIKELY(!(t->request.options & RS_REQUEST_UNTRIED))) return result;
    if (*may_wait || (*may_wait = must_wait(t))) return result;
    t->request.options = 0;
    return rs_try(t->machine->engine, &t->request);
}

/* Returns how many bytes were transferred, or -errno. A function of its own, like all that need not be on the stack of a parked
 * strand, which keeps every page that it has touched. */
RSB_APART static int64_t step(transfer *t) {
    bool may_wait;
    if (RS_LIKELY(t->memory != NULL)) t->request.transfer.address = t->memory + t->done;
    else need_memory(t);
    int64_t result = try_once(t, &may_wait);
    if (RS_LIKELY(result != -EAGAIN)) return result;
    /* The IO may have been reopened as something else. This check costs little compared with the wait for a file. */
    if (rs_fd_is_file(kind_of(t)) && !rs_fd_is_file(rs_descriptor_classify(t->request.fd))) {
        rsb_sort_restore(t->machine, rsb_sort_look_up(t->machine, t->io, t->request.fd), t->request.fd);
        result = try_once(t, &may_wait);
        if (result != -EAGAIN) return result;
    }
    t->waits = may_wait || must_wait(t);
    return result;
}

static int64_t wait_to_go_on(transfer *t) {
    int64_t result;
    do {
        result = reads(t->request.kind) ? wait_to_read(t) : wait_to_write(t);
        if (RS_UNLIKELY(result == RSB_TIME_IS_UP)) rsb_leave_hook(t->machine), fail_timeout();
        check_after_wait(t);
        if (result != 0 || reads(t->request.kind)) return result;
        result = rs_try(t->machine->engine, &t->request);
    } while (result == -EAGAIN);
    return result;
}

/* Whether the transfer goes on where one system call would have: with the rest after a cut to PIECE_MAX, or with a write to a
 * blocking descriptor, which gets only as many bytes at a time as it has room for. */
static bool goes_on(const transfer *t, size_t transferred) {
    if (t->done == t->most) return false;
    if (t->done < t->minimum) return true;
    return (t->cut && transferred == PIECE_MAX) || (!reads(t->request.kind) && kind_of(t) == RS_FD_BLOCKING);
}

static void forget(transfer *t) {
    t->sort = Qnil;
    t->memory = NULL;
}

static void let_others(transfer *t) {
    if (RS_LIKELY(!rs_turn_ends(t->machine->engine))) return;
    forget(t);
    rsb_end_turn(t->machine);
    if (!rsb_is_open_as(t->io, t->request.fd)) rsb_fail_closed();
}

static void restore_sort(transfer *t) {
    if (RS_UNLIKELY(NIL_P(t->sort))) t->sort = rsb_sort_of(t->machine, t->io, t->request.fd);
    rsb_sort_restore(t->machine, t->sort, t->request.fd);
}

static int64_t transfer_all(transfer *t) {
    int64_t result;
    do {
        let_others(t);
        restore_sort(t);
        t->cut = t->waits = t->closed = false;
        t->request = (rs_request){.kind = t->request.kind, .fd = t->request.fd,
                                  .transfer = {.len = t->most - t->done, .offset = t->request.transfer.offset}};
        result = step(t);
        if (t->waits) {
            forget(t);
            result = wait_to_go_on(t);
        }
        if (result <= 0) break;
        t->done += (size_t)result;
        if (t->request.transfer.offset >= 0) t->request.transfer.offset += result;
    } while (goes_on(t, (size_t)result));
    if (t->done == 0) return result;
    if (result < 0) rs_descriptor_owe(t->machine->engine, &t->request, 0, result);
    return (int64_t)t->done;
}

/* IO#pwrite calls its hook without the GVL (seen on CRuby 3.3 and 3.4). So no strand may park and no object be allocated here.
 * To release the GVL once more would make a cycle in a list of CRuby's (register_ubf_list in thread_pthread.c), in which its
 * timer thread loops forever. */
RSB_APART static VALUE write_without_gvl(VALUE io, VALUE buffer, int64_t from) {
    char *base;
    bool writable;
    size_t size = memory_of(buffer, &base, &writable);
    int64_t result;
    do result = pwrite(rb_io_descriptor(io), base, size, from); while (result < 0 && errno == EINTR);
    return LL2NUM(result < 0 ? -errno : result);
}

static outside_call plain_call(transfer *t) {
    need_memory(t);
    return (outside_call){.kind = t->request.kind, .fd = t->request.fd, .address = t->request.transfer.address, .len = t->most - t->done,
                          .offset = t->request.transfer.offset + (int64_t)t->done};
}

/* For a real IO in a simulation. On a blocking descriptor it polls first, so that the call does not block. A pipe that is ready
 * to be written takes PIPE_BUF bytes at once, and perhaps no more: pipe(7). */
RSB_APART static int64_t transfer_simulated(transfer *t) {
    bool blocks = rs_descriptor_classify(t->request.fd) == RS_FD_BLOCKING, waits = blocks;
    short events = reads(t->request.kind) ? POLLIN : POLLOUT;
    size_t goal = blocks && !reads(t->request.kind) ? t->most : t->minimum;
    int64_t result;
    do {
        if (waits) poll_simulated(t->machine, t->io, t->request.fd, events, milliseconds(timeout_of(t->io)));
        outside_call call = plain_call(t);
        if (blocks && call.len > PIPE_BUF) call.len = PIPE_BUF;
        result = outside(call);
        if (result == -EAGAIN && (t->minimum > 0 || must_wait(t))) waits = true;
        if (result > 0) t->done += (size_t)result;
    } while (result == -EAGAIN ? waits : result > 0 && t->done < goal);
    return result < 0 && t->done == 0 ? result : (int64_t)t->done;
}

static size_t length_of(VALUE number, const char *what) {
    if (RS_LIKELY(RB_FIXNUM_P(number) && FIX2LONG(number) >= 0)) return (size_t)FIX2LONG(number);
    return (size_t)rsb_integer(number, 0, INT64_MAX, what);
}

/* What `length` means. Up to version 3 of the hooks it is a minimum; 0: one call. From version 4 on it is a maximum, and always
 * one call (ruby/ruby#18483). */
enum { AT_LEAST = 0, AT_MOST = 0x80 };

RSB_APART static VALUE transfer_known(rsb_machine *machine, VALUE io, VALUE sort, VALUE buffer, int64_t from, VALUE length,
                                      VALUE offset, unsigned what) {
    transfer t = {.machine = machine, .io = io, .buffer = buffer, .sort = sort, .offset = length_of(offset, "offset"),
                  .most = SIZE_MAX,
                  .request = {.kind = what & ~AT_MOST, .fd = rb_io_descriptor(io), .transfer.offset = from}};
    *(what & AT_MOST ? &t.most : &t.minimum) = length_of(length, "length");
    check_call(&t);
    if (RS_UNLIKELY(!machine)) return LL2NUM(outside(plain_call(&t)));
    int64_t result = serves(machine) ? transfer_all(&t) : transfer_simulated(&t);
    rsb_leave_hook(machine);
    return LL2NUM(result);
}

/* The kind of the IO is looked up here, before more is on the stack. */
static VALUE run(VALUE self, VALUE io, VALUE buffer, int64_t from, VALUE length, VALUE offset, unsigned what) {
    if ((what & ~AT_MOST) == RS_OP_PWRITE && RS_UNLIKELY(!rsb_has_gvl())) return write_without_gvl(io, buffer, from);
    rsb_machine *machine = rsb_hook_machine(self);
    VALUE sort = RS_LIKELY(serves(machine)) ? rsb_sort_of(machine, io, rb_io_descriptor(io)) : Qnil;
    return transfer_known(machine, io, sort, buffer, from, length, offset, what);
}

static int64_t place_of(VALUE from) { return rsb_integer(from, 0, INT64_MAX, "file offset"); }

/* Called by IO#read and the like.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param length [Integer] the least bytes to read; 0: one read, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_read(VALUE self, VALUE io, VALUE buffer, VALUE length, VALUE offset) {
    return run(self, io, buffer, -1, length, offset, RS_OP_READ | AT_LEAST);
}

/* Called by IO#write and the like.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param length [Integer] the least bytes to write; 0: one write, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_write(VALUE self, VALUE io, VALUE buffer, VALUE length, VALUE offset) {
    return run(self, io, buffer, -1, length, offset, RS_OP_WRITE | AT_LEAST);
}

/* Called by IO#pread.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param length [Integer] the least bytes to read; 0: one read, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_pread(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE length, VALUE offset) {
    return run(self, io, buffer, place_of(from), length, offset, RS_OP_PREAD | AT_LEAST);
}

/* Called by IO#pwrite.
 *
 * May switch strands.
 *
 * @param io [IO]
 * @param buffer [IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param length [Integer] the least bytes to write; 0: one write, without waiting
 * @param offset [Integer] in the buffer
 * @return [Integer] bytes; or a negative errno
 * @raise [UsageError] when the buffer does not fit
 * @raise [IO::TimeoutError] when IO#timeout has passed
 * @since 0.1.0
 */
static VALUE least_pwrite(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE length, VALUE offset) {
    return run(self, io, buffer, place_of(from), length, offset, RS_OP_PWRITE | AT_LEAST);
}

/* Called by IO#read and the like.
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
    return run(self, io, buffer, -1, length, offset, RS_OP_READ | AT_MOST);
}

/* Called by IO#write and the like.
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
    return run(self, io, buffer, -1, length, offset, RS_OP_WRITE | AT_MOST);
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
    return run(self, io, buffer, place_of(from), length, offset, RS_OP_PREAD | AT_MOST);
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
    return run(self, io, buffer, place_of(from), length, offset, RS_OP_PWRITE | AT_MOST);
}

void rsb_init_scheduler_io(void) {
    rb_define_method(rsb_cScheduler, "io_wait", scheduler_io_wait, 3);
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
    rb_include_module(rsb_cScheduler, rsb_hooks_take_offset_first() ? offset_first : length_first);
}
