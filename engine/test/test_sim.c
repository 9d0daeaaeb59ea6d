/* The simulated kernel by itself: each fault does what its name says, and chance hangs on the seed alone. */
#include "test.h"

#include "scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static void open_machine(driver *d, rs_sim_faults faults, uint64_t seed) {
    rs_options options = rs_default_options();
    options.faults = &faults;
    options.seed = seed;
    options.trace = true;
    RS_ASSERT(driver_open(d, &rs_backend_sim, &options) == 0);
    scene_begin();
}

static void close_pair(driver *d, int pair[2]) {
    for (int i = 0; i < 2; i++) CHECK_EQUAL(0, scene_ask(d, request_close(pair[i])));
}

TEST(without_faults_nothing_takes_time) {
    driver d;
    int pair[2];
    char bytes[100] = {0};
    open_machine(&d, rs_sim_faults_none(), 1);
    int64_t start_ns = rs_sim_now(d.machine);
    scene_ask(&d, request_pipe(pair));
    CHECK_EQUAL(1000, pair[0]);
    CHECK_EQUAL(1001, pair[1]);
    CHECK_EQUAL(2, rs_sim_open_descriptors(d.machine));
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(50, scene_ask(&d, request_write(pair[1], bytes, 50)));
        CHECK_EQUAL(50, scene_ask(&d, request_read(pair[0], bytes, 100)));
    }
    CHECK_EQUAL(start_ns, rs_sim_now(d.machine));
    rs_sim_advance(d.machine, 5 * MS);
    CHECK_EQUAL(start_ns + 5 * MS, rs_now(d.machine));
    /* The lowest free number comes first. */
    CHECK_EQUAL(0, scene_ask(&d, request_close(pair[0])));
    CHECK_EQUAL(1000, scene_ask(&d, request_socket()));
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST(faults_are_set_by_their_names) {
    rs_sim_faults faults = rs_sim_faults_none();
    size_t count = 0;
    for (const char *name; (name = rs_sim_fault_name(count)); count++) CHECK(rs_sim_set_fault(&faults, name, (uint16_t)(count + 1)));
    CHECK_EQUAL(11, count);
    CHECK_EQUAL(1, faults.short_transfer);
    CHECK_EQUAL(9, faults.offload);
    CHECK_EQUAL(11, faults.reset);
    CHECK_EQUAL(0, faults.delay_max_ns);
    CHECK(!rs_sim_set_fault(&faults, "rain", 1));
}

static void find_metric(void *context, const char *name, uint64_t value) {
    if (strcmp(name, "strands_live") == 0) *(uint64_t *)context = value;
}

