/* What epoll leaves to worker threads: opens that wait for somebody else, and what is given up meanwhile. */
#include "test.h"

#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void open_machine(driver *d) {
    rs_options options = rs_default_options();
    RS_ASSERT(driver_open(d, &rs_backend_epoll, &options) == 0);
    scene_begin();
}

/* In the place of the system's: a disk that hangs for as long as it is held. */
static _Atomic bool disk_hangs;
static _Atomic int syncs;

int fsync(int fd) {
    syncs++;
    while (disk_hangs) usleep(100);
    return (int)syscall(SYS_fsync, fd);
}

/* Closes the descriptor while a worker is at it, and cancels its strand after that. */
typedef struct {
    task task;
    caller *target;
    int fd;
} late_canceller;

static void late_canceller_step(task *task) {
    late_canceller *self = (late_canceller *)task;
    TASK_BEGIN(task);
    while (syncs == 0) TASK_WAIT(task, task_sleep(task, MS));
    CHECK_EQUAL(1, rs_descriptor_closing(task->driver->machine, self->fd));
    rs_scope_cancel(task->driver->machine, &self->target->task.strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_STRAND_READY, self->target->task.strand->state);
    disk_hangs = false;
    TASK_END(task);
}

TEST(who_waits_for_a_disk_that_hangs_is_cancelled_although_its_descriptor_is_being_closed) {
    driver d;
    const char *folder = subject_folder(), *file = subject_path(folder, "file");
    open_machine(&d);
    int fd = (int)scene_ask(&d, request_open(file, O_RDWR | O_CREAT));
    disk_hangs = true;
    syncs = 0;
    caller syncer = {0};
    late_canceller canceller = {.target = &syncer, .fd = fd};
    scene_call(&d, &syncer, request_fsync(fd), 0, 0);
    driver_spawn(&d, NULL, &canceller.task, late_canceller_step);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_CANCEL, syncer.wake);
    subject_rest(&d);
    close_all(&d, &fd, 1);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(file);
    rmdir(folder);
}

static _Atomic int preads;

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset) {
    RS_ASSERT(count == 1);
    preads++;
    while (disk_hangs) usleep(100);
    return pread(fd, parts->iov_base, parts->iov_len, offset);
}

/* The machine's thread ends meanwhile. Whoever owns the memory must leave it where it is for so long, and no longer. */
TEST(memory_that_a_worker_reads_into_is_in_use_until_it_has_read) {
    driver d;
    char bytes[4] = "";
    const char *folder = subject_folder(), *file = subject_path(folder, "file");
    rs_options options = rs_default_options();
    options.offload_files = true;
    RS_ASSERT(driver_open(&d, &rs_backend_epoll, &options) == 0);
    scene_begin();
    int fd = (int)scene_ask(&d, request_open(file, O_RDWR | O_CREAT));
    CHECK_EQUAL(3, pwrite(fd, "abc", 3, 0));
    disk_hangs = true;
    preads = 0;
    caller readers[2] = {0};
    rs_request read = {.kind = RS_OP_PREAD, .fd = fd, .transfer = {.address = bytes, .len = 3}};
    for (int i = 0; i < 2; i++) scene_call(&d, &readers[i], read, 0, 0);
    driver_park_root(&d);
    while (d.machine->strands.run_len > 0) driver_step(&d);
    while (preads < 2) usleep(100);
    rs_machine_leave(d.machine);
    CHECK(rs_ops_use_memory(d.machine));
    disk_hangs = false;
    while (rs_ops_use_memory(d.machine)) usleep(100);
    CHECK(memcmp(bytes, "abc", 3) == 0);
    while (d.machine->outside > 0) usleep(100);
    driver_close(&d);
    close(fd);
    unlink(file);
    rmdir(folder);
}

/* The strand has been sent on, and before it runs the worker is done: still nobody takes the descriptor. */
typedef struct {
    task task;
    caller *target;
    const char *path;
    int other_end;
    int tries;
} racer;

static void racer_step(task *task) {
    racer *self = (racer *)task;
    TASK_BEGIN(task);
    while (scene_threads_opening() < 1 && self->tries++ < 500) {
        TASK_WAIT(task, task_sleep(task, MS));
    }
    rs_scope_cancel(task->driver->machine, &self->target->task.strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_STRAND_READY, self->target->task.strand->state);
    self->other_end = open(self->path, O_WRONLY | O_CLOEXEC);
    while (rs_inbox_empty(&task->driver->machine->inbox)) usleep(100);
    TASK_END(task);
}

TEST(a_descriptor_made_after_the_cancel_and_before_its_strand_ran_is_closed) {
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    open_machine(&d);
    int before = scene_open_descriptors();
    caller opener = {0};
    racer racer = {.target = &opener, .path = path};
    scene_call(&d, &opener, request_open(path, O_RDONLY), 0, 0);
    driver_spawn(&d, NULL, &racer.task, racer_step);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_CANCEL, opener.wake);
    close(racer.other_end);
    CHECK_DESCRIPTORS(before);
    CHECK_EQUAL(0, scene_end(&d));
    subject_remove_fifo(folder, path);
}

