/* No memory for what callers and peers choose the number or the size of: whoever asks is told, and everything else goes on.
 * The same small program runs again and again, and each time one try more is granted before all others are refused. */
#include "test.h"

#include "ringspun/flow/write_queue.h"
#include "ringspun/flow/branches.h"
#include "flow/accept_queues.h"
#include "flow/channels.h"
#include "backend/op_line.h"
#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

/* More than the first chunk of ops, of strands and of timers holds. */
#define MANY (RS_SLAB_CHUNK + 50)
#define BYTES 5

typedef struct {
    task task;
    rs_request request;
    rs_wake_kind wake;
    int64_t result;
    char bytes[BYTES];
} asker;

static void ask_step(task *task) {
    asker *self = (asker *)task;
    TASK_BEGIN(task);
    if (self->request.options & RS_REQUEST_ANY_BUFFER) task->copy_bytes_to = self->bytes;
    TASK_WAIT(task, task_request(task, &self->request, rs_now(task->driver->machine) + 10 * SECOND));
    self->wake = task->wake;
    self->result = task->result;
    TASK_END(task);
}

static void spawn(driver *d, asker *asker, rs_request request) {
    asker->request = request;
    driver_spawn(d, NULL, &asker->task, ask_step);
}

/* The simulated kernel is refused memory as well. */
static bool was_refused(const asker *asker) {
    return asker->wake == RS_WAKE_NO_MEMORY || asker->result == RS_NO_MEMORY || asker->result == -ENOMEM;
}

static rs_request read_into_any(int fd) {
    return (rs_request){.kind = RS_OP_READ, .fd = fd, .options = RS_REQUEST_ANY_BUFFER,
                        .transfer = {.len = BYTES, .offset = -1}};
}

/* Starts all of them with so many tries granted, and answers whether one was refused. */
static bool run_many(driver *d, int64_t tries) {
    int pair[2];
    scene_ask(d, request_pipe(pair));
    asker *readers = calloc(MANY, sizeof(*readers));
    for (uint32_t i = 0; i < MANY; i++) spawn(d, &readers[i], read_into_any(pair[0]));
    driver_park_root(d);
    rs_tries_left = tries;
    for (uint32_t i = 0; i < MANY; i++) driver_step(d);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < MANY; i++) refused += readers[i].task.finished;
    bool ran_out = rs_tries_left == 0;
    rs_tries_left = -1;
    driver_unpark_root(d);
    char *bytes = calloc(MANY, BYTES);
    if (refused < MANY) CHECK_EQUAL((MANY - refused) * BYTES, scene_ask(d, request_write(pair[1], bytes, (uint64_t)(MANY - refused) * BYTES)));
    driver_run(d);
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK(readers[i].task.finished);
        CHECK(was_refused(&readers[i]) || readers[i].result == BYTES);
    }
    free(readers);
    free(bytes);
    close_all(d, pair, 2);
    return ran_out;
}

OVER_BACKENDS(ops_for_which_there_is_no_memory) {
    for (int64_t tries = 0; tries < 2 * (int64_t)MANY && test_failures == 0; tries += tries < 20 ? 1 : 37) {
        driver d;
        subject_open(&d, subject);
        bool ran_out = run_many(&d, tries);
        CHECK_EQUAL(0, scene_end(&d));
        if (!ran_out) break;
    }
}

