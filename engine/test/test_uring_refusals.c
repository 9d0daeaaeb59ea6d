/* A ring that refuses what it said it could: an opcode, or cancellations. Restrictions of the kernel's refuse from the start and
 * answer EACCES; else the entry is made one that no kernel knows, from some moment on, which is answered EINVAL. */
#include "test.h"

#include "subjects.h"
#include "backend/uring/ring.h"
#include "ringspun/flow/accept_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* https://man7.org/linux/man-pages/man2/io_uring_register.2.html (IORING_REGISTER_RESTRICTIONS) */
#define SETUP_R_DISABLED (1u << 6)
#define REGISTER_RESTRICTIONS 11
#define REGISTER_ENABLE_RINGS 12
#define REGISTER_OPS 64
#define OPCODES 64
#define FLAGS_ALL 0xff

enum { ALLOW_REGISTER_OP, ALLOW_SQE_OP, ALLOW_SQE_FLAGS };

typedef struct {
    uint16_t what;
    uint8_t which;
    uint8_t reserved1;
    uint32_t reserved2[3];
} restriction;

#define NO_OPCODE 255           /* none is refused */
#define UNKNOWN_OPCODE 250      /* nor is there one of that number */

static uint8_t refused;
static uint8_t refused_flags;   /* of entries */
static bool without_sync_cancel;
static uint32_t refusals;       /* entries that were made unknown */

/* The ring, as the kernel sees it. */
static struct {
    uring_params params;
    char *rings;
    uring_sqe *sqes;
    bool refuses;
    uint32_t entries[OPCODES];  /* of each opcode */
} seen;

static uint32_t allow(restriction *list, uint32_t len) {
    for (uint8_t op = 0; op < REGISTER_OPS; op++) {
        if (op < 34 && !(op == 24 && without_sync_cancel)) list[len++] = (restriction){.what = ALLOW_REGISTER_OP, .which = op};
    }
    for (uint8_t opcode = 0; opcode <= URING_OP_LAST; opcode++) {
        if (opcode != refused) list[len++] = (restriction){.what = ALLOW_SQE_OP, .which = opcode};
    }
    list[len++] = (restriction){.what = ALLOW_SQE_FLAGS, .which = (uint8_t)(FLAGS_ALL & ~refused_flags)};
    return len;
}

static int set_up_restricted(uint32_t entries, uring_params *params) {
    static restriction list[REGISTER_OPS + OPCODES + 1];
    params->flags |= SETUP_R_DISABLED;
    int fd = uring_kernel.setup(entries, params);
    if (fd < 0) return fd;
    int error = uring_kernel.enregister(fd, REGISTER_RESTRICTIONS, list, allow(list, 0));
    RS_ASSERT(error == 0);
    error = uring_kernel.enregister(fd, REGISTER_ENABLE_RINGS, NULL, 0);
    RS_ASSERT(error == 0);
    return fd;
}

static int set_up_seen(uint32_t entries, uring_params *params) {
    int fd = uring_kernel.setup(entries, params);
    RS_ASSERT(fd >= 0);
    size_t size = params->sq.array + params->sq_entries * sizeof(uint32_t);
    seen.params = *params;
    seen.rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, URING_MAP_RINGS);
    seen.sqes = mmap(NULL, params->sq_entries * sizeof(uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd, URING_MAP_SQES);
    RS_ASSERT(seen.rings != MAP_FAILED && (void *)seen.sqes != MAP_FAILED);
    seen.refuses = false;
    return fd;
}

static int enter_and_refuse(int fd, uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument, size_t size) {
    uint32_t head = *(uint32_t *)(seen.rings + seen.params.sq.head), tail = *(uint32_t *)(seen.rings + seen.params.sq.tail);
    for (; head != tail; head++) {
        uring_sqe *sqe = &seen.sqes[head & (seen.params.sq_entries - 1)];
        if (sqe->opcode < OPCODES) seen.entries[sqe->opcode]++;
        if (!seen.refuses || sqe->opcode != refused) continue;
        sqe->opcode = UNKNOWN_OPCODE;
        refusals++;
    }
    return uring_kernel.enter(fd, submit, wait_for, flags, argument, size);
}

