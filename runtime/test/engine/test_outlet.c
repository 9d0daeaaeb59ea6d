/* Outlets: what is written leaves whole, in order, and several writes in one call; over every backend, and under the faults of the
 * simulation. */
#include "test.h"

#include "outlet.h"
#include "subjects.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define MANY 400000
#define SEEDS 300

static void make_pair(driver *d, int pair[2]) { CHECK_EQUAL(0, scene_ask(d, request_socketpair(pair))); }

/* Writes its text in pieces, with a turn of the others after each. */
typedef struct {
    task task;
    rs_outlet *outlet;
    const char *text;
    size_t piece, at;
    int64_t result;
} writer;

static void writer_step(task *task) {
    writer *self = (writer *)task;
    TASK_BEGIN(task);
    while (self->at < strlen(self->text) && self->result >= 0) {
        size_t rest = strlen(self->text) - self->at;
        size_t len = rest < self->piece ? rest : self->piece;
        self->result = rs_outlet_put(self->outlet, self->text + self->at, len);
        self->at += len;
        TASK_WAIT(task, task_yield(task));
    }
    TASK_END(task);
}

static void write_text(driver *d, writer *writer, rs_outlet *outlet, const char *text, size_t piece) {
    writer->outlet = outlet;
    writer->text = text;
    writer->piece = piece;
    driver_spawn(d, NULL, &writer->task, writer_step);
}

/* Waits until everything has left, or never will. */
typedef struct {
    task task;
    rs_outlet *outlet;
    int64_t error;
    uint32_t told;
} drainer;

static void drainer_step(task *task) {
    drainer *self = (drainer *)task;
    TASK_BEGIN(task);
    while (rs_outlet_len(self->outlet) > 0) {
        rs_outlet_flush(self->outlet);
        if (rs_outlet_len(self->outlet) == 0) break;
        TASK_WAIT(task, task_wait_in(task, &self->outlet->waiters, 0, RS_NEVER));
        self->told++;
    }
    self->error = self->outlet->error;
    TASK_END(task);
}

static void drain(driver *d, drainer *drainer, rs_outlet *outlet) {
    drainer->outlet = outlet;
    driver_spawn(d, NULL, &drainer->task, drainer_step);
}

/* Reads so many bytes, in pieces. */
typedef struct {
    task task;
    int fd;
    char *bytes;
    size_t wanted, len, piece;
} collector;

static void collector_step(task *task) {
    collector *self = (collector *)task;
    TASK_BEGIN(task);
    while (self->len < self->wanted) {
        size_t rest = self->wanted - self->len;
        rs_request request = request_recv(self->fd, self->bytes + self->len, rest < self->piece ? rest : self->piece);
        TASK_WAIT(task, task_request(task, &request, RS_NEVER));
        if (task->result <= 0) break;
        self->len += (size_t)task->result;
    }
    TASK_END(task);
}

static void collect(driver *d, collector *collector, int fd, size_t wanted, size_t piece) {
    collector->fd = fd;
    collector->bytes = rs_alloc(wanted + 1);
    collector->wanted = wanted;
    collector->piece = piece;
    driver_spawn(d, NULL, &collector->task, collector_step);
}

static void begin_outlet(const subject *subject, driver *d, int pair[2], rs_outlet *outlet) {
    subject_open(d, subject);
    make_pair(d, pair);
    rs_outlet_open(&d->machine, outlet, RS_OP_SEND, pair[0]);
}

static void end_outlet(driver *d, rs_outlet *outlet) {
    CHECK_EQUAL(0, rs_outlet_len(outlet));
    CHECK_EQUAL(0, d->machine.pool.lent);
    rs_outlet_close(outlet);
    CHECK(d->machine.outlets == NULL);
}

static char pattern_at(size_t at) { return (char)('a' + (at * 7 + at / 251) % 26); }

static char *pattern(size_t len) {
    char *bytes = rs_alloc(len + 1);
    for (size_t i = 0; i < len; i++) bytes[i] = pattern_at(i);
    return bytes;
}

OVER_BACKENDS(what_several_strands_write_in_a_tick_is_one_call_in_their_order) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    writer one = {0}, two = {0};
    write_text(&d, &one, &outlet, "1234", 2);
    write_text(&d, &two, &outlet, "abcd", 2);
    uint64_t before = d.machine.metrics.ops_inline + d.machine.metrics.ops_started;
    driver_run(&d);
    CHECK_EQUAL(before, d.machine.metrics.ops_inline + d.machine.metrics.ops_started);
    CHECK_EQUAL(8, rs_outlet_len(&outlet));
    drainer drainer = {0};
    drain(&d, &drainer, &outlet);
    driver_run(&d);
    CHECK_EQUAL(before + 1, d.machine.metrics.ops_inline + d.machine.metrics.ops_started);
    collector reader = {0};
    collect(&d, &reader, pair[1], 8, 100);
    driver_run(&d);
    CHECK(strcmp(reader.bytes, "12ab34cd") == 0);
    free(reader.bytes);
    end_outlet(&d, &outlet);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(bytes_leave_when_the_tick_ends_although_nobody_flushes) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    collector reader = {0};
    writer writer = {0};
    collect(&d, &reader, pair[1], 5, 100);
    write_text(&d, &writer, &outlet, "hello", 3);
    driver_run(&d);
    CHECK(strcmp(reader.bytes, "hello") == 0);
    free(reader.bytes);
    end_outlet(&d, &outlet);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* More than the kernel takes, and more of it while that is on its way. */
