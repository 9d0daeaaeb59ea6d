/* Random programs, each from a seed, on the backend on io_uring above a kernel that misbehaves.
 *
 *     test_uring_faults                 a few hundred seeds
 *     test_uring_faults --seeds 10000   that many
 *     test_uring_faults --from 500      from that seed on
 *     test_uring_faults --seed 42       that one again
 *
 * Strands write to pipes and sockets, read from them, poll them, connect and accept, with deadlines or until somebody
 * closes or cancels. Each byte says who wrote it and which of its writer's bytes it is, so none can be lost, doubled or
 * overtaken unseen.
 */
#include "driver.h"
#include "fake_kernel.h"
#include "scene.h"
#include "ringspun/flow/accept_queue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SEEDS_DEFAULT 500
#define FAILURES_MAX 5
#define SECONDS_PER_SEED 60

#define PAIRS_MAX 3
#define WRITERS 2
#define WORKERS_MAX 64
#define BYTES_MAX 3000

typedef struct {
    int fd;
    bool closed;                /* or about to be */
    bool gone;
} end;

/* Bytes one way through a pair. */
typedef struct {
    end *from, *to;
    bool pipe;
    bool closes;                /* somebody will close one of its ends */
    uint32_t readers;
    uint8_t sent[WRITERS], received[WRITERS];
    uint64_t sent_bytes, received_bytes;
} way;

typedef enum { READER, WRITER, POLLER, CLOSER, CANCELLER, WAITER, ACCEPTOR, SERVER } role;

typedef struct {
    task task;
    role role;
    way *way;
    end *end;
    rs_accept_queue *queue;
    uint32_t rounds;
    uint32_t writer;
    uint8_t *bytes;
    uint32_t len;
} worker;

static struct {
    driver driver;
    end ends[PAIRS_MAX * 2], listener;
    struct sockaddr_un address;
    socklen_t address_len;
    way ways[PAIRS_MAX * 2];
    uint32_t way_count;
    worker workers[WORKERS_MAX];
    uint32_t worker_count;
    uint64_t ops;
    char failure[160];
} program;

static volatile uint64_t current_seed;
static const char *program_name;

static uint32_t draw(uint64_t below) { return (uint32_t)fake_kernel_draw(below); }

static void fail(const char *what, uint64_t value, uint64_t expected) {
    if (program.failure[0]) return;
    snprintf(program.failure, sizeof(program.failure), "%s: %llu, not %llu", what, (unsigned long long)value,
             (unsigned long long)expected);
}

/* --- bytes --- */

static void fill(worker *self) {
    self->len = 1 + draw(draw(3) ? 60 : BYTES_MAX);
    self->bytes = malloc(self->len);
    for (uint32_t i = 0; i < self->len; i++) {
        self->bytes[i] = (uint8_t)(self->writer << 7 | ((self->way->sent[self->writer] + i) & 127));
    }
}

static void note_sent(worker *self, int64_t result) {
    self->way->sent[self->writer] += (uint8_t)result;
    self->way->sent_bytes += (uint64_t)result;
}

static void note_received(way *way, const uint8_t *bytes, int64_t len) {
    for (int64_t i = 0; i < len; i++) {
        uint32_t writer = bytes[i] >> 7;
        uint8_t expected = way->received[writer]++ & 127;
        if ((bytes[i] & 127) != expected) fail("a byte out of order", bytes[i] & 127, expected);
    }
    way->received_bytes += (uint64_t)len;
}

/* --- strands --- */

/* A try of its own would overtake another reader, who has got bytes and has not run since. */
static bool may_try(const worker *self) { return self->role != READER || self->way->readers == 1; }

static bool start(worker *self, rs_request *request, bool endless) {
    rs_machine *machine = program.driver.machine;
    task *task = &self->task;
    int64_t deadline_ns = endless ? RS_NEVER : rs_now(machine) + 1 + draw(draw(2) ? 20 * US : 2 * MS);
    program.ops++;
    if (draw(3) == 0) request->options |= RS_REQUEST_OF_OBJECT;
    bool own = !(request->options & RS_REQUEST_ANY_BUFFER);
    if (own && may_try(self) && draw(2)) return task_request(task, request, deadline_ns);
    task->op = rs_op_start(machine, request, 0, deadline_ns);
    task->parked = task->op != NULL;
    task->wake = machine->refusal;
    task->result = 0;
    if (task->op) task->ticket = task->op->ticket;
    return task->parked;
}

