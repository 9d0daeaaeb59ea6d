/* The suite that every backend passes, second part: names (sockets, files), numbers (many sleepers, many ops), other
 * threads, and verdicts. */
#include "test.h"

#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define BIG 300000

static int64_t socket_bound_to(driver *d, const char *path) {
    int64_t fd = scene_ask(d, request_socket());
    CHECK(fd >= 0);
    CHECK_EQUAL(0, scene_ask(d, request_bind((int)fd, path)));
    return fd;
}

OVER_BACKENDS(connections) {
    driver d;
    const char *folder = subject_folder();
    const char *path = subject_path(folder, "door");
    char bytes[8] = {0};
    subject_open(&d, subject);
    int listener = (int)socket_bound_to(&d, path);
    CHECK_EQUAL(0, scene_ask(&d, request_listen(listener, 8)));
    int client = (int)scene_ask(&d, request_socket());
    caller acceptor = {0}, connector = {0};
    scene_call(&d, &acceptor, request_accept(listener), 0, 0);
    scene_call(&d, &connector, request_connect(client, path), MS, 0);
    driver_run(&d);
    CHECK_EQUAL(0, connector.result);
    CHECK(acceptor.result >= 0);
    int server = (int)acceptor.result;
    caller reader = {0}, writer = {0};
    scene_call(&d, &reader, request_recv(server, bytes, 8), 0, 0);
    scene_call(&d, &writer, request_send(client, "hello", 5), MS, 0);
    driver_run(&d);
    CHECK_EQUAL(5, reader.result);
    CHECK(strcmp(bytes, "hello") == 0);
    /* One that nobody accepted yet can be written to already. */
    int early = (int)scene_ask(&d, request_socket());
    CHECK_EQUAL(0, scene_ask(&d, request_connect(early, path)));
    CHECK_EQUAL(2, scene_ask(&d, request_send(early, "hi", 2)));
    int late = (int)scene_ask(&d, request_accept(listener));
    CHECK_EQUAL(2, scene_ask(&d, request_recv(late, bytes, 8)));
    int all[] = {client, server, early, late, listener};
    close_all(&d, all, 5);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(path);
    rmdir(folder);
}

OVER_BACKENDS(connections_that_fail) {
    driver d;
    const char *folder = subject_folder();
    const char *path = subject_path(folder, "door"), *nowhere = subject_path(folder, "nowhere");
    char byte;
    subject_open(&d, subject);
    int quiet = (int)socket_bound_to(&d, path);
    int other = (int)scene_ask(&d, request_socket());
    CHECK_EQUAL(-EADDRINUSE, scene_ask(&d, request_bind(other, path)));
    CHECK_EQUAL(-ECONNREFUSED, scene_ask(&d, request_connect(other, path)));
    CHECK_EQUAL(-ENOENT, scene_ask(&d, request_connect(other, nowhere)));
    CHECK_EQUAL(-ENOTCONN, scene_ask(&d, request_send(other, "x", 1)));
    CHECK_EQUAL(-EINVAL, scene_ask(&d, request_recv(other, &byte, 1)));
    CHECK_EQUAL(-EINVAL, scene_ask(&d, request_accept(other)));
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_accept(999)));
    scene_ask(&d, request_listen(quiet, 4));
    CHECK_EQUAL(0, scene_ask(&d, request_connect(other, path)));
    CHECK_EQUAL(-EISCONN, scene_ask(&d, request_connect(other, path)));
    /* The listener goes without ever having accepted. */
    caller reader = {0};
    closer closer = {0};
    scene_call(&d, &reader, request_recv(other, &byte, 1), 0, 0);
    scene_close(&d, &closer, quiet, MS);
    driver_run(&d);
    CHECK_EQUAL(-ECONNRESET, reader.result);
    int pair[2];
    scene_ask(&d, request_pipe(pair));
    CHECK_EQUAL(-ENOTSOCK, scene_ask(&d, request_recv(pair[0], &byte, 1)));
    CHECK_EQUAL(-ENOTSOCK, scene_ask(&d, request_accept(pair[0])));
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_read(pair[1], &byte, 1)));
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_write(pair[0], &byte, 1)));
    int all[] = {other, pair[0], pair[1]};
    close_all(&d, all, 3);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(path);
    rmdir(folder);
}