static int register_or_refuse(int fd, uint32_t opcode, void *argument, uint32_t count) {
    if (opcode == URING_REGISTER_SYNC_CANCEL && without_sync_cancel && seen.refuses) return -EINVAL;
    return uring_kernel.enregister(fd, opcode, argument, count);
}

static const uring_system restricted_system = {set_up_restricted, NULL, NULL};
static const uring_system seen_system = {set_up_seen, enter_and_refuse, register_or_refuse};

static int open_on(driver *d, const uring_system *system, uint8_t opcode, rs_options options) {
    static uring_system now;
    now = *system;
    if (!now.enter) now.enter = uring_kernel.enter;
    if (!now.enregister) now.enregister = uring_kernel.enregister;
    refused = opcode;
    refusals = 0;
    options.uring_system = &now;
    scene_begin();
    return driver_open(d, &rs_backend_uring, &options);
}

static void open_restricted(driver *d, uint8_t opcode) {
    CHECK_EQUAL(0, open_on(d, &restricted_system, opcode, rs_default_options()));
}

static void open_seen(driver *d, uint8_t opcode) { CHECK_EQUAL(0, open_on(d, &seen_system, opcode, rs_default_options())); }

/* As long as it runs nothing is refused that was not before. */
static void end_seen(driver *d) {
    CHECK_EQUAL(0, scene_end(d));
    munmap(seen.sqes, seen.params.sq_entries * sizeof(uring_sqe));
    munmap(seen.rings, seen.params.sq.array + seen.params.sq_entries * sizeof(uint32_t));
    without_sync_cancel = false;
}

/* --- operations --- */

static void check_streams(driver *d, bool sockets) {
    int pair[2];
    char first[64] = {0}, second[64] = {0};
    caller readers[2] = {0}, writers[2] = {0};
    CHECK_EQUAL(0, scene_ask(d, sockets ? request_socketpair(pair) : request_pipe(pair)));
    rs_request any = request_read(pair[0], NULL, sizeof(second));
    any.options = RS_REQUEST_ANY_BUFFER;
    readers[1].task.copy_bytes_to = second;
    scene_call(d, &readers[0], request_read(pair[0], first, 5), 0, 0);
    scene_call(d, &readers[1], any, 0, 0);
    scene_call(d, &writers[0], request_write(pair[1], "hello", 5), MS, 0);
    scene_call(d, &writers[1], request_write(pair[1], "world", 5), 2 * MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(d));
    CHECK_EQUAL(5, readers[0].result);
    CHECK_EQUAL(5, readers[1].result);
    CHECK(memcmp(first, "hello", 5) == 0 && memcmp(second, "world", 5) == 0);
    close_all(d, pair, 2);
}

static void check_messages(driver *d) {
    int pair[2];
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    caller reader = {0}, writer = {0};
    CHECK_EQUAL(0, scene_ask(d, request_socketpair(pair)));
    rs_request request = {.kind = RS_OP_RECVMSG, .fd = pair[0], .message = {&header, 0}};
    scene_call(d, &reader, request, 0, 0);
    scene_call(d, &writer, request_send(pair[1], "x", 1), MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(d));
    CHECK_EQUAL(1, reader.result);
    CHECK_EQUAL('x', byte);
    close_all(d, pair, 2);
}

/* One that is accepted by itself, and others ahead of who takes them. */
typedef struct {
    task task;
    rs_accept_queue *queue;
    int listener;
    int taken;
} acceptor;

static void acceptor_step(task *task) {
    acceptor *self = (acceptor *)task;
    rs_machine *machine = task->driver->machine;
    rs_request request = request_accept(self->listener);
    int64_t result;
    TASK_BEGIN(task);
    self->queue = rs_accept_queue_open(machine, &request, 8);
    while (self->taken < 3) {
        result = rs_accept_queue_take(self->queue);
        if (result == -EAGAIN) {
            rs_accept_queue_arm(machine, self->queue);
            TASK_WAIT(task, task_wait_in(task, &self->queue->waiters, 0, RS_NEVER));
            continue;
        }
        CHECK(result >= 0);
        if (result < 0) break;
        self->taken++;
        close((int)result);
        rs_descriptor_forget(rs_descriptors_in(machine), (int)result);
    }
    while (rs_accept_queue_stop(machine, self->queue)) {
        TASK_WAIT(task, task_wait_shielded_in(task, &self->queue->waiters));
    }
    rs_accept_queue_close(machine, self->queue);
    TASK_END(task);
}

