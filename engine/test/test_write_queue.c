/* Write queues: what is written leaves whole, in order, and several writes in one call; over every backend, and under the
 * faults of the simulation. */
#include "test.h"

#include "ringspun/flow/write_queue.h"
#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define MANY 400000
#define SEEDS 300

static void make_pair(driver *d, int pair[2]) { CHECK_EQUAL(0, scene_ask(d, request_socketpair(pair))); }

/* Writes its text in pieces, with a turn of the others after each. */
typedef struct {
    task task;
    rs_write_queue *queue;
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
        self->result = rs_write_queue_put(self->queue, self->text + self->at, len);
        self->at += len;
        TASK_WAIT(task, task_yield(task));
    }
    TASK_END(task);
}

static void write_text(driver *d, writer *writer, rs_write_queue *queue, const char *text, size_t piece) {
    writer->queue = queue;
    writer->text = text;
    writer->piece = piece;
    driver_spawn(d, NULL, &writer->task, writer_step);
}

/* Waits until everything has left, or never will. */
typedef struct {
    task task;
    rs_write_queue *queue;
    int64_t error;
    uint32_t woken;
} drainer;

static void drainer_step(task *task) {
    drainer *self = (drainer *)task;
    TASK_BEGIN(task);
    while (rs_write_queue_len(self->queue) > 0) {
        rs_write_queue_flush(self->queue);
        if (rs_write_queue_len(self->queue) == 0) break;
        TASK_WAIT(task, task_wait_in(task, &self->queue->waiters, 0, RS_NEVER));
        self->woken++;
    }
    self->error = self->queue->error;
    TASK_END(task);
}

static void drain(driver *d, drainer *drainer, rs_write_queue *queue) {
    drainer->queue = queue;
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
    collector->bytes = calloc(1, wanted + 1);
    collector->wanted = wanted;
    collector->piece = piece;
    driver_spawn(d, NULL, &collector->task, collector_step);
}

static void begin_write_queue(const subject *subject, driver *d, int pair[2], rs_write_queue *queue) {
    subject_open(d, subject);
    make_pair(d, pair);
    rs_write_queue_open(d->machine, queue, RS_OP_SEND, pair[0]);
}

static void end_write_queue(driver *d, rs_write_queue *queue) {
    CHECK_EQUAL(0, rs_write_queue_len(queue));
    CHECK_EQUAL(0, rs_pool_in(d->machine)->lent);
    rs_write_queue_close(queue);
    CHECK(rs_write_queues_in(d->machine)->all.first == NULL);
}

static char pattern_at(size_t at) { return (char)('a' + (at * 7 + at / 251) % 26); }

static char *pattern(size_t len) {
    char *bytes = calloc(1, len + 1);
    for (size_t i = 0; i < len; i++) bytes[i] = pattern_at(i);
    return bytes;
}

OVER_BACKENDS(what_several_strands_write_in_a_tick_is_one_call_in_their_order) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    writer one = {0}, two = {0};
    write_text(&d, &one, &queue, "1234", 2);
    write_text(&d, &two, &queue, "abcd", 2);
    driver_stop_clock(&d);
    uint64_t before = d.machine->metrics.ops_inline + d.machine->metrics.ops_started;
    driver_run(&d);
    CHECK_EQUAL(before, d.machine->metrics.ops_inline + d.machine->metrics.ops_started);
    CHECK_EQUAL(8, rs_write_queue_len(&queue));
    drainer drainer = {0};
    drain(&d, &drainer, &queue);
    driver_run(&d);
    CHECK_EQUAL(before + 1, d.machine->metrics.ops_inline + d.machine->metrics.ops_started);
    driver_start_clock(&d);
    collector reader = {0};
    collect(&d, &reader, pair[1], 8, 100);
    driver_run(&d);
    CHECK(strcmp(reader.bytes, "12ab34cd") == 0);
    free(reader.bytes);
    end_write_queue(&d, &queue);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(bytes_leave_when_the_tick_ends_although_nobody_flushes) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    collector reader = {0};
    writer writer = {0};
    collect(&d, &reader, pair[1], 5, 100);
    write_text(&d, &writer, &queue, "hello", 3);
    driver_run(&d);
    CHECK(strcmp(reader.bytes, "hello") == 0);
    free(reader.bytes);
    end_write_queue(&d, &queue);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* More than the kernel takes, and more of it while that is on its way. */