OVER_BACKENDS(connecting_waits_for_a_place_in_the_queue) {
    enum { CLIENTS = 6, GONE = 2 };
    driver d;
    const char *folder = subject_folder();
    const char *path = subject_path(folder, "door");
    caller connectors[CLIENTS] = {0}, acceptors[CLIENTS] = {0}, gone[GONE] = {0};
    subject_open(&d, subject);
    int listener = (int)socket_bound_to(&d, path);
    scene_ask(&d, request_listen(listener, 1));
    int clients[CLIENTS], servers[CLIENTS], left[GONE];
    for (int i = 0; i < GONE; i++) left[i] = (int)scene_ask(&d, request_socket());
    for (int i = 0; i < CLIENTS; i++) clients[i] = (int)scene_ask(&d, request_socket());
    for (int i = 0; i < CLIENTS; i++) {
        scene_call(&d, &connectors[i], request_connect(clients[i], path), 0, 0);
        if (i >= 3 && i < 3 + GONE) scene_call(&d, &gone[i - 3], request_connect(left[i - 3], path), 0, (i - 1) * MS);
    }
    driver_park_root(&d);
    while (gone[0].order == 0 || gone[1].order == 0) driver_step(&d);
    driver_unpark_root(&d);
    for (int i = 0; i < CLIENTS; i++) scene_call(&d, &acceptors[i], request_accept(listener), i * MS, 0);
    uint64_t before = d.machine->metrics.system_calls;
    driver_run(&d);
    /* It waits, instead of asking all the time. */
    CHECK(d.machine->metrics.system_calls - before < 300);
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_EQUAL(0, connectors[i].result);
        CHECK(acceptors[i].result >= 0);
        servers[i] = (int)acceptors[i].result;
    }
    for (int i = 0; i < GONE; i++) CHECK_EQUAL(RS_WAKE_TIMEOUT, gone[i].wake);
    CHECK_EQUAL(RS_NEVER, d.machine->backend_deadline_ns);
    close_all(&d, left, GONE);
    close_all(&d, clients, CLIENTS);
    close_all(&d, servers, CLIENTS);
    close_all(&d, &listener, 1);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(path);
    rmdir(folder);
}

OVER_BACKENDS(a_cancelled_accept_loses_no_connection) {
    driver d;
    const char *folder = subject_folder();
    const char *path = subject_path(folder, "door");
    subject_open(&d, subject);
    int listener = (int)socket_bound_to(&d, path);
    scene_ask(&d, request_listen(listener, 8));
    for (int i = 0; i < 30; i++) {
        caller acceptor = {.then_sleep_ns = SECOND}, connector = {0};
        canceller canceller = {0};
        int client = (int)scene_ask(&d, request_socket());
        scene_call(&d, &acceptor, request_accept(listener), 0, 0);
        scene_call(&d, &connector, request_connect(client, path), (i % 2) * 50 * US, 0);
        scene_cancel(&d, &canceller, &acceptor.task, (i % 3) * 50 * US);
        driver_run(&d);
        CHECK_EQUAL(0, connector.result);
        CHECK_EQUAL(RS_WAKE_CANCEL, acceptor.then_wake);
        int64_t server = acceptor.wake == RS_WAKE_VALUE ? acceptor.result : scene_ask(&d, request_accept(listener));
        CHECK(server >= 0);
        int both[] = {client, (int)server};
        close_all(&d, both, 2);
    }
    close_all(&d, &listener, 1);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(path);
    rmdir(folder);
}

static rs_request at(rs_op_kind kind, int fd, void *bytes, uint64_t len, int64_t offset) {
    return (rs_request){.kind = (uint8_t)kind, .fd = fd, .transfer = {.address = bytes, .len = len, .offset = offset}};
}

static uint64_t size_of(driver *d, int fd) {
    struct statx answer;
    caller asker = {.task.copy_answer_to = &answer};
    scene_call(d, &asker, request_statx(fd), 0, 0);
    driver_run(d);
    CHECK_EQUAL(0, asker.result);
    return answer.stx_size;
}