/* What a worker does, and a poll, a splice and a change of a file. */
OVER_BACKENDS(kinds_of_ops_without_memory) {
    for (int64_t tries = 0; tries < 100 && test_failures == 0; tries++) {
        driver d;
        int pair[2];
        char text[] = "text";
        subject_open(&d, subject);
        scene_ask(&d, request_pipe(pair));
        char path[] = "/tmp/ringspun-memory-test";
        int64_t file = scene_ask(&d, request_open(path, O_RDWR | O_CREAT));
        CHECK(file >= 0);
        asker askers[5] = {0};
        spawn(&d, &askers[0], request_fsync((int)file));
        spawn(&d, &askers[1], (rs_request){.kind = RS_OP_FTRUNCATE, .fd = (int)file, .truncate.size = 100});
        spawn(&d, &askers[2], request_poll(pair[0], POLLIN));
        spawn(&d, &askers[3], read_into_any(pair[0]));
        spawn(&d, &askers[4], request_write(pair[1], text, BYTES));
        rs_tries_left = tries;
        driver_run(&d);
        bool ran_out = rs_tries_left == 0;
        rs_tries_left = -1;
        for (int i = 0; i < 5; i++) CHECK(askers[i].task.finished);
        for (int i = 0; i < 2; i++) CHECK(was_refused(&askers[i]) || askers[i].result == 0 || askers[i].result == -ENOSPC);
        CHECK(askers[4].result == BYTES || (gives_all_away(subject) && was_refused(&askers[4])));
        close_all(&d, (int[]){(int)file, pair[0], pair[1]}, 3);
        if (subject->backend != &rs_backend_sim) unlink(path);
        CHECK_EQUAL(0, scene_end(&d));
        if (!ran_out) break;
    }
}

OVER_BACKENDS(strands_for_which_there_is_no_memory) {
    driver d;
    subject_open(&d, subject);
    uint32_t spawned = 0;
    rs_tries_left = 0;
    rs_scope *scope = &rs_running(d.machine)->own;
    rs_strand *strands[RS_SLAB_CHUNK * 2];
    while (spawned < RS_SLAB_CHUNK * 2 && (strands[spawned] = rs_spawn(d.machine, scope, NULL))) spawned++;
    CHECK(spawned < RS_SLAB_CHUNK);
    CHECK(rs_strands_live(&d.machine->strands) < d.machine->strands.slab.limit);
    rs_tries_left = -1;
    CHECK((strands[spawned++] = rs_spawn(d.machine, scope, NULL)) != NULL);
    for (uint32_t i = 0; i < spawned; i++) {
        rs_yield(d.machine);
        rs_decision decision = rs_next(d.machine);
        CHECK(decision.strand == strands[i]);
        rs_finish(d.machine);
        decision = rs_next(d.machine);
        while (decision.strand != rs_strand_find(&d.machine->strands, d.root)) {
            CHECK(decision.verdict == RS_RUN);
            rs_finish(d.machine);
            decision = rs_next(d.machine);
            i++;
        }
        rs_park_end(d.machine, NULL);
    }
    CHECK_EQUAL(0, scene_end(&d));
}

/* Each may have a deadline, whose timer is set only when somebody waits in the scope. */
OVER_BACKENDS(scopes_for_which_there_is_no_memory) {
    enum { MOST = 1000 };
    driver d;
    subject_open(&d, subject);
    rs_scope *scopes = calloc(MOST, sizeof(*scopes));
    uint32_t opened = 0;
    rs_tries_left = 0;
    for (; opened < MOST && rs_reserve_timer(d.machine); opened++) {
        rs_scope_open(d.machine, &scopes[opened], rs_now(d.machine) + 100 * SECOND, false);
    }
    CHECK(opened < MOST);
    if (opened > 0) rs_scope_arm(d.machine, &scopes[opened - 1]);
    CHECK_EQUAL(opened, d.machine->timers.len);
    rs_tries_left = -1;
    CHECK(rs_reserve_timer(d.machine));
    while (opened > 0) rs_scope_close(d.machine, &scopes[--opened]);
    free(scopes);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(a_machine_for_which_there_is_no_memory) {
    rs_options options = rs_default_options();
    options.trace = true;
    rs_tries_left = 0;
    CHECK(rs_machine_new() == NULL);
    rs_tries_left = -1;
    rs_machine *machine = rs_machine_new();
    size_t bytes = rs_machine_bytes(machine);
    for (int64_t tries = 0; tries < 3; tries++) { /* the ring of its trace, the root strand, its timer */
        rs_tries_left = tries;
        CHECK_EQUAL(RS_NO_MEMORY, rs_machine_open(machine, subject->backend, &options));
        CHECK(!rs_machine_was_opened(machine));
        CHECK_EQUAL(bytes, rs_machine_bytes(machine));
    }
    rs_tries_left = -1;
    rs_machine_free(machine);
}

/* A number that is open, but larger than the table is. */
OVER_KERNELS(a_descriptor_for_which_there_is_no_memory) {
    driver d;
    int pair[2];
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    int large = fcntl(pair[0], F_DUPFD_CLOEXEC, 700);
    CHECK(large >= 700);
    rs_tries_left = 2; /* for the first chunk of ops */
    CHECK_EQUAL(RS_NO_MEMORY, scene_ask(&d, request_poll(large, POLLIN)));
    rs_tries_left = -1;
    caller poller = {0};
    scene_call(&d, &poller, request_poll(large, POLLIN), 0, 0);
    caller writer = {0};
    scene_call(&d, &writer, request_write(pair[1], "x", 1), 1 * MS, 0);
    driver_run(&d);
    CHECK_EQUAL(POLLIN, poller.result);
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_fsync(RS_DESCRIPTORS_MAX - 1)));
    CHECK(rs_descriptors_in(d.machine)->capacity < 4096);
    close_all(&d, (int[]){large, pair[0], pair[1]}, 3);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Ops that were cancelled and armed anew since the last look have left their names there. */