static void check_error(const worker *self) {
    int64_t error = self->task.result;
    if (self->task.wake != RS_WAKE_VALUE || error >= 0) return;
    bool known = error == -ENOBUFS || error == -EACCES || error == -EPIPE || error == -ECONNRESET || error == -EBADF;
    if (!known) fail("an error that nothing explains", (uint64_t)-error, 0);
}

static bool moved(const worker *self) { return self->task.wake == RS_WAKE_VALUE && self->task.result > 0; }
static bool was_cancelled(const worker *self) { return self->task.wake == RS_WAKE_CANCEL; }

static void release(worker *self) {
    free(self->bytes);
    self->bytes = NULL;
}

static rs_request read_request(worker *self) {
    self->len = 1 + draw(draw(3) ? 60 : BYTES_MAX);
    self->bytes = malloc(self->len);
    rs_request request = request_read(self->way->to->fd, self->bytes, self->len);
    if (!self->way->pipe && draw(2)) request.kind = RS_OP_RECV;
    if (draw(4) == 0) {
        request.options = RS_REQUEST_ALL;
    } else if (draw(3) == 0) {
        request.options = RS_REQUEST_ANY_BUFFER;
        request.transfer.address = NULL;
        self->task.copy_bytes_to = self->bytes;
    }
    return request;
}

static rs_request write_request(worker *self) {
    fill(self);
    rs_request request = request_write(self->way->from->fd, self->bytes, self->len);
    if (!self->way->pipe && draw(2)) request.kind = RS_OP_SEND;
    if (draw(2)) request.options = RS_REQUEST_ALL;
    return request;
}

static void reader_step(task *task) {
    worker *self = (worker *)task;
    rs_request request;
    TASK_BEGIN(task);
    while (self->rounds-- > 0 && !self->way->to->closed) {
        request = read_request(self);
        TASK_WAIT(task, start(self, &request, self->way->closes && draw(2)));
        if (moved(self)) note_received(self->way, self->bytes, task->result);
        check_error(self);
        release(self);
        if (was_cancelled(self) || (task->wake == RS_WAKE_VALUE && task->result == 0)) break;
    }
    TASK_END(task);
}

static void writer_step(task *task) {
    worker *self = (worker *)task;
    rs_request request;
    TASK_BEGIN(task);
    while (self->rounds-- > 0 && !self->way->from->closed) {
        request = write_request(self);
        TASK_WAIT(task, start(self, &request, self->way->closes && draw(2)));
        if (moved(self)) note_sent(self, task->result);
        check_error(self);
        release(self);
        if (was_cancelled(self)) break;
    }
    TASK_END(task);
}

static void poller_step(task *task) {
    worker *self = (worker *)task;
    rs_request request;
    TASK_BEGIN(task);
    while (self->rounds-- > 0 && !self->end->closed) {
        request = request_poll(self->end->fd, draw(2) ? POLLIN : POLLOUT);
        TASK_WAIT(task, start(self, &request, false));
        check_error(self);
        if (was_cancelled(self)) break;
    }
    TASK_END(task);
}

static void closer_step(task *task) {
    worker *self = (worker *)task;
    rs_request request;
    TASK_BEGIN(task);
    TASK_WAIT(task, task_sleep(task, 1 + draw(5 * MS)));
    if (!self->end->closed) {
        self->end->closed = true;
        while (rs_descriptor_closing(task->driver->machine, self->end->fd) > 0) {
            TASK_WAIT(task, task_wait_for_ops(task));
        }
        request = request_close(self->end->fd);
        TASK_WAIT(task, task_request_shielded(task, &request));
        self->end->gone = true;
    }
    TASK_END(task);
}

static void canceller_step(task *task) {
    TASK_BEGIN(task);
    TASK_WAIT(task, task_sleep(task, 1 + draw(3 * MS)));
    worker *victim = &program.workers[draw(program.worker_count)];
    bool spared = victim->role == CLOSER || victim->role == CANCELLER || victim->task.finished;
    if (!spared) rs_scope_cancel(task->driver->machine, &victim->task.strand->own, RS_CANCELLED_BY_CALL);
    TASK_END(task);
}

