/* What only a real kernel has, whichever way it is asked: opens that wait for somebody else, descriptors that others keep
 * blocking, children, forks. */
#include "test.h"

#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

OVER_KERNELS(opening_a_fifo_waits_for_its_other_end_and_holds_up_nobody) {
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    char bytes[8];
    subject_open(&d, subject);
    caller ends[2] = {0};
    scene_call(&d, &ends[0], request_open(path, O_RDONLY), 0, 0);
    scene_call(&d, &ends[1], request_open(path, O_WRONLY), 5 * MS, 0);
    driver_run(&d);
    CHECK(ends[0].result >= 0 && ends[1].result >= 0);
    int fds[2] = {(int)ends[0].result, (int)ends[1].result};
    CHECK(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    /* Both are blocking descriptors; waiting on them does not block the machine. */
    caller reader = {0}, writer = {0};
    scene_call(&d, &reader, request_read(fds[0], bytes, 8), 0, 0);
    scene_call(&d, &writer, request_write(fds[1], "hello", 5), 3 * MS, 0);
    driver_run(&d);
    CHECK_EQUAL(5, reader.result);
    CHECK_EQUAL(5, writer.result);
    close_all(&d, fds, 2);
    CHECK_EQUAL(0, scene_end(&d));
    subject_remove_fifo(folder, path);
}

OVER_KERNELS(a_cancelled_open_leaks_no_descriptor) {
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    subject_open(&d, subject);
    int before = scene_open_descriptors();
    caller opener = {.then_sleep_ns = 10 * SECOND};
    canceller canceller = {.opening = 1};
    int64_t start_ns = rs_now(d.machine);
    scene_call(&d, &opener, request_open(path, O_RDONLY), 0, 0);
    scene_cancel(&d, &canceller, &opener.task, 0);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_CANCEL, opener.wake);
    CHECK(rs_now(d.machine) - start_ns < 5 * SECOND);
    /* A thread of ours stays behind; the kernel's comes back. */
    CHECK_EQUAL(is_uring(subject) ? 0 : 1, d.machine->outside);
    CHECK_EQUAL(d.machine->outside, d.machine->in_flight);
    int other_end = open(path, O_RDWR | O_CLOEXEC);
    subject_rest(&d);
    close(other_end);
    CHECK_DESCRIPTORS(before);
    CHECK_EQUAL(0, scene_end(&d));
    subject_remove_fifo(folder, path);
}

OVER_KERNELS(a_waiting_open_does_not_hold_up_other_work) {
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    const char *file = subject_path(folder, "file");
    subject_open(&d, subject);
    int fd = (int)scene_ask(&d, request_open(file, O_RDWR | O_CREAT));
    /* Leaves one worker idle, which two jobs at once must not both count on. */
    CHECK_EQUAL(0, scene_ask(&d, request_fsync(fd)));
    usleep(10000);
    caller opener = {0}, syncer = {0};
    canceller canceller = {0};
    scene_call(&d, &opener, request_open(path, O_RDONLY), 0, 0);
    scene_call(&d, &syncer, request_fsync(fd), 0, 2 * SECOND);
    scene_cancel(&d, &canceller, &opener.task, SECOND);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_VALUE, syncer.wake);
    CHECK_EQUAL(0, syncer.result);
    CHECK(syncer.order < opener.order);
    int other_end = open(path, O_RDWR | O_CLOEXEC);
    subject_rest(&d);
    close(other_end);
    close_all(&d, &fd, 1);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(file);
    subject_remove_fifo(folder, path);
}

