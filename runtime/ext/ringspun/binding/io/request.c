/* request: performs the requests of all I/O methods.
 *
 * A method fills an rs_request and calls rsb_request. That tries it at once, with the GVL held. Only if it would wait it becomes
 * an op, and the buffer is locked. So a String that the kernel may write to cannot be changed, moved or freed, and a call that
 * does not wait locks and allocates nothing.
 */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A strand whose ops all succeed at once never parks. So it gives way here, or in rsb_op_fd, when its turn is over, and is
 * cancelled there. This happens before the op: an exception after it would lose the bytes or the descriptor. And before addresses
 * are taken, because the others may change the buffer. */
rsb_machine *rsb_io_machine(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    rsb_after_inline(machine);
    return machine;
}

typedef struct {
    rsb_machine *machine;
    rs_request *request;
    VALUE buffer;
    void *answer;
    size_t answer_size;
} pending;

static VALUE perform(VALUE argument) {
    pending *p = (pending *)argument;
    bool reads = rs_request_traits(p->request)->side == RS_SIDE_READ;
    rsb_op_wait wait = {.keep = p->buffer, .answer = p->answer, .answer_size = p->answer_size, .takes_bytes_first = reads};
    return LL2NUM(rsb_perform(p->machine, p->request, &wait));
}

static int64_t perform_locked(pending *p) {
    bool string = RB_TYPE_P(p->buffer, T_STRING);
    int state = 0;
    rb_protect(string ? rb_str_locktmp : rb_io_buffer_lock, p->buffer, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        free(p->request->owned);
        rsb_fail_busy();
    }
    return NUM2LL(rb_ensure(perform, (VALUE)p, string ? rb_str_unlocktmp : rb_io_buffer_unlock, p->buffer));
}

/* A copy of up to that many bytes costs less than a String that shares them. */
#define COPY_MAX 4096

/* False: there is no memory for it, or it is too much. */
static bool copy_source(rs_request *request) {
    uint64_t len = request->transfer.len;
    if (len > COPY_MAX || request->owned) return false;
    void *copy = rs_try_alloc_uncleared(len);
    if (!copy) return false;
    request->owned = request->transfer.address = memcpy(copy, request->transfer.address, len);
    return true;
}

/* Replaces a source that other strands might change during the wait by a frozen String that shares the bytes. */
static VALUE freeze_source(rs_request *request, VALUE string) {
    if (OBJ_FROZEN(string)) return string;
    const char *before = RSTRING_PTR(string);
    VALUE frozen = rb_str_new_frozen(string);
    request->transfer.address = RSTRING_PTR(frozen) + ((char *)request->transfer.address - before);
    return frozen;
}

/* For a slice: the op uses a String of its own instead. */
static int64_t perform_apart(rsb_machine *machine, rs_request *request, VALUE slice, rsb_direction direction) {
    void *address = request->transfer.address;
    uint64_t len = request->transfer.len;
    VALUE apart = rb_str_new(direction == RSB_OUT ? address : NULL, (long)len);
    request->transfer.address = RSTRING_PTR(apart);
    int64_t result = rsb_perform(machine, request, &(rsb_op_wait){.keep = apart, .takes_bytes_first = direction == RSB_IN});
    if (direction == RSB_OUT || result <= 0) return result;
    rsb_buffer_check(slice);
    uint64_t moved = (uint64_t)result - request->done;
    memcpy(address, RSTRING_PTR(apart), moved < len ? (size_t)moved : (size_t)len);
    RB_GC_GUARD(apart);
    return result;
}

int64_t rsb_wait_for(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction) {
    if (NIL_P(buffer) || RB_TYPE_P(buffer, T_ARRAY)) return rsb_perform(machine, request, &(rsb_op_wait){.keep = buffer});
    bool string = RB_TYPE_P(buffer, T_STRING), stays = string && OBJ_FROZEN(buffer);
    if ((request->options & RS_REQUEST_UNTRIED) && direction == RSB_OUT && !stays && copy_source(request)) {
        return rsb_perform(machine, request, &(rsb_op_wait){0});
    }
    if (!string && rsb_is_slice(buffer)) return perform_apart(machine, request, buffer, direction);
    if (direction == RSB_OUT && string) {
        return rsb_perform(machine, request, &(rsb_op_wait){.keep = freeze_source(request, buffer)});
    }
    return perform_locked(&(pending){machine, request, buffer, NULL, 0});
}

int64_t rsb_message_wait(rsb_machine *machine, rs_request *request, VALUE buffer, void *answer, size_t answer_size,
                         rsb_direction direction) {
    pending p = {machine, request, buffer, answer, answer_size};
    if (direction == RSB_OUT && RB_TYPE_P(buffer, T_STRING)) return NUM2LL(perform((VALUE)&p));
    return perform_locked(&p);
}