TEST(metrics_are_told_by_their_names) {
    driver d;
    uint64_t live = 0;
    open_machine(&d, rs_sim_faults_none(), 1);
    rs_metrics_each(d.machine, find_metric, &live);
    CHECK_EQUAL(1, live);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST(short_transfers_cut_but_not_what_a_pipe_writes_in_one_piece) {
    driver d;
    int pair[2];
    char bytes[10000] = {0};
    open_machine(&d, (rs_sim_faults){.short_transfer = 1000}, 1);
    scene_ask(&d, request_pipe(pair));
    CHECK_EQUAL(4096, scene_ask(&d, request_write(pair[1], bytes, 4096)));
    CHECK(scene_ask(&d, request_read(pair[0], bytes, 4096)) < 4096);
    CHECK(scene_ask(&d, request_write(pair[1], bytes, 10000)) < 10000);
    rs_request all = request_write(pair[1], bytes, 10000);
    all.options = RS_REQUEST_ALL;
    CHECK_EQUAL(10000, scene_ask(&d, all));
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Of two that end at once the first one gives its turn to the second, which is then gone as well. */
TEST(time_goes_on_when_the_last_ops_are_cancelled) {
    driver d;
    int pair[2];
    char bytes[2][8];
    caller readers[2] = {0}, later = {0};
    open_machine(&d, rs_sim_faults_none(), 1);
    scene_ask(&d, request_pipe(pair));
    for (int i = 0; i < 2; i++) scene_call(&d, &readers[i], request_read(pair[0], bytes[i], 8), 0, 5 * MS);
    scene_call(&d, &later, request_write(pair[1], "x", 1), SECOND, 0);
    driver_park_root(&d);
    for (int steps = 0; d.unfinished > 0 && steps < 100; steps++) driver_step(&d);
    CHECK_EQUAL(0, d.unfinished);
    driver_unpark_root(&d);
    for (int i = 0; i < 2; i++) CHECK_EQUAL(RS_WAKE_TIMEOUT, readers[i].wake);
    CHECK_EQUAL(1, later.result);
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
}

static int64_t read_takes(rs_sim_faults faults) {
    driver d;
    int pair[2];
    char byte;
    open_machine(&d, faults, 3);
    scene_ask(&d, request_pipe(pair));
    scene_ask(&d, request_write(pair[1], "x", 1));
    int64_t start_ns = rs_sim_now(d.machine);
    CHECK_EQUAL(1, scene_ask(&d, request_read(pair[0], &byte, 1)));
    int64_t took_ns = rs_sim_now(d.machine) - start_ns;
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
    return took_ns;
}

TEST(faults_that_cost_time_cost_time_and_end) {
    CHECK_EQUAL(0, read_takes(rs_sim_faults_none()));
    CHECK(read_takes((rs_sim_faults){.interrupted = 1000}) > 0);
    CHECK(read_takes((rs_sim_faults){.no_buffers = 1000}) > 0);
    CHECK(read_takes((rs_sim_faults){.delay = 1000, .delay_max_ns = MS}) > 0);
    CHECK(read_takes((rs_sim_faults){.delay = 1000, .delay_max_ns = MS}) <= 2 * MS);
    CHECK_EQUAL(0, read_takes((rs_sim_faults){.submission_full = 1000}));
    CHECK_EQUAL(0, read_takes((rs_sim_faults){.late_wake = 1000}));
}

TEST(a_full_submission_queue_waits_for_the_next_poll) {
    driver d;
    int pair[2];
    char byte;
    caller reader = {0};
    open_machine(&d, (rs_sim_faults){.submission_full = 1000}, 1);
    scene_ask(&d, request_pipe(pair));
    scene_ask(&d, request_write(pair[1], "x", 1));
    uint64_t polls = d.machine->metrics.polls;
    scene_call(&d, &reader, request_read(pair[0], &byte, 1), 0, 0);
    driver_park_root(&d);
    CHECK_EQUAL(RS_RUN, driver_step(&d));
    CHECK_EQUAL(1, d.machine->in_flight);
    CHECK_EQUAL(polls, d.machine->metrics.polls);
    CHECK_EQUAL(RS_RUN, driver_step(&d));
    CHECK_EQUAL(1, reader.result);
    driver_unpark_root(&d);
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST(a_late_cancellation_takes_its_time_and_may_lose) {
    int cancelled = 0, completed = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        driver d;
        int pair[2];
        char byte;
        caller reader = {0}, writer = {0};
        canceller canceller = {0};
        open_machine(&d, (rs_sim_faults){.late_cancel = 1000, .delay_max_ns = 10 * MS}, seed);
        scene_ask(&d, request_pipe(pair));
        int64_t start_ns = rs_sim_now(d.machine);
        scene_call(&d, &reader, request_read(pair[0], &byte, 1), 0, 0);
        scene_cancel(&d, &canceller, &reader.task, MS);
        scene_call(&d, &writer, request_write(pair[1], "x", 1), 6 * MS, 0);
        driver_run(&d);
        CHECK(reader.at_ns > start_ns + MS);
        if (reader.wake == RS_WAKE_CANCEL) cancelled++;
        else completed += reader.result == 1 && reader.at_ns == start_ns + 6 * MS;
        close_pair(&d, pair);
        CHECK_EQUAL(0, scene_end(&d));
    }
    CHECK(cancelled > 5 && completed > 5);
    CHECK_EQUAL(50, cancelled + completed);
}

TEST(faults_that_a_program_sees) {
    driver d;
    int pair[2];
    char byte;
    open_machine(&d, (rs_sim_faults){.open_failure = 1000}, 1);
    CHECK_EQUAL(-EMFILE, scene_ask(&d, request_pipe(pair)));
    CHECK_EQUAL(-EMFILE, scene_ask(&d, request_socket()));
    int64_t opened = scene_ask(&d, request_open("file", O_RDWR | O_CREAT));
    CHECK(opened == -EMFILE || opened == -ENFILE);
    CHECK_EQUAL(0, scene_end(&d));
    open_machine(&d, (rs_sim_faults){.reset = 1000}, 1);
    scene_ask(&d, request_pipe(pair));
    CHECK_EQUAL(1, scene_ask(&d, request_write(pair[1], "x", 1)));
    close_pair(&d, pair);
    scene_ask(&d, request_socketpair(pair));
    CHECK_EQUAL(-ECONNRESET, scene_ask(&d, request_send(pair[1], "x", 1)));
    CHECK(scene_ask(&d, request_recv(pair[0], &byte, 1)) == -ECONNRESET);
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST(memory_of_an_op_is_written_to) {
    driver d;
    int pair[2], touched = 0;
    open_machine(&d, (rs_sim_faults){.scribble = 1000}, 1);
    scene_ask(&d, request_pipe(pair));
    for (int i = 0; i < 20; i++) {
        char bytes[200] = {0};
        scene_ask(&d, request_write(pair[1], "abc", 3));
        CHECK_EQUAL(3, scene_ask(&d, request_read(pair[0], bytes, sizeof(bytes))));
        CHECK(memcmp(bytes, "abc", 3) == 0);
        for (int at = 3; at < 200; at++) touched += bytes[at] != 0;
    }
    CHECK(touched > 0);
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
}

TEST(an_offloaded_open_may_be_left_and_leaks_nothing) {
    int left = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        driver d;
        caller opener = {0};
        open_machine(&d, (rs_sim_faults){.offload = 1000, .delay = 1000, .delay_max_ns = 10 * MS}, seed);
        int64_t start_ns = rs_sim_now(d.machine);
        scene_call(&d, &opener, request_open("file", O_RDWR | O_CREAT), 0, MS);
        driver_run(&d);
        if (opener.wake == RS_WAKE_TIMEOUT) CHECK_EQUAL(start_ns + MS, opener.at_ns);
        else CHECK_EQUAL(0, scene_ask(&d, request_close((int)opener.result)));
        left += d.machine->in_flight > 0;
        driver_park_root(&d);
        while (d.machine->in_flight > 0) driver_step(&d);
        driver_unpark_root(&d);
        CHECK_EQUAL(0, scene_end(&d));
    }
    CHECK(left > 5);
}

static uint64_t hash_of_run(uint64_t seed, uint64_t *draws) {
    driver d;
    int pair[2];
    char bytes[100];
    caller readers[5] = {0}, writers[5] = {0};
    open_machine(&d, rs_sim_faults_default(), seed);
    scene_ask(&d, request_socketpair(pair));
    for (int i = 0; i < 5; i++) {
        scene_call(&d, &readers[i], request_recv(pair[0], bytes, 100), i * MS, 20 * MS);
        scene_call(&d, &writers[i], request_send(pair[1], "hello", 5), 2 * i * MS, 0);
    }
    driver_run(&d);
    uint64_t hash = d.machine->trace.hash;
    *draws = rs_sim_random(d.machine);
    close_pair(&d, pair);
    CHECK_EQUAL(0, scene_end(&d));
    return hash;
}

TEST(one_seed_is_one_run) {
    uint64_t draws[2];
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t hash = hash_of_run(seed, &draws[0]);
        CHECK(hash == hash_of_run(seed, &draws[1]));
        CHECK(draws[0] == draws[1]);
        CHECK(hash != hash_of_run(seed + 1, &draws[1]));
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }
