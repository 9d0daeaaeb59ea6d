/* Which requests go to the backend without a try of ours: the rule, by what a system call costs and how many strands are ready; and on
 * this kernel, what it does to system calls, errors and cancellation. */
#include "test.h"

#include "ops/untried.h"
#include "subjects.h"
#include "kernel/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* --- the rule --- */

TEST(the_least_number_of_strands_falls_with_the_cost_of_a_call) {
    CHECK_EQUAL(RS_UNTRIED_NEVER, rs_untried_least(0));
    CHECK_EQUAL(RS_UNTRIED_NEVER, rs_untried_least(60));
    CHECK_EQUAL(RS_UNTRIED_NEVER, rs_untried_least(RS_UNTRIED_EXTRA_NS));
    uint32_t least = RS_UNTRIED_NEVER;
    for (int64_t cost_ns = RS_UNTRIED_EXTRA_NS + 1; cost_ns < 100000; cost_ns += 7) {
        uint32_t next = rs_untried_least(cost_ns);
        CHECK(next <= least && next >= RS_UNTRIED_FEW);
        least = next;
    }
    CHECK_EQUAL(RS_UNTRIED_FEW, least);
    CHECK_EQUAL(RS_UNTRIED_FEW, rs_untried_least(INT64_MAX));
    CHECK_EQUAL(6, rs_untried_least(RS_UNTRIED_EXTRA_NS * 6 / 5)); /* five sixths of a call are what an op costs more */
}

static int64_t cost_ns;
static int measured;
static int64_t measure(void) {
    measured++;
    return cost_ns;
}

static rs_untried begin_rule(int64_t call_ns) {
    cost_ns = call_ns;
    measured = 0;
    return rs_untried_begin(measure);
}

/* As many requests by a crowd of that many, all in one tick. */
static uint32_t given_of(rs_untried *rule, uint64_t tick, uint32_t ready, uint32_t requests) {
    uint32_t given = 0;
    for (uint32_t i = 0; i < requests; i++) {
        uint32_t left = ready > i ? ready - i : 0;
        if (!rs_untried_wants(rule, tick, left)) continue;
        rs_untried_gave(rule);
        given++;
    }
    return given;
}

TEST(a_call_is_measured_once_and_only_where_many_are_ready) {
    rs_untried rule = begin_rule(5000);
    for (int i = 0; i < 10000; i++) CHECK(!rs_untried_wants(&rule, 1, RS_UNTRIED_FEW - 1));
    CHECK_EQUAL(0, measured);
    CHECK_EQUAL(0, given_of(&rule, 2, 100000, RS_UNTRIED_BEFORE - 1));
    CHECK_EQUAL(0, measured);
    given_of(&rule, 3, 100, 100);
    CHECK_EQUAL(1, measured);
    given_of(&rule, 4, 100, 100);
    CHECK_EQUAL(1, measured);
}

TEST(where_calls_are_cheap_nothing_is_asked_any_more) {
    rs_untried rule = begin_rule(RS_UNTRIED_EXTRA_NS / 2);
    given_of(&rule, 1, 100000, RS_UNTRIED_BEFORE);
    CHECK_EQUAL(1, measured);
    CHECK_EQUAL(RS_UNTRIED_NEVER, rule.least);
    CHECK_EQUAL(0, given_of(&rule, 2, 100000, 1000));
}

TEST(the_last_of_a_crowd_go_with_the_others) {
    rs_untried rule = begin_rule(5000);
    given_of(&rule, 1, 100000, RS_UNTRIED_BEFORE);
    CHECK_EQUAL(40, given_of(&rule, 2, 40, 40));
    CHECK_EQUAL(0, given_of(&rule, 3, RS_UNTRIED_FEW - 1, 10));
    CHECK_EQUAL(0, given_of(&rule, 4, 0, 10));
}

TEST(a_crowd_that_asks_for_little_is_left_alone_for_a_while) {
    rs_untried rule = begin_rule(5000);
    given_of(&rule, 1, 100000, RS_UNTRIED_BEFORE);
    CHECK_EQUAL(1, given_of(&rule, 2, 500, 1)); /* the others compute */
    CHECK_EQUAL(0, given_of(&rule, 3, 500, RS_UNTRIED_REST));
    CHECK_EQUAL(100, given_of(&rule, 3, 500, 100));
    CHECK_EQUAL(100, given_of(&rule, 4, 500, 100));
}

