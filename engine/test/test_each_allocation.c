/* Each allocation of the engine is refused in turn: once alone, and once with all that come after it. The same scene runs again and
 * again, until nothing of it is refused. It may not end the process, hang, or leave anything behind, and what is asked for does
 * what it is for, or tells that it does not. */
#include "test.h"

#include "flow/channels.h"
#include "ringspun/flow/branches.h"
#include "ringspun/flow/queue.h"
#include "ringspun/flow/write_queue.h"
#include "ringspun/kernel/resolve.h"
#include "ringspun/procs/batch.h"
#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

/* More than any scene here has; one that goes on for ever ends there. */
enum { ALLOCATIONS_MAX = 500 };
/* Instead of the result of a request. */
enum { REFUSED = -100000 };

static struct {
    int64_t granted;            /* before the first that is refused */
    uint64_t refused;
    bool reached;               /* the scene has had one that was refused */
} plan;

static void refuse(void) {
    rs_refusals_left = plan.refused;
    rs_tries_left = plan.granted;
}

static void refuse_no_more(void) {
    if (rs_refusals_left != plan.refused) plan.reached = true;
    rs_tries_left = -1;
    rs_refusals_left = UINT64_MAX;
}

static void for_each_allocation(void (*scene)(const void *subject), const void *subject) {
    static const uint64_t numbers[] = {1, UINT64_MAX - 1};
    for (int i = 0; i < 2; i++) {
        plan.refused = numbers[i];
        for (plan.granted = 0; plan.granted < ALLOCATIONS_MAX && test_failures == 0; plan.granted++) {
            plan.reached = false;
            scene(subject);
            if (!plan.reached) break;
        }
        CHECK(plan.granted > 0 && plan.granted < ALLOCATIONS_MAX);
        if (test_failures == 0) continue;
        printf("  with %lld granted, and %s\n", (long long)plan.granted, i == 0 ? "one refused" : "then none");
        return;
    }
}

/* --- a machine --- */

static void open_and_close(const void *one) {
    const subject *subject = one;
    rs_options options = rs_default_options();
    options.trace = true;
    options.faults = subject->faults;
    refuse();
    rs_machine *machine = rs_machine_new();
    int error = machine ? rs_machine_open(machine, subject->backend, &options) : RS_NO_MEMORY;
    refuse_no_more();
    CHECK_EQUAL(plan.reached ? RS_NO_MEMORY : 0, error);
    if (!machine) return;
    CHECK_EQUAL(error == 0, rs_machine_was_opened(machine));
    if (error) CHECK_EQUAL(0, rs_machine_open(machine, subject->backend, &options));
    rs_machine_close(machine);
    rs_machine_free(machine);
}

OVER_BACKENDS(a_machine) {
    int descriptors = scene_open_descriptors();
    for_each_allocation(open_and_close, subject);
    CHECK_DESCRIPTORS(descriptors);
}

/* --- requests --- */

typedef struct asker {
    task task;
    rs_request request;
    char bytes[8];
    int64_t result;
    struct asker *cancels;      /* at its end */
    struct asker *served;       /* cancelled as well if this one was refused */
} asker;

static void cancel(const asker *self) {
    if (self && self->task.strand) rs_scope_cancel(self->task.driver->machine, &self->task.strand->own, RS_CANCELLED_BY_CALL);
}

static void cancel_others(const asker *self) {
    cancel(self->cancels);
    if (self->result == REFUSED) cancel(self->served);
}

static int64_t result_of(const task *task) {
    if (task->wake != RS_WAKE_VALUE) return task->wake == RS_WAKE_CANCEL ? -ECANCELED : REFUSED;
    bool refused = task->result == RS_NO_MEMORY || task->result == -ENOMEM || task->result == -ENOSPC;
    return refused ? REFUSED : task->result;
}

static void ask_step(task *task) {
    asker *self = (asker *)task;
    TASK_BEGIN(task);
    task->copy_bytes_to = self->bytes;
    TASK_WAIT(task, task_request(task, &self->request, RS_NEVER));
    self->result = result_of(task);
    cancel_others(self);
    TASK_END(task);
}