/* Waits for another thread. */
static void waiter_step(task *task) {
    worker *self = (worker *)task;
    int64_t deadline_ns;
    TASK_BEGIN(task);
    while (self->rounds-- > 0) {
        deadline_ns = draw(2) ? rs_now(task->driver->machine) + 1 + draw(MS) : RS_NEVER;
        TASK_WAIT(task, task_park(task, RS_WAIT_SUSPEND, 0, deadline_ns));
        if (was_cancelled(self)) break;
    }
    TASK_END(task);
}

static void connect_from_outside(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    RS_ASSERT(fd >= 0);
    if (connect(fd, (struct sockaddr *)&program.address, program.address_len) < 0 && errno != EAGAIN) {
        fail("connect", (uint64_t)errno, 0);
    }
    close(fd);
}

static void acceptor_step(task *task) {
    worker *self = (worker *)task;
    rs_request request;
    TASK_BEGIN(task);
    while (self->rounds-- > 0) {
        if (draw(2)) connect_from_outside();
        request = request_accept(self->end->fd);
        TASK_WAIT(task, start(self, &request, false));
        check_error(self);
        if (task->wake == RS_WAKE_VALUE && task->result >= 0) {
            request = request_close((int)task->result);
            TASK_WAIT(task, task_request_shielded(task, &request));
        }
        if (was_cancelled(self)) break;
    }
    TASK_END(task);
}

/* True while nothing has come, and with a wait under way. */
static bool wait_in_accept_queue(worker *self) {
    rs_machine *machine = self->task.driver->machine;
    rs_accept_queue_arm(machine, self->queue);
    if (!self->queue->op || self->queue->len > 0) return false;
    return task_wait_in(&self->task, &self->queue->waiters, 0, rs_now(machine) + 1 + draw(2 * MS));
}

/* As a server that accepts ahead, until something ends its wait; then it takes what has come. */
static void server_step(task *task) {
    worker *self = (worker *)task;
    rs_request request = request_accept(self->end->fd);
    TASK_BEGIN(task);
    if (rs_accept_queue_fits(task->driver->machine, self->end->fd)) {
        self->queue = rs_accept_queue_open(task->driver->machine, &request, 1 + draw(3));
        while (self->rounds > 0 && !self->queue->shared) {
            if (draw(2)) connect_from_outside();
            task->wake = RS_WAKE_VALUE;
            TASK_WAIT(task, wait_in_accept_queue(self));
            self->rounds = task->wake == RS_WAKE_VALUE ? self->rounds - 1 : 0;
            while ((task->result = rs_accept_queue_take(self->queue)) >= 0) {
                if (draw(3) == 0) connect_from_outside();
                request = request_close((int)task->result);
                TASK_WAIT(task, task_request_shielded(task, &request));
            }
        }
        while (rs_accept_queue_stop(task->driver->machine, self->queue)) {
            TASK_WAIT(task, task_wait_shielded_in(task, &self->queue->waiters));
        }
        rs_accept_queue_close(task->driver->machine, self->queue);
    }
    TASK_END(task);
}

/* --- programs --- */

/* As another thread would: the machine is about to sleep. */
static void send_from_outside(void) {
    bool sent = false;
    for (uint32_t i = 0; i < program.worker_count; i++) {
        worker *one = &program.workers[i];
        if (one->role != WAITER || !one->task.parked || (sent && draw(2))) continue;
        sent = true;
        rs_message *message = calloc(1, sizeof(*message));
        message->kind = RS_MESSAGE_USER;
        message->name = one->task.id;
        message->value = (int64_t)one->task.ticket;
        rs_send(program.driver.machine, message);
    }
    /* And one that comes when there is nothing to do. */
    if (program.worker_count && draw(4) == 0) rs_wake_up(program.driver.machine);
}

static bool lives(uint64_t name) { return rs_op_find(rs_ops_in(program.driver.machine), name) != NULL; }

static void on_message(rs_machine *machine, const rs_message *message) {
    rs_wake(machine, message->name, (uint64_t)message->value, RS_WAKE_VALUE, 0);
}

static int64_t now(rs_machine *machine) {
    (void)machine;
    return fake_kernel_now();
}

