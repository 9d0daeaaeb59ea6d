/* Descriptors that others have made, and devices: written to with one call, and waited for without holding on to strangers. */
#include "test.h"

#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

/* --- one call for what need not wait --- */

static int64_t try_write(driver *d, int fd, const void *bytes, uint64_t len) {
    rs_request request = request_write(fd, bytes, len);
    return rs_try(d->machine, &request);
}

static int64_t try_writev(driver *d, int fd, struct iovec *parts, uint64_t count) {
    rs_request request = {.kind = RS_OP_WRITEV, .fd = fd, .vector = {.parts = parts, .count = count, .offset = -1}};
    return rs_try(d->machine, &request);
}

/* What is tried takes all of it, and does not go on part by part. */
static void check_takes_all(driver *d, int fd) {
    enum { PARTS = 64, LEN = 100 };
    static char bytes[PARTS * LEN];
    struct iovec parts[PARTS];
    for (int i = 0; i < PARTS; i++) parts[i] = (struct iovec){bytes + i * LEN, LEN};
    CHECK_EQUAL(PARTS * LEN, try_writev(d, fd, parts, PARTS));
    CHECK_EQUAL(PARTS * LEN, try_write(d, fd, bytes, PARTS * LEN));
}

OVER_KERNELS(a_device_that_is_memory_takes_all_at_once) {
    driver d;
    subject_open(&d, subject);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), foreign = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int own = (int)scene_ask(&d, request_open("/dev/null", O_WRONLY));
    CHECK_EQUAL(RS_FD_MEMORY, rs_descriptor_kind(rs_descriptors_in(d.machine), own));
    check_takes_all(&d, own);
    check_takes_all(&d, foreign);
    CHECK_EQUAL(-ENOSPC, try_write(&d, full, "x", 1));
    CHECK_EQUAL(-ENOSPC, scene_ask(&d, request_write(full, "x", 1)));
    close_all(&d, (int[]){own, foreign, full}, 3);
    CHECK_EQUAL(0, scene_end(&d));
}

/* As many as there is room for, and no more: the thread never waits. */
OVER_KERNELS_NOT_EMULATED(a_blocking_pipe_or_socket_of_others_takes_what_it_has_room_for_at_once) {
    driver d;
    static char bytes[200000];
    subject_open(&d, subject);
    for (int sockets = 0; sockets < 2; sockets++) {
        int pair[2];
        CHECK_EQUAL(0, sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, pair) : pipe(pair));
        check_takes_all(&d, pair[1]);
        int64_t more = try_write(&d, pair[1], bytes, sizeof(bytes));
        CHECK(more > 0 && more <= (int64_t)sizeof(bytes));
        while (try_write(&d, pair[1], bytes, sizeof(bytes)) > 0) {}
        CHECK_EQUAL(-EAGAIN, try_write(&d, pair[1], "x", 1));
        close_all(&d, pair, 2);
    }
    CHECK_EQUAL(0, scene_end(&d));
}