/* As driver_spawn, where there may be no memory for a strand. */
static void begin(driver *d, asker *self, rs_request request) {
    self->request = request;
    self->result = REFUSED;
    rs_strand *strand = rs_spawn(d->machine, &rs_running(d->machine)->own, &self->task);
    if (!strand) {
        free(request.owned);
        cancel_others(self);
        return;
    }
    self->task = (task){.driver = d, .step = ask_step, .strand = strand, .id = rs_strand_id(strand)};
    d->unfinished++;
}

static int64_t ask(driver *d, rs_request request) {
    asker self = {.result = REFUSED};
    begin(d, &self, request);
    CHECK_EQUAL(RS_RUN, driver_run(d));
    return self.result;
}

/* Whether it was done. */
static bool does(driver *d, rs_request request, int64_t expected) {
    int64_t result = ask(d, request);
    if (result != REFUSED) CHECK_EQUAL(expected, result);
    return result == expected;
}

/* A descriptor; -1: it was refused. */
static int make(driver *d, rs_request request) {
    int64_t fd = ask(d, request);
    CHECK(fd >= 0 || fd == REFUSED);
    return fd >= 0 ? (int)fd : -1;
}

static rs_request read_into_any(int fd) {
    return (rs_request){.kind = RS_OP_READ, .fd = fd, .options = RS_REQUEST_ANY_BUFFER, .transfer = {.len = 2, .offset = -1}};
}

static void use_pipe(driver *d, int *pair) {
    if (!does(d, request_pipe(pair), 0)) return;
    if (!does(d, request_write(pair[1], "ab", 2), 2)) return;
    does(d, request_poll(pair[0], POLLIN), POLLIN);
    does(d, read_into_any(pair[0]), 2);
}

/* One waits until the bytes come, and one for what never comes. */
static void wait_at_sockets(driver *d, int *pair) {
    asker reader = {.result = REFUSED}, poller = {.result = REFUSED}, writer = {.cancels = &poller, .served = &reader};
    if (!does(d, request_socketpair(pair), 0)) return;
    begin(d, &reader, read_into_any(pair[0]));
    begin(d, &poller, request_poll(pair[1], POLLIN));
    begin(d, &writer, request_write(pair[1], "ab", 2));
    CHECK_EQUAL(RS_RUN, driver_run(d));
    CHECK(writer.result == 2 || writer.result == REFUSED);
    CHECK(poller.result == -ECANCELED || poller.result == REFUSED);
    CHECK(reader.result == REFUSED || reader.result == (writer.result == 2 ? 2 : -ECANCELED));
    if (reader.result == 2) CHECK(memcmp(reader.bytes, "ab", 2) == 0);
}

static void connect_sockets(driver *d, int *sockets, const char *path) {
    sockets[0] = make(d, request_socket());
    if (sockets[0] < 0 || !does(d, request_bind(sockets[0], path), 0) || !does(d, request_listen(sockets[0], 1), 0)) return;
    sockets[1] = make(d, request_socket());
    if (sockets[1] < 0 || !does(d, request_connect(sockets[1], path), 0)) return;
    sockets[2] = make(d, request_accept(sockets[0]));
}

static int use_file(driver *d, const char *path) {
    int fd = make(d, request_open(path, O_RDWR | O_CREAT));
    if (fd < 0) return fd;
    does(d, request_write(fd, "ab", 2), 2);
    does(d, request_fsync(fd), 0);
    does(d, (rs_request){.kind = RS_OP_FTRUNCATE, .fd = fd, .truncate.size = 100}, 0);
    does(d, request_statx(fd), 0);
    return fd;
}

static void look_up(driver *d) {
    rs_lookup *lookup = calloc(1, sizeof(*lookup));
    strcpy(lookup->host, "localhost");
    int64_t found = ask(d, (rs_request){.kind = RS_OP_RESOLVE, .fd = -1, .owned = lookup, .resolve.lookup = lookup});
    CHECK(found > 0 || found == REFUSED);
}

static void close_those(driver *d, const int *descriptors, int count) {
    for (int i = 0; i < count; i++) {
        if (descriptors[i] >= 0) CHECK_EQUAL(0, scene_ask(d, request_close(descriptors[i])));
    }
}