bool rsb_must_not_wait(rsb_machine *machine, const rs_request *request) {
    if (!(rs_request_message_flags(request) & MSG_DONTWAIT)) return false;
    return rs_tries_first(machine->engine) || rs_refusal(machine->engine, 0) != RS_WAKE_VALUE;
}

int rsb_mode_of(rsb_machine *machine, int fd) {
    return rs_is_simulated(machine->engine) ? rs_sim_mode(machine->engine, fd) : fcntl(fd, F_GETFL);
}

void rsb_refused(rsb_machine *machine, int64_t result, const char *what, int fd) {
    int mode = result == -EBADF ? rsb_mode_of(machine, fd) : O_RDWR;
    if (mode >= 0 && (mode & O_ACCMODE) != O_RDWR) {
        const char *use = (mode & O_PATH) ? "naming a file" : (mode & O_ACCMODE) == O_WRONLY ? "writing" : "reading";
        rb_raise(rsb_eUsage, "%s: descriptor %d is open for %s only", what, fd, use);
    }
    rsb_fail(result, what, fd);
}

/* An IO::Buffer is locked by each op that writes from it. Several strands may write from one as long as none of them waits, so what
 * is too much to be copied is tried. */
static int64_t ask(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction) {
    bool locks = direction == RSB_OUT && rs_request_buffer_len(request) > COPY_MAX && !RB_TYPE_P(buffer, T_STRING);
    return RS_UNLIKELY(locks) ? rs_try(machine->engine, request) : rs_ask(machine->engine, request);
}

int64_t rsb_request(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what) {
    int64_t result = ask(machine, request, buffer, direction);
    if (RS_LIKELY(result != -EAGAIN)) {
        if (RS_UNLIKELY(result < 0)) rsb_refused(machine, result, what, request->fd);
        return result;
    }
    if (!rsb_must_not_wait(machine, request)) result = rsb_wait_for(machine, request, buffer, direction);
    if (RS_UNLIKELY(result < 0)) rsb_refused(machine, result, what, request->fd);
    return result;
}

int64_t rsb_request_rest(rsb_machine *machine, rs_request *request, int64_t done, VALUE buffer, rsb_direction direction,
                         const char *what) {
    int64_t result = -EAGAIN;
    rs_request_advance(request, (uint64_t)done);
    request->options |= RS_REQUEST_ALL;
    if (done > 0 && rs_refusal(machine->engine, 0) != RS_WAKE_VALUE) return done;
    if (!rsb_must_not_wait(machine, request)) result = rsb_wait_for(machine, request, buffer, direction);
    if (result == -EAGAIN && done > 0) return done;
    if (result < 0) rsb_refused(machine, result, what, request->fd);
    return result;
}

/* Goes on until all bytes are sent, or received up to the end of the stream. An error or a cancellation after the first byte ends
 * it early: it returns how many bytes were moved, and the next call or wait raises the error or the cancellation. */
int64_t rsb_request_all(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what) {
    uint64_t total = rs_request_len(request);
    int64_t result = ask(machine, request, buffer, direction);
    if (RS_LIKELY(result == (int64_t)total) || (result == 0 && direction == RSB_IN)) return result;
    if (result < 0 && result != -EAGAIN) rsb_refused(machine, result, what, request->fd);
    return rsb_request_rest(machine, request, result > 0 ? result : 0, buffer, direction, what);
}

int64_t rsb_request_owning(rsb_machine *machine, rs_request *request, const char *what) {
    int64_t result = rs_try(machine->engine, request);
    if (result == -EAGAIN) result = rsb_wait_for(machine, request, Qnil, RSB_OUT);
    else free(request->owned);
    if (result < 0) rsb_fail(result, what, request->fd);
    return result;
}

VALUE rsb_make_pair(rsb_machine *machine, rs_request *request, int **where, const char *what) {
    int pair[2];
    *where = pair;
    int64_t result = rs_try(machine->engine, request);
    if (result == -EAGAIN) {
        *where = request->owned = rsb_alloc(sizeof(pair));
        rsb_op_wait wait = {.flags = RS_PARK_SHIELDED, .answer = pair, .answer_size = sizeof(pair)};
        result = rsb_perform(machine, request, &wait);
    }
    if (result == -EOPNOTSUPP) rb_raise(rsb_eUnsupported, "%s: this family or type has no pairs; use :UNIX", what);
    if (result < 0) rb_syserr_fail((int)-result, what);
    return rb_assoc_new(INT2FIX(pair[0]), INT2FIX(pair[1]));
}
