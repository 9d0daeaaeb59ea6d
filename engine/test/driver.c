#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

int driver_open(driver *driver, const rs_backend *backend, const rs_options *options) {
    memset(driver, 0, sizeof(*driver));
    driver->machine = rs_machine_new();
    RS_ASSERT(driver->machine != NULL);
    int error = rs_machine_open(driver->machine, backend, options);
    if (error) return error;
    driver->root = rs_strand_id(rs_running(driver->machine));
    return 0;
}

void driver_close(driver *driver) {
    rs_machine_close(driver->machine);
    rs_machine_free(driver->machine);
}

void driver_park_root(driver *driver) {
    driver->root_ticket = rs_park_begin(driver->machine, RS_WAIT_SUSPEND, RS_PARK_SHIELDED, RS_NEVER);
    RS_ASSERT(driver->root_ticket != 0);
}

static void copy_answer(const task *self, const rs_request *request) {
    if (self->copy_answer_to && self->wake == RS_WAKE_VALUE) *self->copy_answer_to = *request->statx.answer;
}

static void copy_bytes(const task *self, const rs_request *request) {
    bool some = (request->options & RS_REQUEST_ANY_BUFFER) && self->wake == RS_WAKE_VALUE && self->result > 0;
    if (some) memcpy(self->copy_bytes_to, request->transfer.address, (size_t)self->result);
}

void driver_resume(driver *driver, rs_strand *strand) {
    task *self = strand->user;
    driver->current = self;
    RS_ASSERT(self && !self->finished && self->id == rs_strand_id(strand));
    self->runs++;
    if (self->parked) {
        RS_ASSERT(strand->ticket == self->ticket && "resumed by the wake of this wait and no other");
        self->parked = false;
        self->wake = rs_park_end(driver->machine, &self->result);
        if (self->op) {
            copy_bytes(self, &self->op->request);
            copy_answer(self, &self->op->request);
            rs_op_end(driver->machine, self->op);
        }
        self->op = NULL;
    }
    self->step(self);
    RS_ASSERT(driver->machine->running == RS_NO_INDEX && "a step ends by waiting or finishing");
    driver->current = NULL;
}

/* The root goes to the end of the run queue like any other; those before it run first. */
void driver_unpark_root(driver *driver) {
    rs_machine *machine = driver->machine;
    bool woken = rs_wake(machine, driver->root, driver->root_ticket, RS_WAKE_VALUE, 0);
    RS_ASSERT(woken);
    for (;;) {
        rs_decision decision = rs_next(machine);
        RS_ASSERT(decision.verdict == RS_RUN && "the root is ready, so something can run");
        if (decision.strand->index == rs_id_index(driver->root)) break;
        driver_resume(driver, decision.strand);
    }
    rs_park_end(machine, NULL);
}

rs_verdict driver_step(driver *driver) {
    rs_decision decision = rs_next(driver->machine);
    if (decision.verdict == RS_RUN) driver_resume(driver, decision.strand);
    else if (decision.verdict == RS_SLEEP) rs_sleep(driver->machine, decision.deadline_ns);
    else if (driver->patient) rs_sleep(driver->machine, RS_NEVER);
    return decision.verdict;
}

rs_verdict driver_run(driver *driver) {
    driver_park_root(driver);
    rs_verdict verdict = RS_RUN;
    while (driver->unfinished > 0) {
        verdict = driver_step(driver);
        if (verdict == RS_DEADLOCK && !driver->patient) break;
    }
    driver_unpark_root(driver);
    return driver->unfinished > 0 ? RS_DEADLOCK : RS_RUN;
}

static int64_t stopped_at_ns;

static int64_t stopped_clock(rs_machine *machine) {
    (void)machine;
    return stopped_at_ns;
}

void driver_stop_clock(driver *driver) {
    if (driver->machine->clock) return;
    stopped_at_ns = driver->machine->polled_at_ns;
    driver->machine->clock = stopped_clock;
}

