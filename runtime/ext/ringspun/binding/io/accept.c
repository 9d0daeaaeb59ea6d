/* accept: Machine#accept and #accept_each. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

/* How many connections are accepted ahead. Few, because none should wait long for a slow block if another process could take
 * it. */
#define AHEAD 16
#define AHEAD_MAX 4096

static ID id_ahead;

static int64_t accept_one(rsb_machine *machine, int fd) {
    rs_request request = {.kind = RS_OP_ACCEPT, .fd = fd};
    return rsb_request(machine, &request, Qnil, RSB_IN, "accept");
}

/* Waits for a connection.
 *
 * May switch strands.
 *
 * @param io [Integer, IO] a listening socket
 * @return [Integer] descriptor, non-blocking and closed on exec
 * @since 0.1.0
 */
static VALUE machine_accept(VALUE self, VALUE io) {
    rsb_machine *machine = rsb_machine_of(self);
    return LL2NUM(accept_one(machine, rsb_op_fd(machine, io)));
}

typedef struct {
    rsb_machine *machine;
    VALUE self, io;
    int fd;
    uint32_t generation;
    rs_accept_queue *queue;          /* NULL: each accept is an op of its own */
} acceptor;

/* Called after other strands have run: the number may be another listener's by now. */
static void check_listener(const acceptor *a) { rsb_check_descriptor(a->machine, a->io, a->fd, a->generation, "accept"); }

static VALUE one_after_the_other(VALUE argument) {
    acceptor *a = (acceptor *)argument;
    for (;;) {
        rb_yield(LL2NUM(accept_one(a->machine, a->fd)));
        rsb_io_machine(a->self);
        check_listener(a);
    }
    return Qnil;
}

/* Waits until the listener is ready, and calls accept(2) only when this strand runs and is not cancelled. The kernel gives a
 * connection to a waiting IORING_OP_ACCEPT (io_uring_enter(2)) at once, also if its process is stopped or being killed, and a
 * cancelled one may have accepted a connection. */
static int64_t accept_when_ready(acceptor *a) {
    rs_request accept = {.kind = RS_OP_ACCEPT, .fd = a->fd};
    for (;;) {
        int64_t fd = rs_refusal(a->machine->engine, 0) == RS_WAKE_VALUE ? rs_try(a->machine->engine, &accept) : -EAGAIN;
        if (fd >= 0) return fd;
        rs_request ready = {.kind = RS_OP_POLL, .fd = a->fd, .poll.events = POLLIN};
        if (fd == -EAGAIN) fd = rsb_wait_for(a->machine, &ready, Qnil, RSB_IN);
        if (fd < 0) rsb_fail(fd, "accept", a->fd);
        check_listener(a);
    }
}

static VALUE when_ready(VALUE argument) {
    acceptor *a = (acceptor *)argument;
    for (;;) {
        rb_yield(LL2NUM(accept_when_ready(a)));
        rsb_io_machine(a->self);
        check_listener(a);
    }
    return Qnil;
}

static VALUE accept_in_words(const rs_list *waiters) {
    return rsb_request_in_words(rs_accept_queue_request(waiters));
}

static const rsb_list_kind for_connection = {.in_words = accept_in_words};

static rs_wake_kind wait_in(rsb_machine *machine, rs_accept_queue *queue, uint32_t flags) {
    return rsb_wait(machine, RS_WAIT_LIST, flags, RS_NEVER, rs_accept_queue_waiters(queue), &for_connection, NULL);
}

static void stop(rsb_machine *machine, rs_accept_queue *queue) {
    while (rs_accept_queue_stop(machine->engine, queue)) wait_in(machine, queue, RS_PARK_SHIELDED);
}

static void close_accept_queue(rsb_machine *machine, rs_accept_queue *queue) {
    stop(machine, queue);
    rs_accept_queue_close(machine->engine, queue);
}

/* Ends the queues that are still open when the machine closes: of suspended enumerators, and of a strand that closes the machine
 * inside its block. */
static void end_accept_queues(rsb_machine *machine) {
    for (rs_accept_queue *queue = NULL; (queue = rs_accept_queues_next(machine->engine, queue));) {
        if (!rs_accept_queue_is_armed(queue)) continue;
        stop(machine, queue);
        queue = NULL; /* begin again: queues may have been opened and closed meanwhile */
    }
}

/* Returns when there may be a connection to take. Connections that come while the op ends are yielded first, even if this strand
 * is cancelled: its next wait raises that, perhaps one in the block. */
static void wait_for_more(acceptor *a) {
    rs_machine *engine = a->machine->engine;
    rs_wake_kind end = rs_refusal(engine, 0);
    if (end == RS_WAKE_VALUE) {
        if (!rs_accept_queue_arm(engine, a->queue)) return;
        end = wait_in(a->machine, a->queue, 0);
        if (end == RS_WAKE_VALUE) return;
    }
    stop(a->machine, a->queue);
    if (!rs_accept_queue_has(engine, a->fd)) rsb_raise_wake(a->machine, end);
}

static int64_t next_connection(acceptor *a) {
    for (;;) {
        int64_t fd = rs_accept_queue_take(a->queue);
        if (fd == -EAGAIN) fd = rs_accept_queue_take_any(a->machine->engine, a->fd);
        if (RS_LIKELY(fd >= 0)) return fd;
        if (fd != -EAGAIN) {
            rsb_raise_wake(a->machine, rs_refusal(a->machine->engine, 0)); /* a cancellation comes before the error */
            rsb_fail(fd, "accept", a->fd);
        }
        check_listener(a);
        if (rs_accept_queue_gives_way(a->queue)) return accept_one(a->machine, a->fd);
        wait_for_more(a);
    }
}