static uint8_t *numbered(uint64_t len) {
    uint8_t *bytes = calloc(1, len);
    for (uint64_t i = 0; i < len; i++) bytes[i] = (uint8_t)(i * 13 + i / 255);
    return bytes;
}

OVER_BACKENDS(files) {
    driver d;
    const char *folder = subject_folder();
    const char *path = subject_path(folder, "file");
    uint8_t *sent = numbered(BIG), *got = calloc(1, BIG);
    subject_open(&d, subject);
    CHECK_EQUAL(-ENOENT, scene_ask(&d, request_open(path, O_RDONLY)));
    int fd = (int)scene_ask(&d, request_open(path, O_RDWR | O_CREAT | O_EXCL));
    CHECK(fd >= 0);
    CHECK_EQUAL(-EEXIST, scene_ask(&d, request_open(path, O_RDWR | O_CREAT | O_EXCL)));
    rs_request write = request_write(fd, sent, BIG);
    write.options = RS_REQUEST_ALL;
    CHECK_EQUAL(BIG, scene_ask(&d, write));
    CHECK_EQUAL(BIG, size_of(&d, fd));
    CHECK_EQUAL(0, scene_ask(&d, request_read(fd, got, 100)));
    CHECK_EQUAL(100, scene_ask(&d, at(RS_OP_PREAD, fd, got, 100, 5000)));
    CHECK(memcmp(got, sent + 5000, 100) == 0);
    rs_request whole = at(RS_OP_PREAD, fd, got, BIG, 0);
    whole.options = RS_REQUEST_ALL;
    memset(got, 0, BIG);
    CHECK_EQUAL(BIG, scene_ask(&d, whole));
    CHECK(memcmp(got, sent, BIG) == 0);
    CHECK_EQUAL(10, scene_ask(&d, at(RS_OP_PREAD, fd, got, 100, BIG - 10)));
    CHECK_EQUAL(3, scene_ask(&d, at(RS_OP_PWRITE, fd, "abc", 3, BIG + 7)));
    CHECK_EQUAL(BIG + 10, size_of(&d, fd));
    CHECK_EQUAL(10, scene_ask(&d, at(RS_OP_PREAD, fd, got, 100, BIG)));
    CHECK(memcmp(got, "\0\0\0\0\0\0\0abc", 10) == 0);
    CHECK_EQUAL(0, scene_ask(&d, request_fsync(fd)));
    close_all(&d, &fd, 1);
    fd = (int)scene_ask(&d, request_open(path, O_WRONLY | O_TRUNC));
    CHECK_EQUAL(0, size_of(&d, fd));
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_read(fd, got, 1)));
    CHECK_EQUAL(3, scene_ask(&d, request_write(fd, "123", 3)));
    int appender = (int)scene_ask(&d, request_open(path, O_RDWR | O_APPEND));
    CHECK_EQUAL(2, scene_ask(&d, request_write(appender, "45", 2)));
    CHECK_EQUAL(1, scene_ask(&d, request_write(fd, "X", 1)));
    CHECK_EQUAL(5, scene_ask(&d, at(RS_OP_PREAD, appender, got, 100, 0)));
    CHECK(memcmp(got, "123X5", 5) == 0);
    int both[] = {fd, appender};
    close_all(&d, both, 2);
    int pair[2];
    scene_ask(&d, request_pipe(pair));
    CHECK_EQUAL(-EINVAL, scene_ask(&d, request_fsync(pair[0])));
    CHECK_EQUAL(-ESPIPE, scene_ask(&d, at(RS_OP_PREAD, pair[0], got, 1, 0)));
    close_all(&d, pair, 2);
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_fsync(pair[0])));
    CHECK_EQUAL(0, scene_end(&d));
    unlink(path);
    rmdir(folder);
    free(sent);
    free(got);
}