void driver_start_clock(driver *driver) {
    if (driver->machine->clock == stopped_clock) driver->machine->clock = NULL;
}

void driver_spawn(driver *driver, rs_scope *scope, task *task, task_step step) {
    rs_machine *machine = driver->machine;
    if (!scope) scope = &rs_strand_at(&machine->strands, rs_id_index(driver->root))->own;
    rs_strand *strand = rs_spawn(machine, scope, task);
    RS_ASSERT(strand != NULL);
    task->driver = driver;
    task->strand = strand;
    task->id = rs_strand_id(strand);
    task->step = step;
    task->line = 0;
    task->finished = false;
    driver->unfinished++;
}

void task_finish(task *self) {
    rs_finish(self->driver->machine);
    self->finished = true;
    self->strand = NULL;
    self->driver->unfinished--;
}

bool task_yield(task *self) {
    rs_yield(self->driver->machine);
    self->parked = true;
    self->ticket = self->strand->ticket;
    return true;
}

bool task_park(task *self, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns) {
    rs_machine *machine = self->driver->machine;
    self->ticket = rs_park_begin(machine, wait, flags, deadline_ns);
    self->parked = self->ticket != 0;
    if (!self->parked) {
        self->wake = machine->refusal;
        self->result = 0;
    }
    return self->parked;
}

bool task_sleep(task *self, int64_t delay_ns) {
    int64_t deadline_ns = rs_deadline_after(rs_now(self->driver->machine), delay_ns);
    return task_park(self, RS_WAIT_SLEEP, 0, deadline_ns);
}

bool task_wait_in(task *self, rs_list *list, uint64_t tag, int64_t deadline_ns) {
    if (!task_park(self, RS_WAIT_LIST, 0, deadline_ns)) return false;
    rs_list_append(self->driver->machine, list, self->strand, tag);
    return true;
}

bool task_join(task *self, rs_id id, uint32_t flags) {
    rs_machine *machine = self->driver->machine;
    rs_strand *target = rs_strand_find(&machine->strands, id);
    self->wake = RS_WAKE_VALUE;
    if (!target) return false;
    if (!task_park(self, RS_WAIT_JOIN, flags, RS_NEVER)) return false;
    rs_list_append(machine, &target->joiners, self->strand, 0);
    return true;
}

bool task_wait_for_scope(task *self, rs_scope *scope, uint32_t flags) {
    self->wake = RS_WAKE_VALUE;
    if (scope->live == 0) return false;
    if (!task_park(self, RS_WAIT_SCOPE, flags, RS_NEVER)) return false;
    rs_list_append(self->driver->machine, &scope->waiters, self->strand, 0);
    return true;
}

static bool start(task *self, const rs_request *request, uint32_t flags, int64_t deadline_ns) {
    rs_machine *machine = self->driver->machine;
    /* A try is one step; what must go through as a whole is the backend's to repeat. And it wants memory. */
    bool lends = request->options & RS_REQUEST_ANY_BUFFER && !request->transfer.address;
    rs_request asked = *request;
    int64_t result = request->options & RS_REQUEST_ALL || lends ? -EAGAIN : rs_ask(machine, &asked);
    if (result != -EAGAIN) {
        self->wake = RS_WAKE_VALUE;
        self->result = result;
        copy_answer(self, request);
        free(request->owned);
        return false;
    }
    self->op = rs_op_start(machine, &asked, flags, deadline_ns);
    if (self->op) {
        self->ticket = self->op->ticket;
        self->parked = true;
        return true;
    }
    self->wake = machine->refusal;
    self->result = 0;
    free(request->owned);
    return false;
}

bool task_request(task *self, const rs_request *request, int64_t deadline_ns) {
    return start(self, request, 0, deadline_ns);
}

bool task_request_shielded(task *self, const rs_request *request) {
    return start(self, request, RS_PARK_SHIELDED, RS_NEVER);
}

