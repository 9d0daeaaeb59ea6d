/* splice: Machine#splice and #tee, which move bytes between descriptors inside the kernel. If one would wait, the strand waits
 * for the readiness of one side (RS_OP_POLL). That takes no bytes, so a cancellation or a timeout loses none. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

/* The most bytes that one system call moves, so that other strands have their turn. */
#define MOVE_MAX (1u << 20)

/* After so many tries in which both sides were ready and it would wait all the same, the strand sleeps: memory is short, or
 * another reader takes the bytes. */
#define IDLE_TRIES 3
#define IDLE_NS 1000000

rsb_mover rsb_mover_of(rsb_machine *machine, uint8_t kind, VALUE from, VALUE to, const char *what) {
    rsb_mover mover = {.machine = machine, .from = from, .to = to, .deadline_ns = RS_NEVER, .what = what};
    mover.request = (rs_request){.kind = kind, .fd = rsb_io_fd(machine, from), .splice.to_fd = rsb_io_fd(machine, to)};
    mover.from_generation = rs_descriptor_generation(rs_descriptors_of(machine->engine), mover.request.fd);
    mover.to_generation = rs_descriptor_generation(rs_descriptors_of(machine->engine), mover.request.splice.to_fd);
    mover.offload = rs_splice_sort_of(machine->engine, mover.request.fd) == RS_SPLICE_FILE ||
                    rs_splice_sort_of(machine->engine, mover.request.splice.to_fd) == RS_SPLICE_FILE;
    return mover;
}

bool rsb_mover_fits(const rsb_mover *mover) {
    rs_machine *engine = mover->machine->engine;
    return rs_splice_sort_of(engine, mover->request.fd) != RS_SPLICE_BLOCKING &&
           rs_splice_sort_of(engine, mover->request.splice.to_fd) != RS_SPLICE_BLOCKING;
}

void rsb_mover_check(const rsb_mover *mover) {
    rsb_check_descriptor(mover->machine, mover->from, mover->request.fd, mover->from_generation, mover->what);
    rsb_check_descriptor(mover->machine, mover->to, mover->request.splice.to_fd, mover->to_generation, mover->what);
}

/* 1: it has waited. 0: it was ready. Negative: an error. */
static int64_t wait_for(rsb_mover *mover, int fd, uint32_t events) {
    rs_request poll = {.kind = RS_OP_POLL, .fd = fd, .poll.events = events};
    int64_t ready = rs_try(mover->machine->engine, &poll);
    if (ready >= 0) return 0;
    if (ready != -EAGAIN) return ready;
    ready = rsb_perform(mover->machine, &poll, &(rsb_op_wait){.answers_close = true, .deadline_ns = mover->deadline_ns});
    if (ready == RSB_TIME_IS_UP) return ready;
    rsb_mover_check(mover);
    return ready < 0 ? ready : 1;
}

static void pause_a_little(rsb_mover *mover) {
    rsb_sleep_for(mover->machine, IDLE_NS);
    rsb_mover_check(mover);
}

/* EAGAIN does not say which of the two sides is not ready: splice(2). */
static int64_t wait_for_both(rsb_mover *mover, int *idle) {
    mover->awaits_room = false;
    int64_t first = wait_for(mover, mover->request.fd, POLLIN);
    if (first < 0) return first;
    mover->awaits_room = true;
    int64_t second = wait_for(mover, mover->request.splice.to_fd, POLLOUT);
    if (second < 0) return second;
    bool waited = first || second;
    *idle = waited ? 0 : *idle + 1;
    if (*idle >= IDLE_TRIES) pause_a_little(mover);
    return 0;
}

static int64_t move_with_file(rsb_mover *mover) {
    int64_t moved = rsb_perform(mover->machine, &mover->request, &(rsb_op_wait){.answers_close = true});
    if (moved < 0) rsb_mover_check(mover);
    return moved;
}

static int64_t count(rsb_mover *mover, int64_t moved) {
    if (moved > 0) rs_count_spliced(mover->machine->engine, (uint64_t)moved);
    return moved;
}

int64_t rsb_move_at_once(rsb_mover *mover, uint64_t len) {
    mover->request.splice.len = len < MOVE_MAX ? len : MOVE_MAX;
    return count(mover, rs_try(mover->machine->engine, &mover->request));
}