static VALUE as_they_come(VALUE argument) {
    acceptor *a = (acceptor *)argument;
    for (;;) {
        rb_yield(LL2NUM(next_connection(a)));
        rsb_machine_of(a->self);
        /* A cancelled strand does not give way here: it still gets the connections that have come. */
        if (rs_refusal(a->machine->engine, 0) == RS_WAKE_VALUE) rsb_after_inline(a->machine);
    }
    return Qnil;
}

static VALUE end_acceptor(VALUE argument) {
    acceptor *a = (acceptor *)argument;
    if (!a->machine->open) return Qnil; /* the machine has freed the queue */
    rsb_notice_fork(a->machine);
    close_accept_queue(a->machine, a->queue);
    return Qnil;
}

static uint32_t ahead_of(VALUE options) {
    if (NIL_P(options)) return AHEAD;
    VALUE ahead;
    rb_get_kwargs(options, &id_ahead, 0, 1, &ahead);
    return ahead == Qundef ? AHEAD : (uint32_t)rsb_integer(ahead, 0, AHEAD_MAX, "accept_each: ahead");
}

/* Yields one connection after the other, until the block breaks or the strand is cancelled.
 *
 * On io_uring a few connections are accepted ahead, without a system call for each. Connections that the block does not get are
 * kept for the next accept on that listener, and closed with the listener. If several processes accept on one socket, `ahead: 0`
 * gives each connection to a process that is ready for it, and none to one that is busy, stopped or being killed.
 *
 * May switch strands.
 *
 * @param io [Integer, IO] a listening socket
 * @param ahead [Integer] how many connections may be accepted before the block is ready for them
 * @yieldparam descriptor [Integer] non-blocking and closed on exec; the block closes it
 * @return [Object] the value of `break`
 * @raise [ClosedError] once the listening socket has been closed
 * @since 0.1.0
 */
static VALUE machine_accept_each(int argc, VALUE *argv, VALUE self) {
    VALUE io, options;
    rb_scan_args(argc, argv, "1:", &io, &options);
    uint32_t ahead = ahead_of(options);
    rsb_machine *machine = rsb_machine_of(self);
    acceptor a = {.machine = machine, .self = self, .io = io, .fd = rsb_op_fd(machine, io)};
    a.generation = rs_descriptor_generation(rs_descriptors_of(machine->engine), a.fd);
    rb_need_block();
    if (ahead == 0 && rs_tries_first(machine->engine)) return when_ready((VALUE)&a);
    if (ahead == 0 || !rs_accept_queue_fits(machine->engine, a.fd)) return one_after_the_other((VALUE)&a);
    rs_request request = {.kind = RS_OP_ACCEPT, .fd = a.fd};
    a.queue = rs_accept_queue_open(machine->engine, &request, ahead);
    if (RS_UNLIKELY(!a.queue)) rsb_fail_memory();
    return rb_ensure(as_they_come, (VALUE)&a, end_acceptor, (VALUE)&a);
}

/* Takes over a listening socket that the machine has not made, as one of the parent process: this machine closes it from now on.
 * A machine accepts ahead only on its own sockets, where no connection is lost when the accepting strand is cancelled. */
static VALUE machine_own_listener(VALUE self, VALUE descriptor) {
    rsb_machine *machine = rsb_machine_of(self);
    int fd = rsb_op_fd(machine, descriptor), type = 0, family = 0;
    socklen_t size = sizeof(int);
    bool sized = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                 getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0;
    if (!sized || !(fcntl(fd, F_GETFL) & O_NONBLOCK)) rb_raise(rsb_eUsage, "descriptor %d is no socket that is non-blocking", fd);
    rs_descriptor_note(rs_descriptors_of(machine->engine), fd, RS_FD_STREAM, true);
    rs_socket_made(machine->engine, fd, family, type);
    return Qnil;
}

/* What a socket is bound to, packed, for those who must not make a Socket of its number: a simulated one has none. */
static VALUE machine_bound_to(VALUE self, VALUE descriptor) {
    rsb_machine *machine = rsb_machine_of(self);
    int fd = rsb_io_fd(machine, descriptor);
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    if (!rs_is_simulated(machine->engine)) {
        if (getsockname(fd, (struct sockaddr *)&address, &len) < 0) rsb_fail(-errno, "getsockname", fd);
        return rb_str_new((const char *)&address, (long)len);
    }
    uint32_t size;
    const void *bound = rs_sim_address(machine->engine, fd, &size);
    if (!bound) rsb_fail(-EINVAL, "getsockname", fd);
    return rb_str_new(bound, (long)size);
}

static void child_began(rsb_machine *machine) {
    if (machine) rs_accept_queue_close_copies(machine->engine);
}

static rsb_part part = {.child_began = child_began, .ends = end_accept_queues};

void rsb_init_accept(void) {
    rsb_register_part(&part);
    id_ahead = rb_intern("ahead");
    rb_define_method(rsb_cMachine, "accept", machine_accept, 1);
    rb_define_method(rsb_cMachine, "accept_each", machine_accept_each, -1);
    rb_define_private_method(rsb_cMachine, "own_listener", machine_own_listener, 1);
    rb_define_private_method(rsb_cMachine, "bound_to", machine_bound_to, 1);
}