static void check_accepts(driver *d) {
    const char *folder = subject_folder(), *path = subject_path(folder, "socket");
    int listener = (int)scene_ask(d, request_socket());
    CHECK_EQUAL(0, scene_ask(d, request_bind(listener, path)));
    CHECK_EQUAL(0, scene_ask(d, request_listen(listener, 8)));
    caller one = {0}, connects[4] = {0};
    int clients[4];
    for (int i = 0; i < 4; i++) {
        clients[i] = (int)scene_ask(d, request_socket());
        scene_call(d, &connects[i], request_connect(clients[i], path), (i + 1) * MS, 0);
        if (i > 0) continue;
        scene_call(d, &one, request_accept(listener), 0, 0);
        CHECK_EQUAL(RS_RUN, driver_run(d));
        CHECK(one.result >= 0);
    }
    if (rs_accept_queue_fits(d->machine, listener)) {
        acceptor many = {.listener = listener};
        driver_spawn(d, NULL, &many.task, acceptor_step);
        CHECK_EQUAL(RS_RUN, driver_run(d));
        CHECK_EQUAL(3, many.taken);
    }
    CHECK_EQUAL(RS_RUN, driver_run(d));
    int peer = (int)one.result;
    close_all(d, &peer, 1);
    close_all(d, &listener, 1);
    close_all(d, clients, 4);
    unlink(path);
    rmdir(folder);
}

static int64_t ask_splice(driver *d, int from, int to) {
    rs_request request = {.kind = RS_OP_SPLICE, .fd = from, .splice = {.len = 3, .to_fd = to}};
    return scene_ask(d, request);
}

static void check_files(driver *d) {
    const char *folder = subject_folder(), *path = subject_path(folder, "file"), *other = subject_path(folder, "other");
    const char *inside = subject_path(folder, "folder");
    char large[1 << 17], back[1 << 17];
    memset(large, 'a', sizeof(large));
    int file = (int)scene_ask(d, request_open(path, O_RDWR | O_CREAT)), pair[2];
    CHECK(file >= 0);
    CHECK_EQUAL(sizeof(large), scene_ask(d, request_write(file, large, sizeof(large))));
    rs_request at = request_read(file, back, sizeof(back));
    at.kind = RS_OP_PREAD;
    at.transfer.offset = 0;
    CHECK_EQUAL(sizeof(back), scene_ask(d, at));
    CHECK(memcmp(large, back, sizeof(back)) == 0);
    CHECK_EQUAL(0, scene_ask(d, request_fsync(file)));
    struct iovec parts[2] = {{back, 1 << 16}, {back + (1 << 16), 1 << 16}};
    rs_request vector = {.kind = RS_OP_READV, .fd = file, .vector = {.parts = parts, .count = 2, .offset = 0}};
    CHECK_EQUAL(sizeof(back), scene_ask(d, vector));
    vector.kind = RS_OP_WRITEV;
    CHECK_EQUAL(sizeof(back), scene_ask(d, vector));
    CHECK(scene_ask(d, request_statx(file)) == 0);
    CHECK_EQUAL(0, scene_ask(d, (rs_request){.kind = RS_OP_FTRUNCATE, .fd = file, .truncate = {10}}));
    CHECK_EQUAL(0, scene_ask(d, (rs_request){.kind = RS_OP_FALLOCATE, .fd = file, .room = {.len = 4096}}));
    CHECK_EQUAL(0, scene_ask(d, (rs_request){.kind = RS_OP_MKDIR, .fd = -1, .path = {.path = inside, .mode = 0700}}));
    CHECK_EQUAL(0, scene_ask(d, (rs_request){.kind = RS_OP_RENAME, .fd = -1, .path = {.path = path, .to = other}}));
    CHECK_EQUAL(0, scene_ask(d, (rs_request){.kind = RS_OP_UNLINK, .fd = -1, .path = {.path = other}}));
    CHECK_EQUAL(0, scene_ask(d, request_pipe(pair)));
    CHECK_EQUAL(0, lseek(file, 0, SEEK_SET));
    CHECK_EQUAL(3, ask_splice(d, file, pair[1]));
    close_all(d, &file, 1);
    close_all(d, pair, 2);
    rmdir(inside);
    rmdir(folder);
}