int64_t rsb_move(rsb_mover *mover, uint64_t len) {
    bool as_op = mover->offload || !rs_tries_first(mover->machine->engine);
    for (int idle = 0;;) {
        mover->request.splice.len = len < MOVE_MAX ? len : MOVE_MAX;
        int64_t moved = as_op ? count(mover, move_with_file(mover)) : rsb_move_at_once(mover, len);
        if (RS_LIKELY(moved != -EAGAIN)) return moved;
        int64_t ready = wait_for_both(mover, &idle);
        if (RS_UNLIKELY(ready < 0)) return ready;
    }
}

void rsb_fail_move(const rsb_mover *mover, int64_t result) {
    const rs_request *request = &mover->request;
    const char *needs = request->kind == RS_OP_TEE
                            ? "both must be pipes, and not the same one"
                            : "one of the two must be a pipe, and what is written no file opened for appending";
    if (result == -EINVAL) rb_raise(rsb_eUsage, "%s from descriptor %d to %d: %s", mover->what, request->fd, request->splice.to_fd, needs);
    int mode = rsb_mode_of(mover->machine, request->fd);
    bool first = result != -EBADF || mode < 0 || (mode & O_ACCMODE) == O_WRONLY;
    rsb_refused(mover->machine, result, mover->what, first ? request->fd : request->splice.to_fd);
}

static VALUE move(VALUE self, VALUE from, VALUE to, VALUE length, uint8_t kind, const char *what) {
    rsb_machine *machine = rsb_machine_of(self);
    to = rsb_writing_end(to);
    uint64_t len = (uint64_t)rsb_integer(length, 0, INT64_MAX, "length");
    uint32_t before[2] = {rsb_generation(machine, from), rsb_generation(machine, to)};
    rsb_after_inline(machine);
    rsb_mover mover = rsb_mover_of(machine, kind, from, to, what);
    if (RB_FIXNUM_P(from)) mover.from_generation = before[0];
    if (RB_FIXNUM_P(to)) mover.to_generation = before[1];
    rsb_mover_check(&mover);
    if (!rsb_mover_fits(&mover)) {
        rb_raise(rsb_eUnsupported, "%s: a descriptor in blocking mode would keep the thread; make it non-blocking, or read and "
                 "write", what);
    }
    int64_t moved = rsb_move(&mover, len);
    if (moved < 0) rsb_fail_move(&mover, moved);
    RB_GC_GUARD(to);
    return LL2NUM(moved);
}

/* Moves the bytes that are there from one descriptor to another, at most length, inside the kernel. One of the two is a pipe.
 * Waits until there are bytes, and room for some of them. If it is cancelled, it has moved nothing.
 *
 * May switch strands.
 *
 * @param from [Integer, IO] a pipe, a socket, or a file, from its position on
 * @param to [Integer, IO] the same
 * @param length [Integer] bytes
 * @return [Integer] bytes moved; 0 at the end of the first
 * @raise [UsageError] when neither is a pipe
 * @raise [UnsupportedError] when a socket or a terminal among them is in blocking mode
 * @raise [ClosedError, SystemCallError]
 * @since 0.1.0
 * @see https://man7.org/linux/man-pages/man2/splice.2.html
 */
static VALUE machine_splice(VALUE self, VALUE from, VALUE to, VALUE length) {
    return move(self, from, to, length, RS_OP_SPLICE, "splice");
}

/* Copies the bytes that are there from one pipe to another, at most length, and leaves them in the first.
 *
 * May switch strands.
 *
 * @param from [Integer, IO] a pipe
 * @param to [Integer, IO] a pipe
 * @param length [Integer] bytes
 * @return [Integer] bytes copied; 0 at the end of the first
 * @raise [UsageError] when one of them is no pipe
 * @raise [ClosedError, SystemCallError]
 * @since 0.1.0
 * @see https://man7.org/linux/man-pages/man2/tee.2.html
 */
static VALUE machine_tee(VALUE self, VALUE from, VALUE to, VALUE length) { return move(self, from, to, length, RS_OP_TEE, "tee"); }

void rsb_init_splice(void) {
    rb_define_method(rsb_cMachine, "splice", machine_splice, 3);
    rb_define_method(rsb_cMachine, "tee", machine_tee, 3);
}