TEST(a_line_with_names_of_ops_that_have_ended) {
    rs_op_line line = {0};
    rs_op op = {.state = RS_OP_SUBMITTED};
    CHECK(rs_op_line_reserve(&line, 1));
    rs_tries_left = 0;
    while (rs_op_line_reserve(&line, 1) && line.len < 1000) rs_op_line_put(&line, &op);
    rs_tries_left = -1;
    CHECK_EQUAL(line.capacity, line.len);
    CHECK(rs_op_line_reserve(&line, 2));
    CHECK(line.capacity - line.len >= 2);
    rs_op_line_free(&line);
}

TEST(a_channel_without_memory) {
    rs_channel *channel = rs_channel_new(1000);
    uint64_t value;
    rs_tries_left = 0;
    CHECK_EQUAL(RS_CHANNEL_NO_MEMORY, rs_channel_push(channel, NULL, 1, NULL));
    rs_tries_left = 1;
    uint64_t pushed = 0;
    while (rs_channel_push(channel, NULL, pushed, NULL) == RS_CHANNEL_DONE) pushed++;
    rs_tries_left = -1;
    CHECK(pushed > 0 && pushed < 1000);
    CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_push(channel, NULL, pushed, NULL));
    for (uint64_t i = 0; i <= pushed; i++) {
        CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_pop(channel, NULL, &value, NULL));
        CHECK_EQUAL(i, value);
    }
    rs_channel_release(channel);
}

OVER(an_accept_queue_for_which_there_is_no_memory, is_uring) {
    driver d;
    subject_open(&d, subject);
    rs_request request = {.kind = RS_OP_ACCEPT, .fd = (int)scene_ask(&d, request_socket())};
    rs_tries_left = 0;
    CHECK(rs_accept_queue_open(d.machine, &request, 1) == NULL);
    rs_tries_left = -1;
    CHECK_EQUAL(0, rs_accept_queues_in(d.machine)->len);
    rs_accept_queue *queue = rs_accept_queue_open(d.machine, &request, 1);
    CHECK(queue != NULL);
    rs_accept_queue_close(d.machine, queue);
    close_all(&d, &request.fd, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST(channels_and_who_waits_there_for_which_there_is_no_memory) {
    rs_tries_left = 0;
    CHECK(rs_channel_new(1) == NULL);
    CHECK(rs_channel_waiter_new(NULL, RS_NO_ID, 0) == NULL);
    rs_tries_left = -1;
    driver d;
    subject_open(&d, &subjects[0]);
    rs_channel *channel = rs_channel_new(1);
    rs_branches branches;
    rs_branches_open(d.machine, &branches);
    rs_branch given = {.kind = RS_BRANCH_POP_CHANNEL, .from = channel};
    for (int64_t tries = 0; tries < 2; tries++) { /* the branch, its observer */
        rs_tries_left = tries;
        CHECK(rs_branches_add(&branches, &given, NULL) == NULL);
        rs_tries_left = -1;
        CHECK_EQUAL(0, branches.used_len);
        CHECK_EQUAL(0, branches.selector.ready_len);
        CHECK_EQUAL(1, channel->references);
    }
    CHECK(rs_branches_add(&branches, &given, NULL) != NULL);
    rs_branches_close(&branches);
    rs_channel_release(channel);
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