static void check_child(driver *d) {
    int pipe[2];
    CHECK_EQUAL(0, pipe2(pipe, O_CLOEXEC));
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(pipe[1]);
        _exit(read(pipe[0], &byte, 1) == 1 ? 3 : 4);
    }
    caller waiter = {0}, writer = {0};
    rs_request request = {.kind = RS_OP_WAITID, .fd = -1, .wait = {.id_type = P_PID, .id = pid}};
    scene_call(d, &waiter, request, 0, 0);
    scene_call(d, &writer, request_write(pipe[1], "x", 1), MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(d));
    CHECK_EQUAL(pid, waiter.result);
    CHECK_EQUAL(pid, waitpid(pid, NULL, 0));
    close(pipe[0]);
    close(pipe[1]);
}

static void check_all(driver *d) {
    check_streams(d, false);
    check_streams(d, true);
    check_messages(d);
    check_accepts(d);
    check_files(d);
    check_child(d);
}

static const uint8_t opcodes[] = {
    URING_OP_READ, URING_OP_WRITE, URING_OP_READV, URING_OP_WRITEV, URING_OP_RECV, URING_OP_SEND, URING_OP_RECVMSG, URING_OP_SENDMSG,
    URING_OP_ACCEPT, URING_OP_CONNECT, URING_OP_OPENAT, URING_OP_FSYNC, URING_OP_STATX, URING_OP_WAITID, URING_OP_SPLICE,
    URING_OP_UNLINKAT, URING_OP_RENAMEAT, URING_OP_MKDIRAT, URING_OP_FTRUNCATE, URING_OP_FALLOCATE
};

/* A restriction that nobody has told of: whoever asks for the operation notices nothing. */
TEST_NOT_EMULATED(a_ring_that_may_not_do_one_operation) {
    for (size_t i = 0; i < sizeof(opcodes); i++) {
        for (int offload = 0; offload < 2; offload++) {
            driver d;
            rs_options options = rs_default_options();
            options.offload_files = offload;
            CHECK_EQUAL(0, open_on(&d, &restricted_system, opcodes[i], options));
            check_all(&d);
            CHECK_EQUAL(0, scene_end(&d));
        }
    }
}

TEST_NOT_EMULATED(a_ring_that_may_not_use_a_flag_of_entries) {
    static const uint8_t flags[] = {URING_SQE_ASYNC, URING_SQE_BUFFER_SELECT};
    for (size_t i = 0; i < sizeof(flags); i++) {
        driver d;
        refused_flags = flags[i];
        open_restricted(&d, NO_OPCODE);
        check_all(&d);
        CHECK_EQUAL(0, scene_end(&d));
        refused_flags = 0;
    }
}

/* As from a kernel below that knows less than it says, and from some moment on. Asked twice, and then no more. */
TEST_NOT_EMULATED(an_operation_that_is_suddenly_unknown) {
    for (size_t i = 0; i < sizeof(opcodes); i++) {
        driver d;
        open_seen(&d, opcodes[i]);
        check_all(&d);
        seen.refuses = true;
        check_all(&d);
        uint32_t before = refusals;
        CHECK(before <= 2 * 3); /* it may have been asked for by several before the first answer came */
        check_all(&d);
        CHECK_EQUAL(before, refusals);
        end_seen(&d);
    }
}

/* In that case io_uring is not taken in the first place. */
TEST_NOT_EMULATED(a_ring_that_may_not_wait_or_not_cancel) {
    static const uint8_t needed[] = {URING_OP_POLL_ADD, URING_OP_ASYNC_CANCEL};
    for (size_t i = 0; i < sizeof(needed); i++) {
        driver d;
        CHECK_EQUAL(-EACCES, open_on(&d, &restricted_system, needed[i], rs_default_options()));
        CHECK(strstr(d.machine->refusal_text, "io_uring_enter"));
        rs_machine_free(d.machine);
    }
}