OVER_BACKENDS(what_is_put_in_meanwhile_comes_after_it) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    char *bytes = pattern(2 * MANY);
    CHECK_EQUAL(MANY, rs_write_queue_put(&queue, bytes, MANY));
    rs_write_queue_flush(&queue);
    CHECK(queue.op != 0);
    CHECK_EQUAL(MANY, rs_write_queue_put(&queue, bytes + MANY, MANY));
    CHECK(rs_write_queue_len(&queue) > MANY);
    collector reader = {0};
    drainer drainer = {0};
    collect(&d, &reader, pair[1], 2 * MANY, 30000);
    drain(&d, &drainer, &queue);
    driver_run(&d);
    CHECK_EQUAL(0, drainer.error);
    CHECK_EQUAL(2 * MANY, reader.len);
    CHECK(memcmp(reader.bytes, bytes, 2 * MANY) == 0);
    free(reader.bytes);
    free(bytes);
    end_write_queue(&d, &queue);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* One op sends all of it, so its length says nothing of how much has gone. */
OVER_BACKENDS(what_the_kernel_has_of_an_op_is_not_untaken) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    char *bytes = pattern(2 * MANY);
    CHECK_EQUAL(2 * MANY, rs_write_queue_put(&queue, bytes, 2 * MANY));
    CHECK_EQUAL(2 * MANY, rs_write_queue_untaken(&queue));
    rs_write_queue_flush(&queue);
    CHECK(queue.op != 0);
    collector first = {0}, rest = {0};
    collect(&d, &first, pair[1], MANY, 30000);
    driver_run(&d);
    CHECK(rs_write_queue_untaken(&queue) <= MANY);
    collect(&d, &rest, pair[1], MANY, 30000);
    drainer drainer = {0};
    drain(&d, &drainer, &queue);
    driver_run(&d);
    CHECK_EQUAL(0, rs_write_queue_untaken(&queue));
    CHECK_EQUAL(MANY, first.len);
    CHECK_EQUAL(MANY, rest.len);
    CHECK(memcmp(rest.bytes, bytes + MANY, MANY) == 0);
    free(first.bytes);
    free(rest.bytes);
    free(bytes);
    end_write_queue(&d, &queue);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* A layer between, which takes a little at a time. */
static int64_t pass_some(rs_write_queue *queue, const void *bytes, size_t len, uint32_t *events) {
    rs_request request = {.kind = RS_OP_SEND, .fd = queue->fd,
                          .transfer = {.address = (void *)bytes, .len = len < 1000 ? len : 1000, .flags = MSG_NOSIGNAL}};
    *events = POLLOUT;
    return rs_try(queue->machine, &request);
}

OVER_KERNELS(a_layer_between_gets_all_bytes_in_their_order) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    queue.pass = pass_some;
    char *bytes = pattern(2 * MANY);
    rs_write_queue_put(&queue, bytes, MANY);
    rs_write_queue_flush(&queue);
    CHECK(queue.op != 0);
    rs_write_queue_put(&queue, bytes + MANY, MANY);
    collector reader = {0};
    drainer drainer = {0};
    collect(&d, &reader, pair[1], 2 * MANY, 30000);
    drain(&d, &drainer, &queue);
    driver_run(&d);
    CHECK_EQUAL(0, drainer.error);
    CHECK_EQUAL(2 * MANY, reader.len);
    CHECK(memcmp(reader.bytes, bytes, 2 * MANY) == 0);
    free(reader.bytes);
    free(bytes);
    end_write_queue(&d, &queue);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

static int64_t pass_nothing(rs_write_queue *queue, const void *bytes, size_t len, uint32_t *events) {
    (void)queue, (void)bytes, (void)len, (void)events;
    return -EPROTO;
}