/* An empty message is one; of an empty vector's the kernel would make none. */
OVER_KERNELS(a_message_without_bytes_goes_out) {
    driver d;
    int pair[2];
    char byte;
    subject_open(&d, subject);
    CHECK_EQUAL(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    CHECK_EQUAL(0, try_write(&d, pair[1], "", 0));
    CHECK_EQUAL(0, recv(pair[0], &byte, 1, MSG_DONTWAIT));
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* --- descriptors of objects that others may close --- */

static bool said_to_be_open(const rs_op *op) { return *(const bool *)op->keep; }

enum { WAITERS = 5 };

typedef struct {
    driver d;
    int pairs[WAITERS][2];
    bool open[WAITERS];
    caller waiters[WAITERS];
} objects;

/* Each waits for bytes on the descriptor of an object, and the kernel knows of none of them: no turn is long meanwhile. */
static void begin_objects(objects *o, const subject *subject) {
    *o = (objects){0};
    subject_open(&o->d, subject);
    o->d.machine->driver.is_open = said_to_be_open;
    o->d.machine->backend->poll(o->d.machine); /* so that the count of system calls is of now */
    for (int i = 0; i < WAITERS; i++) {
        CHECK_EQUAL(0, socketpair(AF_UNIX, SOCK_STREAM, 0, o->pairs[i]));
        o->open[i] = true;
        rs_request request = request_poll(o->pairs[i][0], POLLIN);
        request.options = RS_REQUEST_OF_OBJECT;
        scene_call(&o->d, &o->waiters[i], request, 0, 0);
    }
    driver_park_root(&o->d);
    driver_stop_clock(&o->d);
    while (o->d.machine->strands.run_len > 0) driver_step(&o->d);
    driver_start_clock(&o->d);
    for (int i = 0; i < WAITERS; i++) o->waiters[i].task.op->keep = (uintptr_t)&o->open[i];
}

static void end_objects(objects *o) {
    while (o->d.unfinished > 0) driver_step(&o->d);
    driver_unpark_root(&o->d);
    for (int i = 0; i < WAITERS * 2; i++) close(o->pairs[i / 2][i % 2]);
    CHECK_EQUAL(0, scene_end(&o->d));
}

/* How often a polling thread falls asleep, and must be woken by a call, is up to the kernel. */
static bool has_made_at_most(uint64_t calls, uint64_t before, const objects *o, const subject *subject) {
    return subject->sqpoll || o->d.machine->metrics.system_calls - before <= calls;
}

OVER_KERNELS(waits_for_objects_are_handed_over_together) {
    objects o;
    begin_objects(&o, subject);
    for (int i = 0; i < WAITERS; i++) CHECK_EQUAL(1, write(o.pairs[i][1], "x", 1));
    uint64_t before = o.d.machine->metrics.system_calls;
    while (o.d.unfinished > 0) driver_step(&o.d);
    CHECK(has_made_at_most(2, before, &o, subject));
    for (int i = 0; i < WAITERS; i++) CHECK_EQUAL(POLLIN, o.waiters[i].result);
    end_objects(&o);
}

/* A machine that polls for long before it sleeps would else keep them from the kernel for so long. */
OVER_KERNELS(a_peek_says_that_some_wait_to_be_handed_over) {
    objects o;
    begin_objects(&o, subject);
    CHECK(o.d.machine->backend->peek(o.d.machine));
    o.d.machine->backend->poll(o.d.machine);
    CHECK(!o.d.machine->backend->peek(o.d.machine));
    for (int i = 0; i < WAITERS; i++) CHECK_EQUAL(1, write(o.pairs[i][1], "x", 1));
    end_objects(&o);
}

static int polls;

/* In place of the library's, to count. */
int poll(struct pollfd *descriptors, nfds_t count, int timeout_ms) {
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    polls++;
    return (int)syscall(SYS_ppoll, descriptors, count, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
}

/* The kernel has told what they are ready for, and is not asked again. */
OVER_KERNELS(a_wait_for_an_object_ends_with_the_readiness_that_was_told) {
    objects o;
    begin_objects(&o, subject);
    o.d.machine->backend->poll(o.d.machine);
    for (int i = 0; i < WAITERS; i++) CHECK_EQUAL(1, write(o.pairs[i][1], "x", 1));
    polls = 0;
    while (o.d.unfinished > 0) driver_step(&o.d);
    CHECK_EQUAL(0, polls);
    for (int i = 0; i < WAITERS; i++) CHECK_EQUAL(POLLIN, o.waiters[i].result);
    end_objects(&o);
}

/* Two calls: it is registered, and what has come is fetched. */
OVER_KERNELS(one_wait_for_an_object_takes_two_calls) {
    objects o;
    begin_objects(&o, subject);
    for (int i = 1; i < WAITERS; i++) rs_interrupt(o.d.machine, o.waiters[i].task.strand);
    uint64_t before = o.d.machine->metrics.system_calls;
    CHECK_EQUAL(1, write(o.pairs[0][1], "x", 1));
    polls = 0;
    while (o.d.unfinished > 0) driver_step(&o.d);
    CHECK_EQUAL(0, polls);
    CHECK(has_made_at_most(2, before, &o, subject));
    CHECK_EQUAL(POLLIN, o.waiters[0].result);
    end_objects(&o);
}

static bool is_epoll(const subject *subject) { return subject->backend == &rs_backend_epoll; }

/* Whoever waits behind one that takes the bytes is told of those only that are left. io_uring itself tells both. */
OVER(a_wait_for_an_object_is_not_told_of_bytes_that_were_taken, is_epoll) {
    objects o;
    char byte;
    caller reader = {0};
    begin_objects(&o, subject);
    o.d.machine->backend->poll(o.d.machine);
    for (int i = 0; i < WAITERS; i++) rs_interrupt(o.d.machine, o.waiters[i].task.strand);
    while (o.d.unfinished > 0) driver_step(&o.d);
    scene_call(&o.d, &reader, request_recv(o.pairs[0][0], &byte, 1), 0, 0);
    rs_request request = request_poll(o.pairs[0][0], POLLIN);
    request.options = RS_REQUEST_OF_OBJECT;
    scene_call(&o.d, &o.waiters[0], request, 0, 0);
    while (o.d.machine->strands.run_len > 0) driver_step(&o.d);
    o.waiters[0].task.op->keep = (uintptr_t)&o.open[0];
    o.d.machine->backend->poll(o.d.machine);
    CHECK_EQUAL(1, write(o.pairs[0][1], "x", 1));
    o.d.machine->backend->poll(o.d.machine);
    CHECK_EQUAL(RS_OP_TERMINAL, reader.task.op->state);
    CHECK_EQUAL(RS_OP_SUBMITTED, o.waiters[0].task.op->state);
    CHECK_EQUAL(1, write(o.pairs[0][1], "x", 1));
    end_objects(&o);
    CHECK_EQUAL(POLLIN, o.waiters[0].result);
}

/* What waited there in vain left the kernel looking at a file that is still open by another number. */
OVER_KERNELS(a_wait_for_an_object_is_not_told_of_a_file_that_had_its_number) {
    objects o;
    int later[2];
    begin_objects(&o, subject);
    o.d.machine->backend->poll(o.d.machine);
    for (int i = 0; i < WAITERS; i++) rs_interrupt(o.d.machine, o.waiters[i].task.strand);
    while (o.d.unfinished > 0) driver_step(&o.d);
    int number = o.pairs[0][0];
    o.pairs[0][0] = fcntl(number, F_DUPFD_CLOEXEC, 0);
    close(number);
    CHECK_EQUAL(0, socketpair(AF_UNIX, SOCK_STREAM, 0, later));
    CHECK_EQUAL(number, later[0]);
    caller waiter = {0};
    rs_request request = request_poll(number, POLLIN);
    request.options = RS_REQUEST_OF_OBJECT;
    scene_call(&o.d, &waiter, request, 0, 0);
    while (o.d.machine->strands.run_len > 0) driver_step(&o.d);
    waiter.task.op->keep = (uintptr_t)&o.open[0];
    o.d.machine->backend->poll(o.d.machine);
    CHECK_EQUAL(1, write(o.pairs[0][1], "x", 1));
    o.d.machine->backend->poll(o.d.machine);
    CHECK_EQUAL(RS_OP_SUBMITTED, waiter.task.op->state);
    CHECK_EQUAL(1, write(later[1], "x", 1));
    end_objects(&o);
    CHECK_EQUAL(POLLIN, waiter.result);
    close(later[0]);
    close(later[1]);
}

/* The number means a stranger's socket by then, and the kernel would hold on to that: its other end would hear nothing of a close. */
OVER_KERNELS(an_object_that_was_closed_before_it_was_handed_over_leaves_a_stranger_alone) {
    objects o;
    int stranger[2];
    char byte;
    begin_objects(&o, subject);
    close(o.pairs[0][0]);
    o.open[0] = false;
    CHECK_EQUAL(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, stranger));
    CHECK_EQUAL(o.pairs[0][0], stranger[0]);
    while (!o.waiters[0].task.finished) driver_step(&o.d);
    CHECK_EQUAL(-EBADF, o.waiters[0].result);
    close(stranger[0]);
    CHECK_EQUAL(0, read(stranger[1], &byte, 1));
    o.pairs[0][0] = stranger[1]; /* for end_objects */
    for (int i = 1; i < WAITERS; i++) CHECK_EQUAL(1, write(o.pairs[i][1], "x", 1));
    end_objects(&o);
}

OVER_KERNELS(a_cancelled_wait_for_an_object_never_gets_to_the_kernel) {
    objects o;
    begin_objects(&o, subject);
    for (int i = 0; i < WAITERS; i++) {
        rs_interrupt(o.d.machine, o.waiters[i].task.strand);
        o.waiters[i].then_sleep_ns = 5 * MS; /* in which nothing is in flight, and the machine sleeps */
    }
    uint64_t before = o.d.machine->metrics.polls;
    while (o.d.unfinished > 0) driver_step(&o.d);
    CHECK(o.d.machine->metrics.polls - before < 50);
    end_objects(&o);
    for (int i = 0; i < WAITERS; i++) CHECK_EQUAL(RS_WAKE_INTERRUPT, o.waiters[i].wake);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    return test_main(argc, argv);
}