/* Whoever waits is told, and times go on. */
TEST_NOT_EMULATED(a_ring_that_can_suddenly_wait_for_nothing) {
    driver d;
    int pipe[2];
    caller poller = {0}, late = {0};
    open_seen(&d, URING_OP_POLL_ADD);
    scene_ask(&d, request_pipe(pipe));
    seen.refuses = true;
    scene_call(&d, &poller, request_poll(pipe[0], POLLIN), 0, 0);
    scene_call(&d, &late, request_poll(pipe[0], POLLIN), 5 * MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_LOST, poller.result);
    CHECK_EQUAL(RS_LOST, late.result);
    CHECK(strstr(d.machine->refusal_text, "IORING_OP_POLL_ADD"));
    close_all(&d, pipe, 2);
    end_seen(&d);
}

/* --- errors of the operations themselves --- */

/* The right of this thread alone: https://man7.org/linux/man-pages/man2/setreuid.2.html */
static void become(long user) { RS_ASSERT(geteuid() == user || syscall(SYS_setreuid, -1L, user) == 0); }

/* The ring is asked for the operation, and whether it does such things: then it is told, and the next one goes there as well. */
static void check_error(driver *d, uint8_t opcode, int64_t error, rs_request request) {
    for (int i = 0; i < 2; i++) {
        uint32_t before = seen.entries[opcode];
        CHECK_EQUAL(error, scene_ask(d, request));
        CHECK_EQUAL(2, seen.entries[opcode] - before);
    }
}

TEST_NOT_EMULATED(an_error_that_looks_like_a_refusal) {
    driver d;
    char byte;
    int pair[2];
    long user = geteuid();
    rs_options options = rs_default_options();
    options.offload_files = true;
    CHECK_EQUAL(0, open_on(&d, &seen_system, NO_OPCODE, options));
    const char *folder = subject_folder(), *path = subject_path(folder, "file");
    int file = (int)scene_ask(&d, request_open(path, O_RDWR | O_CREAT));
    CHECK_EQUAL(0, fchmod(file, 0));
    become(user ? user : 65534);
    check_error(&d, URING_OP_OPENAT, -EACCES, request_open(path, O_RDWR));
    become(user);
    check_error(&d, URING_OP_FALLOCATE, -EINVAL, (rs_request){.kind = RS_OP_FALLOCATE, .fd = file, .room = {.offset = -1, .len = 1}});
    rs_request at = request_read(file, &byte, 1);
    at.kind = RS_OP_PREAD;
    at.transfer.offset = INT64_MAX;
    check_error(&d, URING_OP_READ, -EINVAL, at);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    check_error(&d, URING_OP_FSYNC, -EINVAL, request_fsync(pair[0])); /* nothing that can be synchronised */
    CHECK_EQUAL(0, scene_ask(&d, request_fsync(file)));
    close_all(&d, &file, 1);
    close_all(&d, pair, 2);
    unlink(path);
    rmdir(folder);
    end_seen(&d);
}

/* --- cancellations --- */

typedef struct {
    driver d;
    int pair[2], pipe[2], listener;
    char bytes[4];
    caller recv, read, poll, accept, timed, last;
    canceller cancels[2];
    closer closer;
} scene;

static void cancel_in_all_ways(scene *s) {
    driver *d = &s->d;
    const char *folder = subject_folder(), *path = subject_path(folder, "socket");
    CHECK_EQUAL(0, scene_ask(d, request_socketpair(s->pair)));
    CHECK_EQUAL(0, scene_ask(d, request_pipe(s->pipe)));
    s->listener = (int)scene_ask(d, request_socket());
    CHECK_EQUAL(0, scene_ask(d, request_bind(s->listener, path)));
    CHECK_EQUAL(0, scene_ask(d, request_listen(s->listener, 8)));
    seen.refuses = true;
    scene_call(d, &s->recv, request_recv(s->pair[0], s->bytes, 1), 0, 0);
    scene_call(d, &s->read, request_read(s->pipe[0], s->bytes + 1, 1), 0, 0);
    scene_call(d, &s->timed, request_recv(s->pair[1], s->bytes + 2, 1), 0, 3 * MS);
    scene_call(d, &s->poll, request_poll(s->pair[0], POLLIN), 0, 2 * MS);
    scene_call(d, &s->accept, request_accept(s->listener), 0, 0);
    scene_cancel(d, &s->cancels[0], &s->recv.task, MS);
    scene_cancel(d, &s->cancels[1], &s->read.task, MS);
    scene_close(d, &s->closer, s->listener, MS);
    CHECK_EQUAL(RS_RUN, driver_run(d));
    unlink(path);
    rmdir(folder);
}