OVER_BACKENDS(what_is_put_in_meanwhile_comes_after_it) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    char *bytes = pattern(2 * MANY);
    CHECK_EQUAL(MANY, rs_outlet_put(&outlet, bytes, MANY));
    rs_outlet_flush(&outlet);
    CHECK(outlet.op != 0);
    CHECK_EQUAL(MANY, rs_outlet_put(&outlet, bytes + MANY, MANY));
    CHECK(rs_outlet_len(&outlet) > MANY);
    collector reader = {0};
    drainer drainer = {0};
    collect(&d, &reader, pair[1], 2 * MANY, 30000);
    drain(&d, &drainer, &outlet);
    driver_run(&d);
    CHECK_EQUAL(0, drainer.error);
    CHECK_EQUAL(2 * MANY, reader.len);
    CHECK(memcmp(reader.bytes, bytes, 2 * MANY) == 0);
    free(reader.bytes);
    free(bytes);
    end_outlet(&d, &outlet);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* A layer between, which takes a little at a time. */
static int64_t pass_some(rs_outlet *outlet, const void *bytes, size_t len, uint32_t *events) {
    rs_request request = {.kind = RS_OP_SEND, .fd = outlet->fd, .flags = MSG_NOSIGNAL, .address = (void *)bytes,
                          .len = len < 1000 ? len : 1000, .offset = -1};
    *events = POLLOUT;
    return rs_try(outlet->machine, &request);
}

OVER_KERNELS(a_layer_between_gets_all_bytes_in_their_order) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    outlet.pass = pass_some;
    char *bytes = pattern(2 * MANY);
    rs_outlet_put(&outlet, bytes, MANY);
    rs_outlet_flush(&outlet);
    CHECK(outlet.op != 0);
    rs_outlet_put(&outlet, bytes + MANY, MANY);
    collector reader = {0};
    drainer drainer = {0};
    collect(&d, &reader, pair[1], 2 * MANY, 30000);
    drain(&d, &drainer, &outlet);
    driver_run(&d);
    CHECK_EQUAL(0, drainer.error);
    CHECK_EQUAL(2 * MANY, reader.len);
    CHECK(memcmp(reader.bytes, bytes, 2 * MANY) == 0);
    free(reader.bytes);
    free(bytes);
    end_outlet(&d, &outlet);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

static int64_t pass_nothing(rs_outlet *outlet, const void *bytes, size_t len, uint32_t *events) {
    (void)outlet, (void)bytes, (void)len, (void)events;
    return -EPROTO;
}

