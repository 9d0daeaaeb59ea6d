/* What only the backend on io_uring must see to. */
#include "test.h"

#include "subjects.h"
#include "backend/uring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

static void open_machine(driver *d) {
    rs_options options = rs_default_options();
    RS_ASSERT(driver_open(d, &rs_backend_uring, &options) == 0);
    scene_begin();
}

static void *read_all(void *pipe) {
    static char bytes[1 << 16];
    while (read(*(int *)pipe, bytes, sizeof(bytes)) > 0) {}
    return NULL;
}

/* Somebody else reads as fast as it is written: still all others are served in between. */
TEST_NOT_EMULATED(a_long_transfer_stops_now_and_then) {
    enum { LEN = 64 << 20, STEP_MAX = 512 << 10 };
    driver d;
    int pair[2];
    pthread_t reader;
    uint64_t before = 0;
    open_machine(&d);
    void *bytes = calloc(1, LEN);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    int blocking = dup(pair[0]);
    fcntl(blocking, F_SETFL, 0);
    CHECK_EQUAL(0, pthread_create(&reader, NULL, read_all, &blocking));
    caller writer = {0};
    rs_request request = request_write(pair[1], bytes, LEN);
    request.options = RS_REQUEST_ALL;
    scene_call(&d, &writer, request, 0, 0);
    driver_park_root(&d);
    while (d.unfinished > 0) {
        driver_step(&d);
        if (!writer.task.op) continue;
        uint64_t done = writer.task.op->request.done;
        CHECK(done - before <= STEP_MAX);
        before = done;
    }
    driver_unpark_root(&d);
    CHECK_EQUAL(LEN, writer.result);
    close_all(&d, pair, 2);
    pthread_join(reader, NULL);
    close(blocking);
    free(bytes);
    CHECK_EQUAL(0, scene_end(&d));
}

/* An entry has 32 bits for a length: of 4 GiB nothing would be left. */
TEST_NOT_EMULATED(a_transfer_longer_than_an_entry_can_say) {
    driver d;
    int pair[2];
    size_t len = (size_t)1 << 32;
    open_machine(&d);
    void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(bytes != MAP_FAILED);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    caller reader = {0}, writer = {0};
    scene_call(&d, &reader, request_read(pair[0], bytes, len), 0, 0);
    scene_call(&d, &writer, request_write(pair[1], "hello", 5), MS, 0);
    driver_run(&d);
    CHECK_EQUAL(5, reader.result);
    close_all(&d, pair, 2);
    munmap(bytes, len);
    CHECK_EQUAL(0, scene_end(&d));
}

/* --- what is known of a descriptor --- */

static int64_t try_recv(driver *d, int fd, uint64_t len) {
    char bytes[64];
    rs_request request = request_recv(fd, bytes, len);
    return rs_try(d->machine, &request);
}