OVER_BACKENDS(many_strands_use_files_at_once) {
    enum { COUNT = 64, PIECE = 70000 };
    driver d;
    const char *folder = subject_folder();
    const char *path = subject_path(folder, "file");
    uint8_t *sent = numbered(PIECE);
    uint8_t *got = calloc(1, (uint64_t)COUNT * PIECE);
    caller *callers = calloc(1, sizeof(caller) * COUNT);
    subject_open(&d, subject);
    int fd = (int)scene_ask(&d, request_open(path, O_RDWR | O_CREAT));
    for (int i = 0; i < COUNT; i++) {
        rs_request write = at(RS_OP_PWRITE, fd, sent, PIECE, (int64_t)i * PIECE);
        write.options = RS_REQUEST_ALL;
        scene_call(&d, &callers[i], write, 0, 0);
    }
    driver_run(&d);
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQUAL(PIECE, callers[i].result);
        callers[i] = (caller){0};
        rs_request read = at(RS_OP_PREAD, fd, got + (uint64_t)i * PIECE, PIECE, (int64_t)i * PIECE);
        read.options = RS_REQUEST_ALL;
        scene_call(&d, &callers[i], read, 0, 0);
    }
    driver_run(&d);
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQUAL(PIECE, callers[i].result);
        CHECK(memcmp(got + (uint64_t)i * PIECE, sent, PIECE) == 0);
    }
    close_all(&d, &fd, 1);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(path);
    rmdir(folder);
    free(sent);
    free(got);
    free(callers);
}

/* --- numbers --- */

typedef struct {
    task task;
    int64_t delay_ns;
    int64_t due_ns;
    int64_t woken_ns;
    uint32_t order;
} sleeper;

static uint32_t woken_sleepers;

static void sleeper_step(task *task) {
    sleeper *self = (sleeper *)task;
    TASK_BEGIN(task);
    self->due_ns = rs_now(task->driver->machine) + self->delay_ns;
    TASK_WAIT(task, task_park(task, RS_WAIT_SLEEP, 0, self->due_ns));
    self->woken_ns = rs_now(task->driver->machine);
    self->order = woken_sleepers++;
    CHECK_EQUAL(RS_WAKE_TIMEOUT, task->wake);
    TASK_END(task);
}

OVER_BACKENDS(five_thousand_sleepers) {
    enum { COUNT = 5000 };
    driver d;
    sleeper *sleepers = calloc(1, sizeof(sleeper) * COUNT);
    int64_t *due_in_order = calloc(1, sizeof(int64_t) * COUNT);
    subject_open(&d, subject);
    woken_sleepers = 0;
    for (int i = 0; i < COUNT; i++) {
        sleepers[i].delay_ns = (int64_t)(i * 7919 % COUNT) * 20 * US + 1;
        driver_spawn(&d, NULL, &sleepers[i].task, sleeper_step);
    }
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    int early = 0, late = 0, disorder = 0;
    for (int i = 0; i < COUNT; i++) {
        if (sleepers[i].woken_ns < sleepers[i].due_ns) early++;
        if (sleepers[i].woken_ns > sleepers[i].due_ns) late++;
        due_in_order[sleepers[i].order] = sleepers[i].due_ns;
    }
    for (int i = 1; i < COUNT; i++) disorder += due_in_order[i] < due_in_order[i - 1];
    CHECK_EQUAL(0, early);
    CHECK_EQUAL(0, disorder);
    if (is_sim(subject)) CHECK_EQUAL(0, late);
    CHECK_EQUAL(0, scene_end(&d));
    free(sleepers);
    free(due_in_order);
}