TEST_NOT_EMULATED(a_ring_that_suddenly_cancels_nothing) {
    static scene s;
    s = (scene){0};
    open_seen(&s.d, URING_OP_ASYNC_CANCEL);
    cancel_in_all_ways(&s);
    CHECK(refusals > 0);
    CHECK_EQUAL(RS_WAKE_CANCEL, s.recv.wake);
    CHECK_EQUAL(RS_WAKE_CANCEL, s.read.wake);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, s.timed.wake);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, s.poll.wake);
    CHECK_EQUAL(-EBADF, s.accept.result);
    CHECK_EQUAL(0, s.closer.result);
    /* Nothing was lost, and the ring works as before. */
    scene_call(&s.d, &s.last, request_recv(s.pair[0], s.bytes, 1), 0, 0);
    caller writer = {0};
    scene_call(&s.d, &writer, request_send(s.pair[1], "x", 1), MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&s.d));
    CHECK_EQUAL(1, s.last.result);
    uint32_t before = refusals;
    caller again = {0};
    scene_call(&s.d, &again, request_recv(s.pair[0], s.bytes, 1), 0, 1 * MS);
    CHECK_EQUAL(RS_RUN, driver_run(&s.d));
    CHECK_EQUAL(RS_WAKE_TIMEOUT, again.wake);
    CHECK_EQUAL(before, refusals);
    close_all(&s.d, s.pair, 2);
    close_all(&s.d, s.pipe, 2);
    end_seen(&s.d);
}

/* Then nothing ends what is in the ring but its own end. */
TEST_NOT_EMULATED(a_ring_that_cancels_nothing_in_any_way) {
    static scene s;
    s = (scene){0};
    open_seen(&s.d, URING_OP_ASYNC_CANCEL);
    without_sync_cancel = true;
    cancel_in_all_ways(&s);
    CHECK_EQUAL(RS_WAKE_CANCEL, s.recv.wake);
    CHECK(s.read.wake == RS_WAKE_CANCEL || s.read.result == RS_LOST);
    CHECK(s.timed.wake == RS_WAKE_TIMEOUT || s.timed.result == RS_LOST);
    CHECK_EQUAL(0, s.closer.result);
    CHECK(strstr(s.d.machine->refusal_text, "IORING_REGISTER_SYNC_CANCEL"));
    close_all(&s.d, s.pair, 2);
    close_all(&s.d, s.pipe, 2);
    CHECK(rs_ops_in(s.d.machine)->slab.used <= 4); /* what the kernel may still be at is never given back */
    rs_ops_in(s.d.machine)->slab.used = 0;
    end_seen(&s.d);
}

/* A thread that ends takes its machine's operations out of the kernel. */
TEST_NOT_EMULATED(a_machine_is_left_whose_ring_suddenly_cancels_nothing) {
    driver d;
    int pipe[2];
    char byte = 0;
    caller reader = {0};
    open_seen(&d, URING_OP_ASYNC_CANCEL);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pipe)));
    scene_call(&d, &reader, request_read(pipe[0], &byte, 1), 0, 0);
    driver_park_root(&d);
    while (d.machine->strands.run_len > 0) driver_step(&d);
    seen.refuses = true;
    rs_backend_uring.leave(d.machine);
    RS_EACH_OP(rs_ops_in(d.machine), op) CHECK(!op->in_doubt);
    CHECK_EQUAL(1, write(pipe[1], "x", 1));
    CHECK_EQUAL(0, byte);
    close(pipe[0]);
    close(pipe[1]);
    driver_close(&d);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    return test_main(argc, argv);
}