static const char *folder;

static void requests(const void *one) {
    const subject *subject = one;
    const char *file = subject_path(folder, "file"), *server = subject_path(folder, "server");
    int descriptors[] = {-1, -1, -1, -1, -1, -1, -1, -1};
    driver d;
    subject_open(&d, subject);
    refuse();
    use_pipe(&d, descriptors);
    wait_at_sockets(&d, descriptors + 2);
    connect_sockets(&d, descriptors + 4, server);
    descriptors[7] = use_file(&d, file);
    if (is_kernel(subject)) look_up(&d);
    refuse_no_more();
    close_those(&d, descriptors, sizeof(descriptors) / sizeof(descriptors[0]));
    subject_rest(&d);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(file);
    unlink(server);
}

OVER_BACKENDS(all_that_is_asked_of_a_kernel) {
    int descriptors = scene_open_descriptors();
    folder = subject_folder();
    for_each_allocation(requests, subject);
    rmdir(folder);
    CHECK_DESCRIPTORS(descriptors);
}

/* --- what knows no kernel --- */

static uint64_t calls;
static void call(uintptr_t data) { calls += data; }

static void use_queue(rs_machine *machine) {
    rs_queue queue = {0};
    uint64_t value = 0;
    rs_queue_answer answer = rs_queue_push(machine, &queue, 7);
    CHECK(answer == RS_QUEUE_DONE || answer == RS_QUEUE_NO_MEMORY);
    CHECK_EQUAL(answer == RS_QUEUE_DONE ? RS_QUEUE_DONE : RS_QUEUE_WAITS, rs_queue_pop(machine, &queue, &value));
    rs_queue_free(&queue);
}

static void select_from(rs_machine *machine, rs_channel *channel) {
    rs_branches branches;
    rs_branches_open(machine, &branches);
    rs_branch given = {.kind = RS_BRANCH_POP_CHANNEL, .from = channel};
    CHECK_EQUAL(rs_branches_add(&branches, &given, NULL) != NULL, branches.used_len);
    rs_branches_close(&branches);
    rs_branches_free(&branches);
}

static void use_channel(rs_machine *machine) {
    rs_channel *channel = rs_channel_new(1);
    if (!channel) return;
    rs_channel_answer answer = rs_channel_push(channel, machine, 7, NULL);
    CHECK(answer == RS_CHANNEL_DONE || answer == RS_CHANNEL_NO_MEMORY);
    CHECK_EQUAL(answer == RS_CHANNEL_DONE, rs_channel_len(channel));
    rs_channel_waiter *waiter = rs_channel_waiter_new(NULL, RS_NO_ID, 0);
    if (waiter) rs_channel_waiter_free(waiter);
    select_from(machine, channel);
    CHECK_EQUAL(1, channel->references);
    rs_channel_release(channel);
}

static void use_scopes(rs_machine *machine) {
    enum { DEPTH = 100 };
    static rs_scope scopes[DEPTH];
    int opened = 0;
    while (opened < DEPTH && rs_reserve_timer(machine)) {
        rs_scope_open(machine, &scopes[opened++], rs_now(machine) + SECOND, false);
    }
    if (opened > 0) rs_scope_arm(machine, &scopes[opened - 1]);
    CHECK_EQUAL(opened, machine->timers.len);
    while (opened > 0) rs_scope_close(machine, &scopes[--opened]);
}

static void parts(const void *one) {
    driver d;
    subject_open(&d, one);
    calls = 0;
    refuse();
    use_queue(d.machine);
    use_channel(d.machine);
    use_scopes(d.machine);
    bool called = rs_call_at_tick_end(d.machine, call, 1);
    bool has_batch = rs_batch_reserve(d.machine, sizeof(uint64_t));
    refuse_no_more();
    CHECK(rs_batch_reserve(d.machine, sizeof(uint64_t)) || !has_batch);
    rs_flush(d.machine);
    CHECK_EQUAL(called, calls);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER(all_that_knows_no_kernel, is_sim) { for_each_allocation(parts, subject); }

int main(int argc, char **argv) { return test_main(argc, argv); }