bool task_wait_shielded_in(task *self, rs_list *list) {
    if (!task_park(self, RS_WAIT_LIST, RS_PARK_SHIELDED, RS_NEVER)) return false;
    rs_list_append(self->driver->machine, list, self->strand, 0);
    return true;
}

bool task_wait_for_ops(task *self) { return task_wait_shielded_in(self, &rs_descriptors_in(self->driver->machine)->closers); }

/* --- requests --- */

rs_request request_read(int fd, void *bytes, uint64_t len) {
    return (rs_request){.kind = RS_OP_READ, .fd = fd, .transfer = {.address = bytes, .len = len, .offset = -1}};
}

rs_request request_write(int fd, const void *bytes, uint64_t len) {
    return (rs_request){.kind = RS_OP_WRITE, .fd = fd,
                        .transfer = {.address = (void *)(uintptr_t)bytes, .len = len, .offset = -1}};
}

rs_request request_recv(int fd, void *bytes, uint64_t len) {
    return (rs_request){.kind = RS_OP_RECV, .fd = fd, .transfer = {.address = bytes, .len = len, .offset = -1}};
}

rs_request request_send(int fd, const void *bytes, uint64_t len) {
    return (rs_request){.kind = RS_OP_SEND, .fd = fd,
                        .transfer = {.address = (void *)(uintptr_t)bytes, .len = len, .offset = -1}};
}

rs_request request_close(int fd) { return (rs_request){.kind = RS_OP_CLOSE, .fd = fd}; }

rs_request request_pipe(int pair[2]) { return (rs_request){.kind = RS_OP_PIPE, .fd = -1, .pipe.pair = pair}; }

rs_request request_socketpair(int pair[2]) {
    return (rs_request){.kind = RS_OP_SOCKETPAIR, .fd = -1, .socket = {.family = AF_UNIX, .type = SOCK_STREAM, .pair = pair}};
}

rs_request request_socket(void) {
    return (rs_request){.kind = RS_OP_SOCKET, .fd = -1, .socket = {.family = AF_UNIX, .type = SOCK_STREAM}};
}

rs_request request_listen(int fd, uint32_t backlog) {
    return (rs_request){.kind = RS_OP_LISTEN, .fd = fd, .listen.backlog = backlog};
}

rs_request request_accept(int fd) { return (rs_request){.kind = RS_OP_ACCEPT, .fd = fd}; }

rs_request request_poll(int fd, uint32_t events) { return (rs_request){.kind = RS_OP_POLL, .fd = fd, .poll.events = events}; }

rs_request request_open(const char *path, uint32_t flags) {
    return (rs_request){.kind = RS_OP_OPEN, .fd = -1, .open = {.path = path, .flags = flags, .mode = 0600}};
}

rs_request request_fsync(int fd) { return (rs_request){.kind = RS_OP_FSYNC, .fd = fd}; }

static rs_request with_address(rs_op_kind kind, int fd, const char *path) {
    struct sockaddr_un *address = calloc(1, sizeof(*address));
    RS_ASSERT(address && strlen(path) < sizeof(address->sun_path));
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, path);
    return (rs_request){.kind = (uint8_t)kind, .fd = fd, .owned = address,
                        .address = {.bytes = address, .len = sizeof(*address)}};
}

rs_request request_bind(int fd, const char *path) { return with_address(RS_OP_BIND, fd, path); }

rs_request request_connect(int fd, const char *path) { return with_address(RS_OP_CONNECT, fd, path); }

rs_request request_statx(int fd) {
    struct statx *answer = calloc(1, sizeof(*answer));
    RS_ASSERT(answer);
    return (rs_request){.kind = RS_OP_STATX, .fd = fd, .owned = answer,
                        .statx = {.answer = answer, .mask = STATX_BASIC_STATS, .flags = AT_EMPTY_PATH}};
}