TEST(who_was_told_to_asks_for_all_without_a_crowd) {
    rs_untried rule = rs_untried_always();
    CHECK_EQUAL(3, given_of(&rule, 1, 0, 3));
    CHECK_EQUAL(3, given_of(&rule, 2, 0, 3));
}

TEST(a_call_of_this_kernel_costs_something) {
    int64_t call_ns = rs_platform_linux.call_ns();
    CHECK(call_ns > 0 && call_ns < SECOND);
}

/* --- on this kernel --- */

#define PAIRS 16
#define ROUNDS 8

static void open_with(driver *d, rs_stream_io stream_io) {
    rs_options options = rs_default_options();
    options.stream_io = stream_io;
    RS_ASSERT(driver_open(d, &rs_backend_uring, &options) == 0);
}

typedef struct {
    task task;
    bool socket, sends;
    int fd;
    uint32_t round;
    char bytes[64];
} mover;

static void move_step(task *task) {
    mover *self = (mover *)task;
    TASK_BEGIN(task);
    for (; self->round < ROUNDS; self->round++) {
        memset(self->bytes, self->sends ? 'a' + (int)self->round : 0, sizeof(self->bytes));
        rs_request request = self->sends ? self->socket ? request_send(self->fd, self->bytes, 64) : request_write(self->fd, self->bytes, 64)
                           : self->socket ? request_recv(self->fd, self->bytes, 64) : request_read(self->fd, self->bytes, 64);
        TASK_WAIT(task, task_request(task, &request, RS_NEVER));
        CHECK_EQUAL(64, task->result);
        CHECK_EQUAL('a' + (int)self->round, self->bytes[63]);
    }
    TASK_END(task);
}

/* Answers the system calls on the ring, and how many ops were tried. */
static rs_metrics move_all(driver *d, bool socket) {
    static mover movers[2 * PAIRS];
    int pairs[PAIRS][2];
    memset(movers, 0, sizeof(movers));
    for (int i = 0; i < PAIRS; i++) scene_ask(d, socket ? request_socketpair(pairs[i]) : request_pipe(pairs[i]));
    rs_metrics before = d->machine->metrics;
    for (int i = 0; i < 2 * PAIRS; i++) {
        movers[i].socket = socket;
        movers[i].sends = i % 2 == 0;
        movers[i].fd = pairs[i / 2][i % 2 == 0];
        driver_spawn(d, NULL, &movers[i].task, move_step);
    }
    CHECK_EQUAL(RS_RUN, driver_run(d));
    rs_metrics after = d->machine->metrics;
    after.system_calls -= before.system_calls;
    after.ops_inline -= before.ops_inline;
    after.ops_started -= before.ops_started;
    for (int i = 0; i < 2 * PAIRS; i++) scene_ask(d, request_close(pairs[i / 2][i % 2]));
    return after;
}

TEST_NOT_EMULATED(many_ops_take_few_calls) {
    for (int socket = 0; socket < 2; socket++) {
        driver d;
        open_with(&d, RS_STREAM_IO_RING);
        rs_metrics moved = move_all(&d, socket);
        CHECK_EQUAL(0, moved.ops_inline);
        CHECK_EQUAL(2 * PAIRS * ROUNDS, moved.ops_started);
        CHECK(moved.system_calls * 8 < moved.ops_started);
        CHECK_EQUAL(0, scene_end(&d));
    }
}

TEST_NOT_EMULATED(inline_all_are_tried) {
    for (int socket = 0; socket < 2; socket++) {
        driver d;
        open_with(&d, RS_STREAM_IO_INLINE);
        rs_metrics moved = move_all(&d, socket);
        CHECK_EQUAL(2 * PAIRS * ROUNDS, moved.ops_inline);
        CHECK_EQUAL(0, moved.ops_started);
        CHECK_EQUAL(0, scene_end(&d));
    }
}