/* Who closes one asks for the end of all ops on it first. */
static bool is_open(const rs_op *op) {
    (void)op;
    return true;
}

/* The kernel runs in this thread, by a clock of its own. Beside busy processes each look that gave way would take milliseconds. */
static void give_way_to_nobody(void) {}

static void open_program(void) {
    static rs_backend backend;
    backend = rs_backend_uring;
    backend.give_way = give_way_to_nobody;
    rs_options options = rs_default_options();
    options.uring_system = &fake_kernel_system;
    options.threads_move = draw(2);
    options.sqpoll = draw(3) == 0;
    options.stream_io = draw(3);
    options.busy_poll_ns = draw(2) ? 50000 : 0;
    RS_ASSERT(driver_open(&program.driver, &backend, &options) == 0);
    program.driver.patient = true;
    program.driver.machine->sleeps.soon = draw(2) ? 16 : 0;
    rs_descriptors_in(program.driver.machine)->unix_reports_more = draw(2);
    program.driver.machine->clock = now;
    program.driver.machine->polled_at_ns = now(NULL);
    program.driver.machine->driver.on_message = on_message;
    program.driver.machine->driver.is_open = is_open;
}

static void make_way(end *from, end *to, bool pipe) {
    program.ways[program.way_count++] = (way){.from = from, .to = to, .pipe = pipe};
}

static void make_pairs(void) {
    uint32_t pairs = 1 + draw(PAIRS_MAX);
    for (uint32_t i = 0; i < pairs; i++) {
        int fds[2];
        end *ends = &program.ends[2 * i];
        bool pipe = draw(2);
        RS_ASSERT(scene_ask(&program.driver, pipe ? request_pipe(fds) : request_socketpair(fds)) == 0);
        ends[0].fd = fds[0];
        ends[1].fd = fds[1];
        make_way(&ends[1], &ends[0], pipe);
        if (!pipe) make_way(&ends[0], &ends[1], pipe);
    }
}

static void make_listener(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* The kernel chooses an abstract name. */
    sa_family_t unnamed = AF_UNIX;
    program.address_len = sizeof(program.address);
    RS_ASSERT(fd >= 0 && bind(fd, (struct sockaddr *)&unnamed, sizeof(unnamed)) == 0 && listen(fd, 8) == 0);
    RS_ASSERT(getsockname(fd, (struct sockaddr *)&program.address, &program.address_len) == 0);
    program.listener = (end){.fd = fd};
    if (draw(2)) rs_descriptor_get(rs_descriptors_in(program.driver.machine), fd)->kind = RS_FD_STREAM;
}

static void add(role role, way *way, end *end, uint32_t writer) {
    static const task_step steps[] = {reader_step, writer_step, poller_step, closer_step, canceller_step, waiter_step, acceptor_step,
                                       server_step};
    if (program.worker_count == WORKERS_MAX) return;
    worker *one = &program.workers[program.worker_count++];
    *one = (worker){.role = role, .way = way, .end = end, .writer = writer, .rounds = 1 + draw(8)};
    driver_spawn(&program.driver, NULL, &one->task, steps[role]);
}

static void add_closer(way *way) {
    end *end = draw(2) ? way->from : way->to;
    for (uint32_t i = 0; i < program.way_count; i++) {
        if (program.ways[i].from == end || program.ways[i].to == end) program.ways[i].closes = true;
    }
    add(CLOSER, NULL, end, 0);
}

static void add_workers(void) {
    for (uint32_t i = 0; i < program.way_count; i++) {
        way *way = &program.ways[i];
        if (draw(3) == 0) add_closer(way);
        for (uint32_t writer = 0, writers = 1 + draw(WRITERS); writer < writers; writer++) add(WRITER, way, NULL, writer);
        way->readers = 1 + draw(2);
        for (uint32_t n = way->readers; n > 0; n--) add(READER, way, NULL, 0);
        if (draw(3) == 0) add(POLLER, NULL, draw(2) ? way->from : way->to, 0);
    }
    for (uint32_t n = draw(3); n > 0; n--) add(WAITER, NULL, NULL, 0);
    for (uint32_t n = draw(3); n > 0; n--) add(ACCEPTOR, NULL, &program.listener, 0);
    for (uint32_t n = draw(3); n > 0; n--) add(SERVER, NULL, &program.listener, 0);
    for (uint32_t n = draw(4); n > 0; n--) add(CANCELLER, NULL, NULL, 0);
}