TEST(closing_the_machine_closes_what_left_ops_still_make) {
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    int before = scene_open_descriptors();
    open_machine(&d);
    caller opener = {0};
    canceller canceller = {.opening = 1};
    scene_call(&d, &opener, request_open(path, O_RDONLY), 0, 0);
    scene_cancel(&d, &canceller, &opener.task, 0);
    driver_run(&d);
    CHECK_EQUAL(1, d.machine->outside);
    int other_end = open(path, O_WRONLY | O_CLOEXEC);
    while (rs_inbox_empty(&d.machine->inbox)) usleep(100);
    driver_close(&d);
    close(other_end);
    CHECK_DESCRIPTORS(before);
    subject_remove_fifo(folder, path);
}

/* With every worker busy a job waits in line; a cancellation takes it out of there at once. */
TEST(a_job_in_line_is_withdrawn) {
    enum { WORKERS = RS_OPENS_MAX, IN_LINE = 3 };
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    open_machine(&d);
    int before = scene_open_descriptors();
    caller openers[WORKERS] = {0}, late[IN_LINE] = {0};
    canceller cancellers[WORKERS + IN_LINE] = {0};
    for (int i = 0; i < WORKERS; i++) scene_call(&d, &openers[i], request_open(path, O_RDONLY), 0, 0);
    for (int i = 0; i < IN_LINE; i++) {
        scene_call(&d, &late[i], request_open(path, O_RDONLY), 0, 0);
        cancellers[i].opening = WORKERS;
        /* One in the middle first, then the head, then the end. */
        scene_cancel(&d, &cancellers[i], &late[(i * 2 + 1) % IN_LINE].task, 0);
    }
    driver_park_root(&d);
    while (d.unfinished > WORKERS) driver_step(&d);
    driver_unpark_root(&d);
    for (int i = 0; i < IN_LINE; i++) CHECK_EQUAL(RS_WAKE_CANCEL, late[i].wake);
    CHECK_EQUAL(WORKERS, d.machine->outside);
    CHECK_EQUAL(WORKERS, d.machine->in_flight);
    for (int i = 0; i < WORKERS; i++) scene_cancel(&d, &cancellers[IN_LINE + i], &openers[i].task, 0);
    driver_run(&d);
    for (int i = 0; i < WORKERS; i++) CHECK_EQUAL(RS_WAKE_CANCEL, openers[i].wake);
    int other_end = open(path, O_WRONLY | O_CLOEXEC);
    subject_rest(&d);
    close(other_end);
    CHECK_DESCRIPTORS(before);
    CHECK_EQUAL(0, scene_end(&d));
    subject_remove_fifo(folder, path);
}

/* Looks, one each millisecond, for what a thread does as soon as it has a processor. Others may have all of these for many seconds. */
#define LOOKS_MAX 100000

/* A thread that was left goes by itself, after the machine, and takes its descriptor with it: nobody joins it. One of an earlier test
 * may have been there before, and have gone in its place. */
static void await_threads(int most, int descriptors) {
    for (int i = 0; i < LOOKS_MAX && (scene_threads() > most || scene_open_descriptors() > descriptors); i++) usleep(1000);
    CHECK(scene_threads() <= most);
    CHECK_DESCRIPTORS(descriptors);
}

/* One that waits for a processor in the middle of its open does not seem to be in it. */
static bool is_a_thread_opening(void) {
    bool opening = false;
    for (int i = 0; i < LOOKS_MAX && !opening; i++) {
        opening = scene_threads_opening() != 0;
        if (!opening) usleep(1000);
    }
    return opening;
}

/* More opens that wait for ever than there are workers: given up, they keep nobody from working. */
TEST(threads_that_were_left_do_not_count) {
    enum { STUCK = RS_OPENS_MAX + 6 };
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    const char *file = subject_path(folder, "file");
    int threads_before = scene_threads(), descriptors_before = scene_open_descriptors();
    open_machine(&d);
    int before = scene_open_descriptors();
    int fd = (int)scene_ask(&d, request_open(file, O_RDWR | O_CREAT));
    caller openers[STUCK] = {0}, syncer = {0};
    canceller cancellers[STUCK] = {0};
    for (int i = 0; i < STUCK; i++) {
        scene_call(&d, &openers[i], request_open(path, O_RDONLY), 0, 0);
        cancellers[i].opening = i < (int)RS_OPENS_MAX ? (int)RS_OPENS_MAX : STUCK;
        scene_cancel(&d, &cancellers[i], &openers[i].task, 0);
    }
    driver_run(&d);
    CHECK_EQUAL(STUCK, d.machine->outside);
    scene_call(&d, &syncer, request_fsync(fd), 0, 10 * SECOND);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_VALUE, syncer.wake);
    CHECK_EQUAL(0, syncer.result);
    int other_end = open(path, O_WRONLY | O_CLOEXEC);
    subject_rest(&d);
    close(other_end);
    close_all(&d, &fd, 1);
    CHECK_DESCRIPTORS(before);
    CHECK_EQUAL(0, scene_end(&d));
    await_threads(threads_before, descriptors_before);
    unlink(file);
    subject_remove_fifo(folder, path);
}