OVER_BACKENDS(the_error_of_a_layer_between_is_final) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    outlet.pass = pass_nothing;
    rs_outlet_put(&outlet, "x", 1);
    drainer drainer = {0};
    drain(&d, &drainer, &outlet);
    driver_run(&d);
    CHECK_EQUAL(-EPROTO, drainer.error);
    CHECK_EQUAL(-EPROTO, rs_outlet_put(&outlet, "y", 1));
    end_outlet(&d, &outlet);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(the_first_error_is_final) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    char *bytes = pattern(MANY);
    rs_outlet_put(&outlet, bytes, MANY);
    drainer drainer = {0};
    closer closer = {0};
    drain(&d, &drainer, &outlet);
    scene_close(&d, &closer, pair[1], MS);
    driver_run(&d);
    CHECK_EQUAL(-EPIPE, drainer.error);
    CHECK_EQUAL(-EPIPE, rs_outlet_put(&outlet, bytes, 1));
    free(bytes);
    end_outlet(&d, &outlet);
    close_all(&d, pair, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(who_closes_the_descriptor_ends_what_is_on_its_way) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    char *bytes = pattern(MANY);
    rs_outlet_put(&outlet, bytes, MANY);
    drainer drainer = {0};
    closer closer = {0};
    drain(&d, &drainer, &outlet);
    scene_close(&d, &closer, pair[0], MS);
    driver_run(&d);
    CHECK_EQUAL(0, closer.result);
    CHECK_EQUAL(-EBADF, drainer.error);
    end_outlet(&d, &outlet);
    /* And where nothing was, the number may be another's by now. */
    rs_outlet_open(&d.machine, &outlet, RS_OP_SEND, pair[1]);
    rs_outlet_put(&outlet, bytes, 1);
    close_all(&d, pair + 1, 1);
    rs_outlet_flush(&outlet);
    CHECK_EQUAL(-EBADF, outlet.error);
    free(bytes);
    end_outlet(&d, &outlet);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(a_machine_that_closes_drops_what_has_not_left) {
    driver d;
    int pair[2];
    static rs_outlet outlet; /* the machine's until it is closed */
    begin_outlet(subject, &d, pair, &outlet);
    close_all(&d, pair, 2);
    rs_outlet_put(&outlet, "x", 1);
    CHECK_EQUAL(0, scene_end(&d));
    CHECK(outlet.filling.bytes == NULL);
}

/* By a collector of garbage, when the machine will not run again: what the kernel still reads goes with the op. */
OVER_BACKENDS(an_op_whose_outlet_is_freed_keeps_its_bytes) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    begin_outlet(subject, &d, pair, &outlet);
    char *bytes = pattern(MANY);
    rs_outlet_put(&outlet, bytes, MANY);
    rs_outlet_flush(&outlet);
    CHECK(outlet.op != 0);
    rs_outlet_put(&outlet, bytes, 1);
    rs_outlet_abandon(&outlet);
    CHECK(d.machine.outlets == NULL);
    CHECK_EQUAL(0, d.machine.pool.lent);
    memset(&outlet, 0xee, sizeof(outlet));
    closer closer = {0};
    scene_close(&d, &closer, pair[0], MS);
    driver_run(&d);
    CHECK_EQUAL(0, closer.result);
    free(bytes);
    close_all(&d, pair + 1, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Two strands write lines in pieces of their own sizes, one reads, and the kernel does what it can: each line is whole. */
static void storm(uint64_t seed) {
    driver d;
    int pair[2];
    rs_outlet outlet;
    rs_sim_faults faults = rs_sim_faults_default();
    rs_options options = rs_default_options();
    options.faults = &faults;
    options.seed = seed;
    scene_begin();
    RS_ASSERT(driver_open(&d, &rs_backend_sim, &options) == 0);
    make_pair(&d, pair);
    rs_outlet_open(&d.machine, &outlet, seed % 2 ? RS_OP_SEND : RS_OP_WRITE, pair[0]);
    writer one = {0}, two = {0};
    collector reader = {0};
    write_text(&d, &one, &outlet, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 3);
    write_text(&d, &two, &outlet, "bbbbbbbbbbbbbbbbbbbbbbbb", 3);
    collect(&d, &reader, pair[1], 54, 1 + rs_sim_random(&d.machine) % 20);
    driver_run(&d);
    drainer drainer = {0}; /* the end of the last call may be heard later */
    drain(&d, &drainer, &outlet);
    driver_run(&d);
    CHECK_EQUAL(54, reader.len);
    for (size_t i = 0; i + 2 < reader.len; i += 3) CHECK(reader.bytes[i] == reader.bytes[i + 1] && reader.bytes[i] == reader.bytes[i + 2]);
    if (test_failures > 0) printf("  seed %" PRIu64 "\n", seed);
    free(reader.bytes);
    end_outlet(&d, &outlet);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST(lines_stay_whole_whatever_the_kernel_does) {
    for (uint64_t seed = 1; seed <= SEEDS && test_failures == 0; seed++) storm(seed);
}

/* --- buffers --- */

TEST(a_buffer_grows_moves_and_gives_back) {
    rs_pool pool = {0};
    rs_buffer buffer = {0};
    char *bytes = pattern(100000);
    rs_buffer_put(&pool, &buffer, bytes, 10000);
    CHECK_EQUAL(RS_BUFFER_PIECE, buffer.capacity);
    rs_buffer_drop(&pool, &buffer, 9000);
    rs_buffer_put(&pool, &buffer, bytes + 10000, 10000); /* moves to the front */
    CHECK_EQUAL(RS_BUFFER_PIECE, buffer.capacity);
    CHECK_EQUAL(11000, rs_buffer_len(&buffer));
    CHECK(memcmp(rs_buffer_at(&buffer), bytes + 9000, 11000) == 0);
    rs_buffer_put(&pool, &buffer, bytes + 20000, 80000);
    CHECK_EQUAL(91000, rs_buffer_len(&buffer));
    CHECK(memcmp(rs_buffer_at(&buffer), bytes + 9000, 91000) == 0);
    CHECK_EQUAL(1, pool.lent);
    CHECK_EQUAL(1, pool.len);
    rs_buffer_drop(&pool, &buffer, 91000);
    CHECK(buffer.bytes == NULL);
    CHECK_EQUAL(0, pool.lent);
    char *piece = rs_buffer_room(&pool, &buffer, 1);
    CHECK_EQUAL(0, pool.len);
    CHECK(piece == buffer.bytes);
    rs_buffer_clear(&pool, &buffer);
    rs_pool_free(&pool);
    free(bytes);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