OVER_BACKENDS(the_error_of_a_layer_between_is_final) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    queue.pass = pass_nothing;
    rs_write_queue_put(&queue, "x", 1);
    drainer drainer = {0};
    drain(&d, &drainer, &queue);
    driver_run(&d);
    CHECK_EQUAL(-EPROTO, drainer.error);
    CHECK_EQUAL(-EPROTO, rs_write_queue_put(&queue, "y", 1));
    end_write_queue(&d, &queue);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(the_first_error_is_final) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    char *bytes = pattern(MANY);
    rs_write_queue_put(&queue, bytes, MANY);
    drainer drainer = {0};
    closer closer = {0};
    drain(&d, &drainer, &queue);
    scene_close(&d, &closer, pair[1], MS);
    driver_run(&d);
    CHECK_EQUAL(-EPIPE, drainer.error);
    CHECK_EQUAL(-EPIPE, rs_write_queue_put(&queue, bytes, 1));
    free(bytes);
    end_write_queue(&d, &queue);
    close_all(&d, pair, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

static void check_file(const char *path, const char *bytes, size_t len) {
    char *found = calloc(1, len + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_EQUAL((int64_t)len, read(fd, found, len + 1));
    CHECK(memcmp(found, bytes, len) == 0);
    close(fd);
    free(found);
}

/* Of more than is tried at once: whoever is at the file hears of it between two of its calls. */
OVER_KERNELS(a_file_that_takes_a_part_and_no_more_fails_the_queue) {
    driver d;
    rs_write_queue queue;
    const char *folder = subject_folder(), *file = subject_path(folder, "file");
    struct rlimit before;
    CHECK_EQUAL(0, getrlimit(RLIMIT_FSIZE, &before));
    signal(SIGXFSZ, SIG_IGN);
    subject_open(&d, subject);
    int fd = (int)scene_ask(&d, request_open(file, O_WRONLY | O_CREAT));
    CHECK_EQUAL(0, setrlimit(RLIMIT_FSIZE, &(struct rlimit){MANY / 2, before.rlim_max}));
    rs_write_queue_open(d.machine, &queue, RS_OP_WRITE, fd);
    char *bytes = pattern(MANY);
    rs_write_queue_put(&queue, bytes, MANY);
    drainer drainer = {0};
    drain(&d, &drainer, &queue);
    driver_run(&d);
    CHECK_EQUAL(0, setrlimit(RLIMIT_FSIZE, &before));
    CHECK_EQUAL(-EFBIG, drainer.error);
    CHECK_EQUAL(-EFBIG, rs_write_queue_put(&queue, bytes, 1));
    CHECK_EQUAL(MANY / 2, lseek(fd, 0, SEEK_CUR));
    check_file(file, bytes, MANY / 2);
    free(bytes);
    end_write_queue(&d, &queue);
    close_all(&d, &fd, 1);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(file);
    rmdir(folder);
}

OVER_BACKENDS(who_closes_the_descriptor_ends_what_is_on_its_way) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    char *bytes = pattern(MANY);
    rs_write_queue_put(&queue, bytes, MANY);
    drainer drainer = {0};
    closer closer = {0};
    drain(&d, &drainer, &queue);
    scene_close(&d, &closer, pair[0], MS);
    driver_run(&d);
    CHECK_EQUAL(0, closer.result);
    CHECK_EQUAL(-EBADF, drainer.error);
    end_write_queue(&d, &queue);
    /* And where nothing was, the number may be another's by now. */
    rs_write_queue_open(d.machine, &queue, RS_OP_SEND, pair[1]);
    rs_write_queue_put(&queue, bytes, 1);
    driver_stop_clock(&d); /* no look comes between, which would flush it */
    close_all(&d, pair + 1, 1);
    driver_start_clock(&d);
    rs_write_queue_flush(&queue);
    CHECK_EQUAL(-EBADF, queue.error);
    free(bytes);
    end_write_queue(&d, &queue);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(a_machine_that_closes_drops_what_has_not_left) {
    driver d;
    int pair[2];
    static rs_write_queue queue; /* the machine's until it is closed */
    begin_write_queue(subject, &d, pair, &queue);
    close_all(&d, pair, 2);
    rs_write_queue_put(&queue, "x", 1);
    CHECK_EQUAL(0, scene_end(&d));
    CHECK(queue.filling.bytes == NULL);
}

/* By a collector of garbage, when the machine will not run again: what the kernel still reads goes with the op. */
OVER_BACKENDS(an_op_whose_write_queue_is_freed_keeps_its_bytes) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    begin_write_queue(subject, &d, pair, &queue);
    char *bytes = pattern(MANY);
    rs_write_queue_put(&queue, bytes, MANY);
    rs_write_queue_flush(&queue);
    CHECK(queue.op != 0);
    rs_write_queue_put(&queue, bytes, 1);
    rs_write_queue_abandon(&queue);
    CHECK(rs_write_queues_in(d.machine)->all.first == NULL);
    CHECK_EQUAL(0, rs_pool_in(d.machine)->lent);
    memset(&queue, 0xee, sizeof(queue));
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
    rs_write_queue queue;
    rs_sim_faults faults = rs_sim_faults_default();
    rs_options options = rs_default_options();
    options.faults = &faults;
    options.seed = seed;
    scene_begin();
    RS_ASSERT(driver_open(&d, &rs_backend_sim, &options) == 0);
    make_pair(&d, pair);
    rs_write_queue_open(d.machine, &queue, seed % 2 ? RS_OP_SEND : RS_OP_WRITE, pair[0]);
    writer one = {0}, two = {0};
    collector reader = {0};
    write_text(&d, &one, &queue, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 3);
    write_text(&d, &two, &queue, "bbbbbbbbbbbbbbbbbbbbbbbb", 3);
    collect(&d, &reader, pair[1], 54, 1 + rs_sim_random(d.machine) % 20);
    driver_run(&d);
    drainer drainer = {0}; /* the end of the last call may be heard later */
    drain(&d, &drainer, &queue);
    driver_run(&d);
    CHECK_EQUAL(54, reader.len);
    for (size_t i = 0; i + 2 < reader.len; i += 3) CHECK(reader.bytes[i] == reader.bytes[i + 1] && reader.bytes[i] == reader.bytes[i + 2]);
    if (test_failures > 0) printf("  seed %" PRIu64 "\n", seed);
    free(reader.bytes);
    end_write_queue(&d, &queue);
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

/* Without memory nothing changes, and with some it goes on. */
TEST(a_buffer_for_which_there_is_no_memory) {
    rs_pool pool = {0};
    rs_buffer buffer = {0};
    char *bytes = pattern(100000);
    rs_tries_left = 0;
    CHECK(rs_buffer_room(&pool, &buffer, 1) == NULL);
    CHECK_EQUAL(0, pool.lent);
    rs_tries_left = -1;
    CHECK(rs_buffer_put(&pool, &buffer, bytes, 10000));
    rs_tries_left = 0;
    CHECK(!rs_buffer_put(&pool, &buffer, bytes, 90000)); /* out of the pool's piece */
    rs_tries_left = 1;
    CHECK(rs_buffer_put(&pool, &buffer, bytes + 10000, 20000));
    CHECK(!rs_buffer_put(&pool, &buffer, bytes, 90000)); /* and of memory of its own */
    CHECK(rs_buffer_room(&pool, &buffer, SIZE_MAX) == NULL);
    rs_tries_left = -1;
    CHECK_EQUAL(30000, rs_buffer_len(&buffer));
    CHECK(rs_buffer_put(&pool, &buffer, bytes + 30000, 70000));
    CHECK(memcmp(rs_buffer_at(&buffer), bytes, 100000) == 0);
    CHECK_EQUAL(1, pool.lent);
    rs_buffer_clear(&pool, &buffer);
    CHECK_EQUAL(0, pool.lent);
    rs_pool_free(&pool);
    free(bytes);
}

TEST(a_large_buffer_grows_by_less_than_double) {
    rs_pool pool = {0};
    rs_buffer buffer = {0};
    for (size_t len = 1000; len < 40u << 20; len += len / 8) {
        CHECK(rs_buffer_room(&pool, &buffer, len) != NULL);
        CHECK(buffer.capacity >= len);
        CHECK(len < RS_BUFFER_LARGE || buffer.capacity <= len + len / 4 + 1);
    }
    rs_buffer_clear(&pool, &buffer);
    rs_pool_free(&pool);
}

OVER_KERNELS(a_write_queue_without_memory_takes_all_or_nothing) {
    driver d;
    int pair[2];
    rs_write_queue queue;
    subject_open(&d, subject);
    make_pair(&d, pair);
    rs_write_queue_open(d.machine, &queue, RS_OP_SEND, pair[1]);
    rs_tries_left = 0;
    CHECK(!rs_write_queue_reserve(&queue, 5));
    CHECK_EQUAL(RS_NO_MEMORY, rs_write_queue_put(&queue, "bytes", 5));
    rs_tries_left = -1;
    CHECK_EQUAL(0, queue.put);
    CHECK_EQUAL(0, queue.error);
    CHECK(rs_write_queue_reserve(&queue, 5));
    rs_tries_left = 0;
    CHECK_EQUAL(5, rs_write_queue_put(&queue, "bytes", 5));
    rs_tries_left = -1;
    rs_write_queue_flush(&queue);
    char got[8] = "";
    CHECK_EQUAL(5, read(pair[0], got, sizeof(got)));
    CHECK(memcmp(got, "bytes", 5) == 0);
    end_write_queue(&d, &queue);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