TEST_NOT_EMULATED(after_a_short_read_the_next_is_not_tried_in_vain) {
    driver d;
    int pair[2];
    char bytes[64];
    open_machine(&d);
    CHECK_EQUAL(0, scene_ask(&d, request_socketpair(pair)));
    CHECK_EQUAL(6, write(pair[0], "abcdef", 6));
    CHECK_EQUAL(3, try_recv(&d, pair[1], 3));
    CHECK_EQUAL(3, try_recv(&d, pair[1], 3)); /* as much as was asked for, so there may be more */
    CHECK_EQUAL(-EAGAIN, try_recv(&d, pair[1], 3));
    CHECK_EQUAL(3, write(pair[0], "abc", 3));
    CHECK_EQUAL(3, try_recv(&d, pair[1], 64));
    /* The hint is wrong by now, and loses nothing. */
    CHECK_EQUAL(3, write(pair[0], "def", 3));
    CHECK_EQUAL(-EAGAIN, try_recv(&d, pair[1], 64));
    CHECK_EQUAL(3, scene_ask(&d, request_recv(pair[1], bytes, 64)));
    CHECK(memcmp(bytes, "def", 3) == 0);
    CHECK_EQUAL(3, write(pair[0], "ghi", 3));
    CHECK_EQUAL(3, scene_ask(&d, request_read(pair[1], bytes, 64)));
    CHECK_EQUAL(0, scene_ask(&d, request_close(pair[0])));
    CHECK_EQUAL(0, scene_ask(&d, request_recv(pair[1], bytes, 64)));
    close_all(&d, pair + 1, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST_NOT_EMULATED(who_may_not_wait_gets_what_is_there_whatever_the_hint_says) {
    driver d;
    int pair[2];
    open_machine(&d);
    CHECK_EQUAL(0, scene_ask(&d, request_socketpair(pair)));
    CHECK_EQUAL(3, write(pair[0], "abc", 3));
    CHECK_EQUAL(3, try_recv(&d, pair[1], 64));
    CHECK_EQUAL(3, write(pair[0], "def", 3));
    CHECK_EQUAL(-EAGAIN, try_recv(&d, pair[1], 64));
    rs_running(d.machine)->interrupts++;
    CHECK_EQUAL(3, try_recv(&d, pair[1], 64));
    rs_running(d.machine)->interrupts--;
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST_NOT_EMULATED(a_short_message_says_nothing_of_the_next) {
    driver d;
    int pair[2];
    open_machine(&d);
    rs_request request = request_socketpair(pair);
    request.socket.type = SOCK_DGRAM;
    CHECK_EQUAL(0, scene_ask(&d, request));
    for (int i = 0; i < 3; i++) CHECK_EQUAL(3, write(pair[0], "abc", 3));
    for (int i = 0; i < 3; i++) CHECK_EQUAL(3, try_recv(&d, pair[1], 64));
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Closed and opened again behind the machine's back: neither the hint nor the way for sockets holds for the new one. */
TEST_NOT_EMULATED(a_pipe_with_the_number_of_a_socket) {
    driver d;
    int pair[2], pipes[2];
    char bytes[64];
    open_machine(&d);
    CHECK_EQUAL(0, scene_ask(&d, request_socketpair(pair)));
    CHECK_EQUAL(3, write(pair[0], "abc", 3));
    CHECK_EQUAL(3, try_recv(&d, pair[1], 64));
    CHECK_EQUAL(0, pipe2(pipes, O_CLOEXEC | O_NONBLOCK));
    dup2(pipes[0], pair[1]);
    CHECK_EQUAL(3, write(pipes[1], "def", 3));
    CHECK_EQUAL(3, scene_ask(&d, request_read(pair[1], bytes, 64)));
    CHECK(memcmp(bytes, "def", 3) == 0);
    for (int i = 0; i < 2; i++) close(pipes[i]);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Every op it has in the kernel when its thread ends, and every byte that they could still touch. */
TEST_NOT_EMULATED(a_machine_that_is_left_has_nothing_in_the_kernel) {
    enum { READERS = 600 };
    driver d;
    int pairs[4][2];
    char bytes[READERS], zeros[READERS] = {0}, ones[READERS];
    memset(bytes, 0, sizeof(bytes));
    memset(ones, 1, sizeof(ones));
    /* A kernel that may not put its work off until we ask would do it behind our back. */
    rs_options options = rs_default_options();
    options.threads_move = true;
    RS_ASSERT(driver_open(&d, &rs_backend_uring, &options) == 0);
    for (int i = 0; i < 4; i++) CHECK_EQUAL(0, scene_ask(&d, request_pipe(pairs[i])));
    caller *readers = calloc(READERS, sizeof(caller));
    for (int i = 0; i < READERS; i++) scene_call(&d, &readers[i], request_read(pairs[i % 4][0], &bytes[i], 1), 0, 0);
    driver_park_root(&d);
    while (d.machine->strands.run_len > 0) driver_step(&d);
    CHECK_EQUAL(READERS, d.machine->in_flight);
    rs_backend_uring.leave(d.machine);
    for (int i = 0; i < 4; i++) CHECK_EQUAL(READERS, write(pairs[i][1], ones, READERS));
    CHECK(memcmp(bytes, zeros, READERS) == 0);
    char got[READERS];
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(READERS, read(pairs[i][0], got, READERS));
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    driver_close(&d);
    free(readers);
}

static int refusal;             /* -errno that every enter is answered; 0: none */
static uint32_t refusals_left;

static int enter_or_refuse(int fd, uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument, size_t size) {
    if (refusal == 0 || refusals_left == 0) return uring_kernel.enter(fd, submit, wait_for, flags, argument, size);
    refusals_left--;
    return refusal;
}

static int wanted_refusal;

static void refuse_step(task *task) {
    TASK_BEGIN(task);
    TASK_WAIT(task, task_sleep(task, 1 * MS));
    refusal = wanted_refusal;
    TASK_END(task);
}

static void open_refusing(driver *d, uring_system *system, int error, uint32_t times) {
    rs_options options = rs_default_options();
    *system = (uring_system){uring_kernel.setup, enter_or_refuse, uring_kernel.enregister};
    options.uring_system = system;
    refusal = 0;
    wanted_refusal = error;
    refusals_left = times;
    RS_ASSERT(driver_open(d, &rs_backend_uring, &options) == 0);
}

/* A peer that answers as soon as it is looked for, or only once the machine sleeps, and enters that are counted. */
static int peer;
static bool answers_at_once, was_asked;
static uint32_t enters;

static int enter_and_answer(int fd, uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument, size_t size) {
    enters++;
    if (was_asked && (answers_at_once || wait_for > 0)) {
        was_asked = false;
        CHECK_EQUAL(1, write(peer, "x", 1));
    }
    return uring_kernel.enter(fd, submit, wait_for, flags, argument, size);
}

enum { QUESTIONS = 200 };

typedef struct {
    task task;
    int fd;
    uint32_t asked;
    char byte;
} asker;

static void ask_step(task *task) {
    asker *self = (asker *)task;
    TASK_BEGIN(task);
    for (; self->asked < QUESTIONS; self->asked++) {
        was_asked = true;
        rs_request request = request_read(self->fd, &self->byte, 1);
        TASK_WAIT(task, task_request(task, &request, RS_NEVER));
        CHECK_EQUAL(1, task->result);
    }
    TASK_END(task);
}

static bool wants_lock(rs_machine *machine) { return machine != NULL; }

/* How many calls it takes. */
static uint32_t enters_of(bool at_once, bool lock_is_wanted, uint64_t *sleeps) {
    driver d;
    int pair[2];
    uring_system system = {uring_kernel.setup, enter_and_answer, uring_kernel.enregister};
    rs_options options = rs_default_options();
    options.uring_system = &system;
    options.busy_poll_ns = 0;
    was_asked = false;
    RS_ASSERT(driver_open(&d, &rs_backend_uring, &options) == 0);
    scene_begin();
    if (lock_is_wanted) d.machine->driver.lock_is_wanted = wants_lock;
    scene_ask(&d, request_pipe(pair));
    peer = pair[1];
    answers_at_once = at_once;
    asker me = {.fd = pair[0]};
    driver_spawn(&d, NULL, &me.task, ask_step);
    uint64_t slept = d.machine->metrics.sleeps;
    enters = 0;
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    uint32_t count = enters;
    *sleeps = d.machine->metrics.sleeps - slept;
    CHECK_EQUAL(QUESTIONS, me.asked);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
    return count;
}

TEST_NOT_EMULATED(a_sleep_hands_over_what_it_waits_for) {
    uint64_t sleeps;
    uint32_t at_once = enters_of(false, false, &sleeps);
    CHECK_EQUAL(QUESTIONS, sleeps);
    CHECK(at_once > QUESTIONS && at_once < QUESTIONS + QUESTIONS / 4);
    CHECK_EQUAL(2 * QUESTIONS, enters_of(false, true, &sleeps));
    CHECK_EQUAL(QUESTIONS, sleeps);
    CHECK_EQUAL(QUESTIONS, enters_of(true, false, &sleeps));
    CHECK_EQUAL(0, sleeps);
}

/* A sandbox that closes behind a machine: who waits for the kernel is told, and times, tries and workers go on. */
TEST_NOT_EMULATED(an_enter_that_is_refused_for_good) {
    driver d;
    int pair[2], pipe[2];
    char byte, any[8];
    uring_system system;
    open_refusing(&d, &system, -EPERM, UINT32_MAX);
    scene_ask(&d, request_socketpair(pair));
    scene_ask(&d, request_pipe(pipe));
    task refuser = {0};
    caller reader = {0}, second = {0}, poller = {0}, late = {0}, timed = {0}, writer = {0}, syncer = {0};
    driver_spawn(&d, NULL, &refuser, refuse_step);
    scene_call(&d, &reader, request_recv(pair[0], &byte, 1), 0, 0);
    scene_call(&d, &second, request_read(pipe[0], any, sizeof(any)), 0, 0);
    scene_call(&d, &poller, request_poll(pipe[0], POLLIN), 0, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_LOST, reader.result);
    CHECK_EQUAL(RS_LOST, second.result);
    CHECK_EQUAL(RS_LOST, poller.result);
    scene_call(&d, &late, request_poll(pipe[0], POLLIN), 0, 0);
    scene_call(&d, &timed, request_poll(pipe[0], POLLIN), 0, 20 * MS);
    scene_call(&d, &writer, request_write(pipe[1], "x", 1), 0, 0);
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    scene_call(&d, &syncer, request_fsync(file), 0, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_LOST, late.result);
    CHECK_EQUAL(RS_LOST, timed.result);
    CHECK_EQUAL(1, writer.result);
    CHECK(file < 0 || syncer.result == 0);
    CHECK(strstr(d.machine->refusal_text, "io_uring_enter"));
    CHECK(d.machine->metrics.polls < 200); /* and it does not spin */
    if (file >= 0) close(file);
    close_all(&d, pair, 2);
    close_all(&d, pipe, 2);
    CHECK_EQUAL(2, rs_ops_in(d.machine)->slab.used); /* what the kernel may still be at is never given back */
    rs_ops_in(d.machine)->slab.used = 0;
    CHECK_EQUAL(0, scene_end(&d));
}

/* The ring is closed with ops in the kernel, which may still write to what they own. */
TEST_NOT_EMULATED(what_a_machine_leaves_in_the_kernel_is_in_doubt) {
    driver d;
    int pair[2], pipe[2];
    char byte, any[8];
    uring_system system;
    open_refusing(&d, &system, -EPERM, UINT32_MAX);
    scene_ask(&d, request_socketpair(pair));
    scene_ask(&d, request_pipe(pipe));
    caller reader = {0}, second = {0}, poller = {0};
    scene_call(&d, &reader, request_recv(pair[0], &byte, 1), 0, 0);
    scene_call(&d, &second, request_read(pipe[0], any, sizeof(any)), 0, 0);
    scene_call(&d, &poller, request_poll(pipe[0], POLLIN), 0, 0);
    driver_park_root(&d);
    while (d.machine->strands.run_len > 0) driver_step(&d);
    rs_backend_uring.peek(d.machine); /* and so the kernel has them all */
    refusal = -EPERM;
    rs_backend_uring.leave(d.machine);
    uint32_t in_doubt = 0;
    RS_EACH_OP(rs_ops_in(d.machine), op) in_doubt += op->in_doubt;
    CHECK_EQUAL(2, in_doubt);
    for (int i = 0; i < 2; i++) close(pair[i]), close(pipe[i]);
    rs_machine_close(d.machine);
    CHECK(rs_ops_use_memory(d.machine)); /* for ever, so what they keep is still known */
    rs_slab_free(&rs_ops_in(d.machine)->slab);
    rs_machine_free(d.machine);
}

/* Answers that mean later, for ever: times go on, nobody spins, and who waits for the kernel is told in the end. */
static void check_later_for_ever(int error) {
    driver d;
    int pipe[2];
    uring_system system;
    open_refusing(&d, &system, error, UINT32_MAX);
    scene_ask(&d, request_pipe(pipe));
    task refuser = {0};
    caller reader = {0}, timed = {0};
    driver_spawn(&d, NULL, &refuser, refuse_step);
    scene_call(&d, &reader, request_poll(pipe[0], POLLIN), 0, 0);
    scene_call(&d, &timed, request_poll(pipe[0], POLLIN), 5 * MS, 20 * MS);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_LOST, reader.result);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, timed.wake);
    CHECK(strstr(d.machine->refusal_text, strerror(-error)));
    CHECK(d.machine->metrics.polls < 3000);
    close_all(&d, pipe, 2);
    rs_ops_in(d.machine)->slab.used = 0;
    CHECK_EQUAL(0, scene_end(&d));
}

TEST_NOT_EMULATED(an_enter_without_memory_for_ever) { check_later_for_ever(-ENOMEM); }

TEST_NOT_EMULATED(an_enter_that_says_later_for_ever) { check_later_for_ever(-EAGAIN); }

TEST_NOT_EMULATED(an_enter_that_is_busy_for_ever) { check_later_for_ever(-EBUSY); }

/* Real ones pass; signals alone never make a machine lost. */
static void check_later_that_passes(int error) {
    driver d;
    int pipe[2];
    uring_system system;
    open_refusing(&d, &system, error, 200);
    scene_ask(&d, request_pipe(pipe));
    task refuser = {0};
    caller reader = {0}, writer = {0};
    driver_spawn(&d, NULL, &refuser, refuse_step);
    scene_call(&d, &reader, request_poll(pipe[0], POLLIN), 0, 0);
    scene_call(&d, &writer, request_write(pipe[1], "x", 1), 5 * MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(POLLIN, reader.result);
    CHECK_EQUAL(0, refusals_left);
    close_all(&d, pipe, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST_NOT_EMULATED(an_enter_that_is_interrupted_often) { check_later_that_passes(-EINTR); }

TEST_NOT_EMULATED(an_enter_without_memory_for_a_while) { check_later_that_passes(-ENOMEM); }

static uint32_t nonsense;

static int set_up_oddly(uint32_t entries, uring_params *params) {
    int fd = uring_kernel.setup(entries, params);
    switch (nonsense) {
    case 0: params->sq_entries = 48; break;
    case 1: params->cq_entries = 0; break;
    case 2: params->sq.head = 0xFFFFFFF0; break;
    case 3: params->cq.tail += 1; break;
    case 4: params->sq.flags = 0x7FFFFFFC; break;
    case 5: params->cq.cqes += 4; break;
    default: params->sq.tail = params->sq.ring_entries; /* full before the first entry */
    }
    return fd;
}

static int probe_oddly(int fd, uint32_t opcode, void *argument, uint32_t count) {
    int result = uring_kernel.enregister(fd, opcode, argument, count);
    if (opcode == URING_REGISTER_PROBE) ((uring_probe *)argument)->ops[4].opcode = 255; /* one that nothing here asks for */
    return result;
}

static uint8_t unknown;

static int probe_without(int fd, uint32_t opcode, void *argument, uint32_t count) {
    int result = uring_kernel.enregister(fd, opcode, argument, count);
    if (opcode == URING_REGISTER_PROBE) ((uring_probe *)argument)->ops[unknown].flags = 0;
    return result;
}

static int open_without(driver *d, uint8_t opcode, uring_system *system) {
    unknown = opcode;
    *system = (uring_system){uring_kernel.setup, uring_kernel.enter, probe_without};
    rs_options options = rs_default_options();
    options.uring_system = system;
    return driver_open(d, &rs_backend_uring, &options);
}

/* Another backend is taken then. */
TEST_NOT_EMULATED(rings_that_cannot_wait_for_streams) {
    static const uint8_t needed[] = {URING_OP_POLL_ADD, URING_OP_READ, URING_OP_WRITE, URING_OP_READV, URING_OP_WRITEV, URING_OP_RECV,
                                     URING_OP_SEND, URING_OP_RECVMSG, URING_OP_SENDMSG, URING_OP_ACCEPT, URING_OP_CONNECT,
                                     URING_OP_ASYNC_CANCEL};
    for (size_t i = 0; i < sizeof(needed); i++) {
        driver d;
        uring_system system;
        CHECK_EQUAL(-EOPNOTSUPP, open_without(&d, needed[i], &system));
        rs_machine_free(d.machine);
    }
}

/* Workers do what concerns files. */
TEST_NOT_EMULATED(rings_that_know_nothing_of_files) {
    static const uint8_t spared[] = {URING_OP_OPENAT, URING_OP_FSYNC, URING_OP_STATX, URING_OP_UNLINKAT, URING_OP_RENAMEAT,
                                     URING_OP_MKDIRAT, URING_OP_FTRUNCATE, URING_OP_FALLOCATE, URING_OP_WAITID, URING_OP_SPLICE};
    for (size_t i = 0; i < sizeof(spared); i++) {
        driver d;
        uring_system system;
        CHECK_EQUAL(0, open_without(&d, spared[i], &system));
        scene_begin();
        CHECK_EQUAL(0, scene_end(&d));
    }
}

/* What emulates a kernel may make rings that cannot be used: an error, by which another backend is taken. */
TEST_NOT_EMULATED(rings_of_sizes_that_no_kernel_makes) {
    uring_system system = {set_up_oddly, uring_kernel.enter, uring_kernel.enregister};
    rs_options options = rs_default_options();
    options.uring_system = &system;
    for (nonsense = 0; nonsense < 7; nonsense++) {
        driver d;
        CHECK_EQUAL(-EPROTO, driver_open(&d, &rs_backend_uring, &options));
        CHECK(strstr(d.machine->refusal_text, "io_uring_setup"));
        rs_machine_free(d.machine);
    }
}

TEST_NOT_EMULATED(an_opcode_that_nobody_knows) {
    uring_system system = {uring_kernel.setup, uring_kernel.enter, probe_oddly};
    rs_options options = rs_default_options();
    options.uring_system = &system;
    driver d;
    int pipe[2];
    CHECK_EQUAL(0, driver_open(&d, &rs_backend_uring, &options));
    scene_begin();
    scene_ask(&d, request_pipe(pipe));
    close_all(&d, pipe, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    return test_main(argc, argv);
}