/* --- how a program ends --- */

static void drain(way *way) {
    uint8_t bytes[4096];
    if (way->to->closed) return;
    for (ssize_t len; (len = read(way->to->fd, bytes, sizeof(bytes))) > 0;) note_received(way, bytes, len);
    if (way->received_bytes != way->sent_bytes) fail("bytes that came through", way->received_bytes, way->sent_bytes);
}

static void check_machine(void) {
    rs_machine *machine = program.driver.machine;
    if (machine->in_flight) fail("ops in flight", machine->in_flight, 0);
    if (rs_ops_in(machine)->slab.used) fail("ops used", rs_ops_in(machine)->slab.used, 0);
    if (rs_strands_live(&machine->strands) != 1) fail("strands", rs_strands_live(&machine->strands), 1);
    if (machine->timers.len) fail("timers", machine->timers.len, 0);
}

/* The machine's thread ends in the midst of it. */
static void leave(void) {
    driver_park_root(&program.driver);
    for (uint32_t steps = draw(200); steps > 0 && program.driver.unfinished > 0; steps--) driver_step(&program.driver);
    rs_backend_uring.leave(program.driver.machine);
    for (uint32_t i = 0; i < program.worker_count; i++) release(&program.workers[i]);
}

static void close_program(void) {
    if (fake_kernel_pending()) fail("entries in the kernel", fake_kernel_pending(), 0);
    driver_close(&program.driver);
    for (uint32_t i = 0; i < PAIRS_MAX * 2; i++) {
        if (program.ends[i].fd > 0 && !program.ends[i].gone) close(program.ends[i].fd);
    }
    close(program.listener.fd);
    fake_kernel_end();
}

static bool run_seed(uint64_t seed) {
    current_seed = seed;
    alarm(SECONDS_PER_SEED);
    int before = scene_open_descriptors();
    uint64_t ops = program.ops;
    memset(&program, 0, sizeof(program));
    program.ops = ops;
    fake_kernel_begin(seed, send_from_outside, lives);
    open_program();
    make_pairs();
    make_listener();
    bool leaves = draw(8) == 0;
    fake_kernel_misbehave();
    add_workers();
    if (leaves) {
        leave();
    } else {
        driver_run(&program.driver);
        for (uint32_t i = 0; i < program.way_count; i++) drain(&program.ways[i]);
        check_machine();
    }
    close_program();
    int after = scene_open_descriptors();
    /* What an accept made in a machine that was left stays with its strand. */
    if (leaves ? after < before : after != before) fail("descriptors", (uint64_t)after, (uint64_t)before);
    const char *failure = program.failure[0] ? program.failure : fake_kernel_failure();
    if (!failure) return true;
    printf("FAILED: seed %llu: %s\n", (unsigned long long)seed, failure);
    printf("  again: %s --seed %llu\n", program_name, (unsigned long long)seed);
    return false;
}

/* A broken invariant inside the engine ends the process; the seed must not go with it. */
static void on_crash(int signal_number) {
    printf("FAILED: seed %llu\n  again: %s --seed %llu\n0 passed, 1 failed\n", (unsigned long long)current_seed,
           program_name, (unsigned long long)current_seed);
    fflush(stdout);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int main(int argc, char **argv) {
    uint64_t seeds = SEEDS_DEFAULT, from = 1;
    program_name = argv[0];
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seeds") == 0) seeds = value;
        else if (strcmp(argv[i], "--from") == 0) from = value;
        else if (strcmp(argv[i], "--seed") == 0) from = value, seeds = 1;
        else return fprintf(stderr, "unknown option %s\n", argv[i]), 2;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    signal(SIGALRM, on_crash);
    uint64_t passed = 0, failed = 0;
    for (uint64_t seed = from; seed < from + seeds && failed < FAILURES_MAX; seed++) run_seed(seed) ? passed++ : failed++;
    printf("%llu ops\n%llu passed, %llu failed\n", (unsigned long long)program.ops, (unsigned long long)passed,
           (unsigned long long)failed);
    return failed > 0;
}