/* As many as there are threads for files, and more. */
OVER_KERNELS(opens_that_wait_hold_up_no_work_on_files) {
    enum { OPENS = 12 };
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder), *file = subject_path(folder, "file");
    subject_open(&d, subject);
    int fd = (int)scene_ask(&d, request_open(file, O_RDWR | O_CREAT)), opened[OPENS];
    caller openers[OPENS] = {0}, syncer = {0};
    for (int i = 0; i < OPENS; i++) scene_call(&d, &openers[i], request_open(path, O_RDONLY), 0, 0);
    scene_call(&d, &syncer, request_fsync(fd), 10 * MS, 0);
    driver_park_root(&d);
    while (syncer.order == 0) driver_step(&d);
    driver_unpark_root(&d);
    CHECK_EQUAL(0, syncer.result);
    for (int i = 0; i < OPENS; i++) CHECK_EQUAL(0, openers[i].order);
    int other_end = open(path, O_RDWR | O_CLOEXEC);
    driver_run(&d);
    for (int i = 0; i < OPENS; i++) opened[i] = (int)openers[i].result;
    close_all(&d, opened, OPENS);
    close(other_end);
    close_all(&d, &fd, 1);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(file);
    subject_remove_fifo(folder, path);
}

/* Made by somebody else, without O_NONBLOCK. */
OVER_KERNELS(blocking_descriptors_do_not_block_the_machine) {
    driver d;
    int pipe_pair[2], socket_pair[2];
    char bytes[8];
    subject_open(&d, subject);
    CHECK(pipe(pipe_pair) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, socket_pair) == 0);
    int *pairs[2] = {pipe_pair, socket_pair};
    for (int i = 0; i < 2; i++) {
        caller reader = {0}, writer = {0}, poller = {0};
        scene_call(&d, &reader, request_read(pairs[i][0], bytes, 8), 0, 0);
        scene_call(&d, &poller, request_poll(pairs[i][0], POLLIN), 0, 10 * MS);
        scene_call(&d, &writer, request_write(pairs[i][1], "hello", 5), 3 * MS, 0);
        driver_run(&d);
        CHECK_EQUAL(5, reader.result);
        CHECK_EQUAL(5, writer.result);
        CHECK(rs_now(d.machine) - reader.at_ns < SECOND);
    }
    /* A big write to a pipe that nobody empties is cut into what goes without waiting. */
    static uint8_t big[200000];
    caller writer = {0};
    rs_request write = request_write(pipe_pair[1], big, sizeof(big));
    write.options = RS_REQUEST_ALL;
    scene_call(&d, &writer, write, 0, 20 * MS);
    driver_run(&d);
    CHECK(writer.result >= 61440 && writer.result <= 65536);
    close_all(&d, pipe_pair, 2);
    close_all(&d, socket_pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* The number of a descriptor that we waited on is closed and used again behind our back. */
OVER_KERNELS(a_number_reused_behind_our_back) {
    driver d;
    char bytes[8];
    subject_open(&d, subject);
    for (int i = 0; i < 10; i++) {
        int pair[2];
        caller reader = {0}, writer = {0};
        CHECK(pipe2(pair, i % 2 ? O_NONBLOCK : 0) == 0);
        scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, i % 3 ? 0 : MS);
        scene_call(&d, &writer, request_write(pair[1], "hello", 5), 3 * MS, 0);
        driver_run(&d);
        CHECK_EQUAL(i % 3 ? RS_WAKE_VALUE : RS_WAKE_TIMEOUT, reader.wake);
        if (i % 3) CHECK_EQUAL(5, reader.result);
        close(pair[0]);
        close(pair[1]);
    }
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_KERNELS(a_child_is_waited_for) {
    driver d;
    int pair[2];
    char byte;
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct pollfd may_end = {.fd = pair[0], .events = POLLIN};
        poll(&may_end, 1, 20000);
        _exit(read(pair[0], &byte, 1) == 1 ? 3 : 4);
    }
    rs_request request = {.kind = RS_OP_WAITID, .fd = -1, .wait = {.id_type = P_PID, .id = child}};
    caller early = {0}, waiter = {0}, writer = {0};
    scene_call(&d, &early, request, 0, MS);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, early.wake);
    scene_call(&d, &waiter, request, 0, 0);
    scene_call(&d, &writer, request_write(pair[1], "x", 1), MS, 0);
    driver_run(&d);
    CHECK_EQUAL(child, waiter.result);
    subject_rest(&d);
    /* It was only looked at: reaping is the caller's. */
    int status;
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(3, WEXITSTATUS(status));
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* --- forks --- */