/* Ten thousand, and a hundred thousand in the long form: the checks at rest look at each of them before each sleep. */
OVER_BACKENDS(many_ops_in_flight) {
    enum { PAIRS = 50 };
    const int count = PAIRS * (getenv("TEST_LONG") ? 2000 : 200);
    driver d;
    caller *readers = calloc(1, sizeof(caller) * (uint64_t)count);
    uint8_t *bytes = calloc(1, (uint64_t)count);
    int (*pairs)[2] = calloc(1, sizeof(int[2]) * PAIRS);
    subject_open(&d, subject);
    for (int i = 0; i < PAIRS; i++) CHECK_EQUAL(0, scene_ask(&d, request_pipe(pairs[i])));
    for (int i = 0; i < count; i++) {
        scene_call(&d, &readers[i], request_read(pairs[i % PAIRS][0], &bytes[i], 1), 0, 0);
    }
    driver_park_root(&d);
    while (d.machine->in_flight < (uint64_t)count) driver_step(&d);
    driver_unpark_root(&d);
    caller *writers = calloc(1, sizeof(caller) * PAIRS);
    closer *closers = calloc(1, sizeof(closer) * PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        scene_call(&d, &writers[i], request_write(pairs[i][1], "0123456789", 10), 0, 0);
    }
    driver_park_root(&d);
    while (d.machine->in_flight > (uint64_t)count - 10 * PAIRS) driver_step(&d);
    driver_unpark_root(&d);
    for (int i = 0; i < PAIRS; i++) scene_close(&d, &closers[i], pairs[i][0], 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    int served = 0, refused = 0;
    for (int i = 0; i < count; i++) {
        if (readers[i].result == 1 && bytes[i] == '0' + i / PAIRS) served++;
        if (readers[i].result == -EBADF) refused++;
    }
    CHECK_EQUAL(10 * PAIRS, served);
    CHECK_EQUAL(count - 10 * PAIRS, refused);
    for (int i = 0; i < PAIRS; i++) close_all(&d, &pairs[i][1], 1);
    CHECK_EQUAL(0, scene_end(&d));
    free(readers);
    free(writers);
    free(closers);
    free(bytes);
    free(pairs);
}

/* --- other threads --- */

enum { SENDERS = 4, MESSAGES = 20000 };

typedef struct {
    task task;
    uint64_t got[SENDERS];
    uint32_t disorder;
    uint64_t waits;
    uint64_t open_ticket;
} receiver;

static void deliver(rs_machine *machine, const rs_message *message) {
    receiver *self = machine->user;
    if ((uint64_t)message->value != self->got[message->name]++) self->disorder++;
    if (self->open_ticket) rs_wake(machine, self->task.id, self->open_ticket, RS_WAKE_VALUE, 0);
    self->open_ticket = 0;
}

static uint64_t received(const receiver *self) {
    uint64_t total = 0;
    for (int i = 0; i < SENDERS; i++) total += self->got[i];
    return total;
}

static bool wait_for_message(task *task) {
    receiver *self = (receiver *)task;
    bool parked = task_park(task, RS_WAIT_SUSPEND, 0, RS_NEVER);
    self->open_ticket = task->ticket;
    self->waits++;
    return parked;
}

static void receiver_step(task *task) {
    receiver *self = (receiver *)task;
    TASK_BEGIN(task);
    while (received(self) < (uint64_t)SENDERS * MESSAGES) {
        TASK_WAIT(task, wait_for_message(task));
    }
    TASK_END(task);
}

typedef struct {
    rs_machine *machine;
    int number;
} sender;

static void *send_all(void *argument) {
    sender *self = argument;
    for (int i = 0; i < MESSAGES; i++) {
        rs_message *message = calloc(1, sizeof(*message));
        *message = (rs_message){.kind = RS_MESSAGE_USER, .name = (uint64_t)self->number, .value = i};
        rs_send(self->machine, message);
        /* Long enough for the machine to fall asleep now and then. */
        if (i % 500 == 0) usleep(200);
    }
    return NULL;
}

OVER_BACKENDS(messages_from_other_threads) {
    driver d;
    receiver receiver = {0};
    sender senders[SENDERS];
    pthread_t threads[SENDERS];
    subject_open(&d, subject);
    d.patient = true;
    d.machine->user = &receiver;
    d.machine->driver.on_message = deliver;
    driver_spawn(&d, NULL, &receiver.task, receiver_step);
    driver_park_root(&d);
    CHECK_EQUAL(RS_RUN, driver_step(&d));
    driver_unpark_root(&d);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (sender){d.machine, i};
        pthread_create(&threads[i], NULL, send_all, &senders[i]);
    }
    driver_run(&d);
    for (int i = 0; i < SENDERS; i++) pthread_join(threads[i], NULL);
    CHECK_EQUAL(0, receiver.disorder);
    CHECK_EQUAL(SENDERS * MESSAGES, d.machine->metrics.messages);
    CHECK(receiver.waits > 0);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Sent before the machine said that it sleeps, so nobody wakes it. */
OVER_BACKENDS(a_message_before_the_sleep_ends_it) {
    driver d;
    subject_open(&d, subject);
    int64_t start_ns = rs_now(d.machine);
    driver_park_root(&d);
    rs_send(d.machine, calloc(1, sizeof(rs_message)));
    rs_sleep(d.machine, start_ns + 2 * SECOND);
    CHECK(rs_now(d.machine) < start_ns + SECOND);
    rs_message *message = rs_inbox_take(&d.machine->inbox);
    CHECK(message != NULL);
    free(message);
    driver_unpark_root(&d);
    CHECK_EQUAL(0, scene_end(&d));
}

/* --- verdicts and fairness --- */

static void wait_for_ever(task *task) {
    TASK_BEGIN(task);
    TASK_WAIT(task, task_park(task, RS_WAIT_SUSPEND, 0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, task->wake);
    TASK_END(task);
}

OVER_BACKENDS(a_deadlock_is_found) {
    driver d;
    task stuck = {0};
    subject_open(&d, subject);
    driver_spawn(&d, NULL, &stuck, wait_for_ever);
    CHECK_EQUAL(RS_DEADLOCK, driver_run(&d));
    /* It is a finding and not the end: a cancellation lets it go on. */
    rs_scope_cancel(d.machine, &stuck.strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    int pair[2];
    char byte;
    caller reader = {0};
    scene_ask(&d, request_pipe(pair));
    scene_call(&d, &reader, request_read(pair[0], &byte, 1), 0, 0);
    driver_park_root(&d);
    CHECK_EQUAL(RS_RUN, driver_step(&d));
    /* A read that nobody will answer: only in a closed world can that be known. */
    CHECK_EQUAL(is_sim(subject) ? RS_DEADLOCK : RS_SLEEP, rs_next(d.machine).verdict);
    rs_scope_cancel(d.machine, &reader.task.strand->own, RS_CANCELLED_BY_CALL);
    driver_unpark_root(&d);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

static bool enough;

static void yielder_step(task *task) {
    rs_machine *machine = task->driver->machine;
    /* The simulated clock stands while strands run. */
    if (machine->backend == &rs_backend_sim) rs_sim_advance(machine, US);
    TASK_BEGIN(task);
    while (!enough) {
        TASK_WAIT(task, task_yield(task));
    }
    TASK_END(task);
}

typedef struct {
    task task;
    int fd;
    char byte;
    int64_t slept_ns;
    int64_t got;
} patient;

static void patient_step(task *task) {
    patient *self = (patient *)task;
    rs_request read = request_read(self->fd, &self->byte, 1);
    TASK_BEGIN(task);
    self->slept_ns = rs_now(task->driver->machine);
    TASK_WAIT(task, task_sleep(task, 10 * MS));
    self->slept_ns = rs_now(task->driver->machine) - self->slept_ns;
    TASK_WAIT(task, task_request(task, &read, RS_NEVER));
    self->got = task->result;
    enough = true;
    TASK_END(task);
}

OVER_BACKENDS(yielding_strands_starve_nobody) {
    driver d;
    task yielders[2] = {0};
    patient patient = {0};
    caller writer = {0};
    int pair[2];
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    enough = false;
    patient.fd = pair[0];
    driver_spawn(&d, NULL, &patient.task, patient_step);
    scene_call(&d, &writer, request_write(pair[1], "x", 1), 20 * MS, 0);
    for (int i = 0; i < 2; i++) driver_spawn(&d, NULL, &yielders[i], yielder_step);
    driver_run(&d);
    CHECK(patient.slept_ns >= 10 * MS);
    if (is_sim(subject)) CHECK(patient.slept_ns < 10 * MS + 300 * US);
    CHECK_EQUAL(1, patient.got);
    CHECK(yielders[0].runs > 100);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return test_main(argc, argv);
}