TEST(a_machine_closes_although_a_thread_is_stuck) {
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    int before = scene_open_descriptors(), threads_before = scene_threads();
    open_machine(&d);
    caller opener = {0};
    canceller canceller = {.opening = 1};
    scene_call(&d, &opener, request_open(path, O_RDONLY), 0, 0);
    scene_cancel(&d, &canceller, &opener.task, 0);
    driver_run(&d);
    driver_close(&d);
    CHECK(is_a_thread_opening());
    int other_end = open(path, O_WRONLY | O_CLOEXEC);
    close(other_end);
    await_threads(threads_before, before);
    subject_remove_fifo(folder, path);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    return test_main(argc, argv);
}

/* Whoever works on it in several steps sees by the generation that it was closed in between. */
TEST(a_descriptor_is_closed_by_one_and_nothing_begins_on_it_meanwhile) {
    driver d;
    int pair[2];
    char byte;
    open_machine(&d);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    rs_descriptors *descriptors = rs_descriptors_in(d.machine);
    uint32_t before = rs_descriptor_generation(descriptors, pair[0]);
    CHECK(rs_descriptor_close_begin(d.machine, pair[0]));
    CHECK(!rs_descriptor_close_begin(d.machine, pair[0]));
    uint32_t meanwhile = rs_descriptor_generation(descriptors, pair[0]);
    CHECK(meanwhile != before);
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_read(pair[0], &byte, 1)));
    CHECK_EQUAL(0, scene_ask(&d, request_close(pair[0])));
    rs_descriptor_close_end(d.machine, pair[0]);
    CHECK(rs_descriptor_generation(descriptors, pair[0]) != meanwhile);
    CHECK(rs_descriptor_generation(descriptors, pair[0]) != before);
    CHECK(rs_descriptor_close_begin(d.machine, pair[0]));
    rs_descriptor_close_end(d.machine, pair[0]);
    /* One that is in no op yet gets an entry if it is open, and else needs none. */
    int far = fcntl(pair[1], F_DUPFD_CLOEXEC, 900);
    CHECK(rs_descriptor_close_begin(d.machine, far) && !rs_descriptor_close_begin(d.machine, far));
    uint32_t capacity = descriptors->capacity;
    CHECK(rs_descriptor_close_begin(d.machine, RS_DESCRIPTORS_MAX - 1));
    CHECK_EQUAL(capacity, descriptors->capacity);
    close(far);
    close_all(&d, pair + 1, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

static void never(task *task) {
    TASK_BEGIN(task);
    TASK_WAIT(task, task_sleep(task, 50 * MS));
    CHECK_EQUAL(RS_WAKE_TIMEOUT, task->wake);
    TASK_END(task);
}

typedef struct {
    int fd;
    uint64_t bytes;
} drain;

static void *drain_all(void *argument) {
    drain *self = argument;
    static char bytes[65536];
    for (ssize_t count; (count = read(self->fd, bytes, sizeof(bytes))) > 0;) self->bytes += (uint64_t)count;
    return NULL;
}

/* One that takes as fast as we give must not keep the others from their turns. */
TEST(a_large_write_lets_others_run) {
    enum { LARGE = 32 << 20 };
    driver d;
    int pipe_pair[2], socket_pair[2];
    open_machine(&d);
    CHECK(pipe(pipe_pair) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, socket_pair) == 0);
    fcntl(pipe_pair[1], F_SETFL, O_NONBLOCK);
    uint8_t *large = calloc(1, LARGE);
    int *pairs[2] = {pipe_pair, socket_pair};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        drain taker = {.fd = pairs[i][0]};
        caller writer = {0};
        pthread_create(&thread, NULL, drain_all, &taker);
        rs_request write = i ? request_send(pairs[i][1], large, LARGE) : request_write(pairs[i][1], large, LARGE);
        write.options = RS_REQUEST_ALL;
        uint64_t polls = d.machine->metrics.polls;
        scene_call(&d, &writer, write, 0, 0);
        driver_run(&d);
        CHECK_EQUAL(LARGE, writer.result);
        CHECK(d.machine->metrics.polls - polls > LARGE / 262144 / 2);
        close_all(&d, pairs[i] + 1, 1);
        pthread_join(thread, NULL);
        CHECK_EQUAL(LARGE, taker.bytes);
        close_all(&d, pairs[i], 1);
    }
    free(large);
    CHECK_EQUAL(0, scene_end(&d));
}

/* As a sandbox does that is older than the call. */
static int sleep_without_pwait2(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(lines) / sizeof(lines[0]), .filter = lines};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 0;
    driver d;
    task sleeper = {0};
    test_failures = 0;
    open_machine(&d);
    driver_spawn(&d, NULL, &sleeper, never);
    driver_run(&d);
    CHECK(d.machine->metrics.sleeps < 10);
    CHECK_EQUAL(0, scene_end(&d));
    return test_failures > 0;
}

TEST(a_forbidden_pwait2_is_done_without) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int status = sleep_without_pwait2();
        fflush(stdout);
        _exit(status);
    }
    int status;
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
}