static void never(task *task) {
    TASK_BEGIN(task);
    TASK_WAIT(task, task_sleep(task, 50 * MS));
    CHECK_EQUAL(RS_WAKE_TIMEOUT, task->wake);
    TASK_END(task);
}

static int check_child(driver *d, int pair[2], rs_scope *scope) {
    rs_machine *machine = d->machine;
    test_failures = 0;
    char bytes[8];
    CHECK_EQUAL(0, rs_machine_forked(machine));
    d->unfinished = 0;
    CHECK_EQUAL(1, rs_strands_live(&machine->strands));
    CHECK_EQUAL(0, machine->strands.run_len);
    CHECK_EQUAL(0, machine->timers.len);
    CHECK_EQUAL(0, machine->in_flight);
    CHECK_EQUAL(0, rs_ops_in(machine)->slab.used);
    CHECK_EQUAL(0, machine->outside);
    CHECK(rs_running(machine)->scope == scope);
    CHECK_EQUAL(0, scope->live);
    /* Everything works anew, with an instance of its own. */
    int own[2];
    CHECK_EQUAL(0, scene_ask(d, request_pipe(own)));
    caller reader = {0}, writer = {0}, syncer = {0};
    scene_call(d, &reader, request_read(own[0], bytes, 8), 0, 0);
    scene_call(d, &writer, request_write(own[1], "child", 5), MS, 0);
    scene_call(d, &syncer, request_fsync(pair[0]), 0, 0);
    CHECK_EQUAL(RS_RUN, driver_run(d));
    CHECK_EQUAL(5, reader.result);
    CHECK_EQUAL(-EINVAL, syncer.result);
    /* The scope that was open goes on: it can be cancelled and closed. */
    rs_scope_cancel(machine, scope, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    rs_scope_close(machine, scope);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    close_all(d, own, 2);
    CHECK_EQUAL(0, scene_end(d));
    return test_failures > 0;
}

/* The child starts a worker. QEMU 7.2 may abort when a child of a process with threads makes one. */
OVER_KERNELS_NOT_EMULATED(a_forked_machine_forgets_the_others) {
    driver d;
    int pair[2];
    char bytes[8];
    rs_scope scope;
    caller reader = {0}, writer = {0};
    task sleeper = {0}, in_scope = {0};
    subject_open(&d, subject);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    rs_scope_open(d.machine, &scope, rs_now(d.machine) + 10 * SECOND, false);
    scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, 0);
    driver_spawn(&d, NULL, &sleeper, never);
    driver_spawn(&d, &scope, &in_scope, never);
    driver_park_root(&d);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(RS_RUN, driver_step(&d));
    driver_unpark_root(&d);
    CHECK_EQUAL(1, d.machine->in_flight);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int status = check_child(&d, pair, &scope);
        fflush(stdout);
        _exit(status);
    }
    int status;
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
    /* The parent's instance and its waiting reader are as they were. */
    scene_call(&d, &writer, request_write(pair[1], "parent", 6), MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(6, reader.result);
    rs_scope_close(d.machine, &scope);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* What the parent had not taken yet has come along all the same. */
OVER_KERNELS_NOT_EMULATED(a_forked_machine_closes_descriptors_that_were_made_for_the_parent) {
    driver d;
    const char *folder = subject_folder(), *path = subject_fifo(folder);
    subject_open(&d, subject);
    int before = scene_open_descriptors();
    caller opener = {0};
    scene_call(&d, &opener, request_open(path, O_RDONLY), 0, 0);
    driver_park_root(&d);
    driver_step(&d);
    driver_unpark_root(&d);
    int other_end = open(path, O_RDWR | O_CLOEXEC);
    if (is_uring(subject)) {
        while (!d.machine->backend->peek(d.machine)) usleep(100);
    } else {
        while (rs_inbox_empty(&d.machine->inbox)) usleep(100);
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        test_failures = 0;
        CHECK_EQUAL(0, rs_machine_forked(d.machine));
        close(other_end);
        CHECK_DESCRIPTORS(before);
        fflush(stdout);
        _exit(test_failures > 0);
    }
    int status;
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK(opener.result >= 0);
    close(other_end);
    close_all(&d, (int[]){(int)opener.result}, 1);
    CHECK_DESCRIPTORS(before);
    CHECK_EQUAL(0, scene_end(&d));
    subject_remove_fifo(folder, path);
}

/* --- what comes soon is waited for awake --- */

#define SOON_TURNS 8

/* What each look at it takes. */
#define SHORT_STEP_NS 1000
#define LONG_STEP_NS MS

/* What a wait takes more: to be woken, or to be kept from running by who looks. */
#define WAKE_NS 30000

static int64_t test_clock_ns, step_ns, asleep_ns, awake_ns;
static rs_metrics seen;

static int64_t steps(rs_machine *machine) {
    if (machine->metrics.sleeps != seen.sleeps) test_clock_ns += asleep_ns;
    if (machine->metrics.busy_polls != seen.busy_polls) test_clock_ns += awake_ns;
    seen = machine->metrics;
    return test_clock_ns += step_ns;
}

static void open_on_test_clock(driver *d, const subject *subject) {
    subject_open(d, subject);
    test_clock_ns = rs_now(d->machine);
    step_ns = SHORT_STEP_NS;
    asleep_ns = WAKE_NS;
    awake_ns = 0;
    seen = d->machine->metrics;
    d->machine->clock = steps;
    d->machine->options.busy_poll_ns = 50000;
}

static void sleep_after_message(driver *d) {
    rs_send(d->machine, calloc(1, sizeof(rs_message)));
    rs_sleep(d->machine, RS_NEVER);
    rs_note_sleep(d->machine);
    free(rs_inbox_take(&d->machine->inbox));
}

static void sleep_in_vain(driver *d) {
    step_ns = LONG_STEP_NS;
    rs_sleep(d->machine, test_clock_ns + 2 * LONG_STEP_NS);
    rs_note_sleep(d->machine);
    step_ns = SHORT_STEP_NS;
}

static void check_slept(driver *d, uint64_t busy_polls, uint64_t sleeps) {
    CHECK_EQUAL(busy_polls, d->machine->metrics.busy_polls);
    CHECK_EQUAL(sleeps, d->machine->metrics.sleeps);
}

OVER_KERNELS(a_machine_looks_before_it_sleeps_where_that_has_paid) {
    driver d;
    open_on_test_clock(&d, subject);
    driver_park_root(&d);
    for (int i = 0; i < SOON_TURNS; i++) sleep_after_message(&d);
    check_slept(&d, 0, SOON_TURNS);
    sleep_after_message(&d);
    check_slept(&d, 1, SOON_TURNS);
    /* Nothing comes any more, and it gives that up. */
    for (int i = 0; i < 10; i++) sleep_in_vain(&d);
    check_slept(&d, 1, SOON_TURNS + 10);
    driver_unpark_root(&d);
    CHECK_EQUAL(0, scene_end(&d));
}

#define WAITS_PER_TRIAL 31
#define WAITS (10 * WAITS_PER_TRIAL)

OVER_KERNELS(a_machine_looks_where_that_is_shorter_and_tries_the_other_now_and_then) {
    driver d;
    open_on_test_clock(&d, subject);
    driver_park_root(&d);
    for (int i = 0; i < SOON_TURNS + WAITS; i++) sleep_after_message(&d);
    int trials = WAITS / WAITS_PER_TRIAL + 1; /* the first at once, for until then one is not known */
    check_slept(&d, WAITS - trials, SOON_TURNS + trials);
    /* As on a computer without an idle processor. Trials must have shown that first. */
    asleep_ns = 0;
    for (int times = 1; times <= 4; times++) {
        awake_ns = times * WAKE_NS / 2; /* the longest are longer than any look */
        for (int i = 0; i < WAITS; i++) sleep_after_message(&d);
        uint64_t looked = d.machine->metrics.busy_polls;
        for (int i = 0; i < WAITS; i++) sleep_after_message(&d);
        CHECK_EQUAL(looked + WAITS / WAITS_PER_TRIAL, d.machine->metrics.busy_polls);
    }
    driver_unpark_root(&d);
    CHECK_EQUAL(0, scene_end(&d));
}

/* The longest wait for a lock that is never let go. */
#define LOCK_WAIT_NS 50000

static _Atomic bool lock_taken;
static int64_t let_go_at_ns;

static int64_t steps_until_it_is_let_go(rs_machine *machine) {
    int64_t now_ns = steps(machine);
    if (now_ns >= let_go_at_ns) lock_taken = false;
    return now_ns;
}

OVER_KERNELS(a_machine_that_looks_goes_on_when_the_lock_is_let_go) {
    driver d;
    open_on_test_clock(&d, subject);
    driver_park_root(&d);
    d.machine->sleeps.soon = 2 * SOON_TURNS;
    d.machine->sleeps.lock_taken = &lock_taken;
    d.machine->sleeps.asleep_ns = MS;
    d.machine->clock = steps_until_it_is_let_go;
    for (int late = 0; late < 2; late++) {
        lock_taken = true;
        int64_t began_ns = test_clock_ns;
        let_go_at_ns = began_ns + (late ? RS_NEVER / 2 : 20 * SHORT_STEP_NS);
        sleep_after_message(&d);
        check_slept(&d, 1 + late, 0);
        int64_t end_ns = late ? began_ns + LOCK_WAIT_NS : let_go_at_ns;
        CHECK(test_clock_ns >= end_ns && test_clock_ns <= end_ns + 5 * SHORT_STEP_NS);
    }
    driver_unpark_root(&d);
    CHECK_EQUAL(0, scene_end(&d));
}

/* A thread of the kernel's takes its time. */
static bool is_prompt(const subject *subject) { return is_kernel(subject) && !subject->sqpoll; }

OVER(a_machine_that_looks_hears_who_wakes_it_and_once_only, is_prompt) {
    driver d;
    open_on_test_clock(&d, subject);
    driver_park_root(&d);
    d.machine->sleeps.soon = 2 * SOON_TURNS;
    for (int i = 0; i < 2; i++) {
        rs_wake_up(d.machine);
        rs_sleep(d.machine, RS_NEVER);
    }
    check_slept(&d, 2, 0);
    rs_sleep(d.machine, rs_now(d.machine) + 2 * d.machine->options.busy_poll_ns);
    check_slept(&d, 3, 1);
    driver_unpark_root(&d);
    CHECK_EQUAL(0, scene_end(&d));
}

/* One in two: to look for the others would cost more than it saves. */
OVER_KERNELS(a_machine_does_not_look_for_what_seldom_comes_soon) {
    driver d;
    open_on_test_clock(&d, subject);
    driver_park_root(&d);
    for (int i = 0; i < 40; i++) {
        sleep_after_message(&d);
        sleep_in_vain(&d);
    }
    check_slept(&d, 0, 80);
    d.machine->options.busy_poll_ns = 0;
    for (int i = 0; i < 2 * SOON_TURNS; i++) sleep_after_message(&d);
    check_slept(&d, 0, 80 + 2 * SOON_TURNS);
    driver_unpark_root(&d);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_KERNELS(an_op_that_completes_while_the_machine_looks) {
    driver d;
    int pair[2];
    char bytes[8];
    open_on_test_clock(&d, subject);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    for (int i = 0; i < 3; i++) {
        caller reader = {0};
        scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, 0);
        driver_park_root(&d);
        CHECK_EQUAL(RS_RUN, driver_step(&d));
        CHECK_EQUAL(1, d.machine->in_flight);
        CHECK_EQUAL(5, write(pair[1], "hello", 5));
        d.machine->sleeps.soon = 2 * SOON_TURNS;
        while (driver_step(&d) == RS_SLEEP) d.machine->sleeps.soon = 2 * SOON_TURNS;
        driver_unpark_root(&d);
        CHECK_EQUAL(RS_RUN, driver_run(&d));
        CHECK_EQUAL(5, reader.result);
    }
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Something else has ended its sleep, and it was long in getting back: what has come meanwhile is there before a time that has. */
OVER(what_came_since_the_sleep_comes_before_a_time_that_is_due, is_prompt) {
    driver d;
    int pair[2];
    char bytes[8];
    open_on_test_clock(&d, subject);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    caller reader = {0};
    scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, MS);
    driver_park_root(&d);
    CHECK_EQUAL(RS_RUN, driver_step(&d));
    CHECK_EQUAL(RS_SLEEP, rs_next(d.machine).verdict);
    rs_wake_up(d.machine);
    rs_sleep(d.machine, RS_NEVER);
    CHECK_EQUAL(5, write(pair[1], "hello", 5));
    test_clock_ns += MS;
    driver_unpark_root(&d);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_WAKE_VALUE, reader.wake);
    CHECK_EQUAL(5, reader.result);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* More than a kernel reports in one call. */
OVER(all_that_came_come_before_a_time_that_is_due, is_prompt) {
    enum { MANY = 300 };
    driver d;
    static int pairs[MANY][2];
    static char bytes[MANY];
    static caller readers[MANY];
    memset(readers, 0, sizeof(readers));
    open_on_test_clock(&d, subject);
    for (int i = 0; i < MANY; i++) CHECK_EQUAL(0, scene_ask(&d, request_pipe(pairs[i])));
    for (int i = 0; i < MANY; i++) {
        rs_request request = request_read(pairs[i][0], &bytes[i], 1);
        if (i % 2) {
            request.transfer.address = NULL;
            readers[i].task.copy_bytes_to = &bytes[i];
            request.options = RS_REQUEST_ANY_BUFFER;
        }
        scene_call(&d, &readers[i], request, 0, SECOND);
    }
    driver_park_root(&d);
    while (d.machine->in_flight < MANY || d.machine->strands.run_len > 0) CHECK_EQUAL(RS_RUN, driver_step(&d));
    CHECK_EQUAL(RS_SLEEP, rs_next(d.machine).verdict);
    for (int i = 0; i < MANY; i++) CHECK_EQUAL(1, write(pairs[i][1], "x", 1));
    test_clock_ns += SECOND;
    driver_unpark_root(&d);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    int late = 0;
    for (int i = 0; i < MANY; i++) late += readers[i].wake != RS_WAKE_VALUE || readers[i].result != 1;
    CHECK_EQUAL(0, late);
    for (int i = 0; i < MANY; i++) close_all(&d, pairs[i], 2);
    CHECK_EQUAL(0, scene_end(&d));
}

static const rs_backend *real_backend;
static int late_end;

static void poll_and_lose_the_processor(rs_machine *machine) {
    real_backend->poll(machine);
    machine->backend = real_backend;
    CHECK_EQUAL(5, write(late_end, "hello", 5));
    test_clock_ns += MS;
}

OVER(what_came_since_the_look_comes_before_a_time_that_is_due, is_prompt) {
    driver d;
    int pair[2];
    char bytes[8];
    open_on_test_clock(&d, subject);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    late_end = pair[1];
    real_backend = d.machine->backend;
    rs_backend slow = *real_backend;
    slow.poll = poll_and_lose_the_processor;
    caller reader = {0};
    scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, MS);
    driver_park_root(&d);
    CHECK_EQUAL(RS_RUN, driver_step(&d));
    d.machine->backend = &slow;
    CHECK_EQUAL(RS_SLEEP, rs_next(d.machine).verdict);
    CHECK(d.machine->backend == real_backend);
    driver_unpark_root(&d);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_WAKE_VALUE, reader.wake);
    CHECK_EQUAL(5, reader.result);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    return test_main(argc, argv);
}