/* Whose turn does not end in a lock would hand it over after every op. */
TEST_NOT_EMULATED(who_holds_a_lock_tries) {
    driver d;
    int pair[2];
    open_with(&d, RS_STREAM_IO_RING);
    scene_ask(&d, request_pipe(pair));
    rs_request request = request_write(pair[1], "x", 1);
    rs_running(d.machine)->locks++;
    CHECK_EQUAL(1, rs_ask(d.machine, &request));
    rs_running(d.machine)->locks--;
    CHECK_EQUAL(-EAGAIN, rs_ask(d.machine, &request));
    CHECK(request.options & RS_REQUEST_UNTRIED);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* What an `ensure` block can do at once is done. */
TEST_NOT_EMULATED(an_interrupted_strand_tries) {
    driver d;
    int pair[2];
    open_with(&d, RS_STREAM_IO_RING);
    scene_ask(&d, request_socketpair(pair));
    rs_running(d.machine)->interrupts++;
    rs_request request = request_send(pair[1], "x", 1);
    CHECK_EQUAL(1, rs_ask(d.machine, &request));
    rs_take_interrupt(rs_running(d.machine));
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* A wait for room, and not an error, and the rest of what has none. */
TEST_NOT_EMULATED(a_full_socket_is_waited_for) {
    driver d;
    int pair[2];
    caller writers[2] = {0}, reader = {0};
    static char bytes[1 << 16], read[1 << 19];
    open_with(&d, RS_STREAM_IO_RING);
    scene_ask(&d, request_socketpair(pair));
    while (send(pair[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {}
    rs_request all = request_write(pair[1], bytes, sizeof(bytes));
    all.options = RS_REQUEST_ALL;
    scene_call(&d, &writers[0], request_send(pair[1], "behind", 6), 0, 0);
    scene_call(&d, &writers[1], all, 0, 0);
    scene_call(&d, &reader, request_read(pair[0], read, sizeof(read)), 2 * MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(6, writers[0].result);
    CHECK_EQUAL(sizeof(bytes), writers[1].result);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Completion wins: a cancellation that comes before the ring has been asked finds the bytes moved. */
TEST_NOT_EMULATED(bytes_on_their_way_are_not_lost_by_a_cancellation) {
    driver d;
    int pair[2];
    char bytes[8] = {0};
    caller writer = {0}, reader = {0};
    canceller cancellers[2] = {0};
    open_with(&d, RS_STREAM_IO_RING);
    scene_ask(&d, request_pipe(pair));
    scene_call(&d, &writer, request_write(pair[1], "moved", 5), 0, 0);
    scene_cancel(&d, &cancellers[0], &writer.task, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_WAKE_VALUE, writer.wake);
    CHECK_EQUAL(5, writer.result);
    scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, 0);
    scene_cancel(&d, &cancellers[1], &reader.task, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(RS_WAKE_VALUE, reader.wake);
    CHECK_EQUAL(5, reader.result);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

static bool is_always_open(const rs_op *op) { return op->state == RS_OP_SUBMITTED; }

/* One about an object is handed over with the next look. Who is cancelled before that gets what is there, as by a try, and nothing
 * where nothing is. */
TEST_NOT_EMULATED(what_is_there_is_read_by_who_is_cancelled_before_the_hand_over) {
    driver d;
    int pair[2];
    char bytes[2][8] = {{0}};
    caller readers[2] = {0};
    canceller cancellers[2] = {0};
    open_with(&d, RS_STREAM_IO_RING);
    d.machine->driver.is_open = is_always_open;
    scene_ask(&d, request_pipe(pair));
    scene_ask(&d, request_write(pair[1], "there", 5));
    for (int i = 0; i < 2; i++) {
        rs_request request = request_read(pair[0], bytes[i], 8);
        request.options = RS_REQUEST_OF_OBJECT;
        scene_call(&d, &readers[i], request, 0, 0);
        scene_cancel(&d, &cancellers[i], &readers[i].task, 0);
        CHECK_EQUAL(RS_RUN, driver_run(&d));
    }
    CHECK_EQUAL(RS_WAKE_VALUE, readers[0].wake);
    CHECK_EQUAL(5, readers[0].result);
    CHECK_EQUAL(RS_WAKE_CANCEL, readers[1].wake);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* No SIGPIPE, which would end this program. */
TEST_NOT_EMULATED(a_socket_without_a_reader_raises_no_signal) {
    driver d;
    int pair[2];
    open_with(&d, RS_STREAM_IO_RING);
    for (int plain = 0; plain < 2; plain++) {
        scene_ask(&d, request_socketpair(pair));
        close_all(&d, pair, 1);
        CHECK_EQUAL(-EPIPE, scene_ask(&d, plain ? request_write(pair[1], "x", 1) : request_send(pair[1], "x", 1)));
        close_all(&d, pair + 1, 1);
    }
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int count, char **arguments) { return test_main(count, arguments); }
