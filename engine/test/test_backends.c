/* The suite that every backend passes: streams, cancellation, time. */
#include "test.h"

#include "subjects.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define BIG 200000

static uint8_t pattern(uint64_t at) { return (uint8_t)(at * 31 + at / 251); }

static uint8_t *patterned(uint64_t len) {
    uint8_t *bytes = calloc(1, len);
    for (uint64_t i = 0; i < len; i++) bytes[i] = pattern(i);
    return bytes;
}

static bool is_patterned(const uint8_t *bytes, uint64_t from, uint64_t len) {
    for (uint64_t i = 0; i < len; i++) {
        if (bytes[i] != pattern(from + i)) return false;
    }
    return true;
}

OVER_BACKENDS(read_takes_what_is_there) {
    driver d;
    int pair[2];
    char bytes[16] = {0};
    subject_open(&d, subject);
    CHECK_EQUAL(0, scene_ask(&d, request_pipe(pair)));
    CHECK_EQUAL(5, scene_ask(&d, request_write(pair[1], "hello", 5)));
    CHECK_EQUAL(3, scene_ask(&d, request_read(pair[0], bytes, 3)));
    CHECK_EQUAL(2, scene_ask(&d, request_read(pair[0], bytes + 3, 10)));
    CHECK(strcmp(bytes, "hello") == 0);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(read_waits_for_data_and_for_the_end) {
    driver d;
    int pair[2];
    char bytes[16] = {0};
    caller reader = {0}, writer = {0};
    closer closer = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    int64_t start_ns = rs_now(d.machine);
    scene_call(&d, &reader, request_read(pair[0], bytes, 16), 0, 0);
    scene_call(&d, &writer, request_write(pair[1], "hello", 5), 3 * MS, 0);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK_EQUAL(5, reader.result);
    CHECK(reader.at_ns >= start_ns + 3 * MS);
    reader = (caller){0};
    scene_call(&d, &reader, request_read(pair[0], bytes, 16), 0, 0);
    scene_close(&d, &closer, pair[1], 2 * MS);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_VALUE, reader.wake);
    CHECK_EQUAL(0, reader.result);
    CHECK_EQUAL(0, closer.result);
    CHECK_EQUAL(0, scene_ask(&d, request_read(pair[0], bytes, 16)));
    close_all(&d, pair, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(writing_where_nobody_reads) {
    driver d;
    int pair[2];
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    close_all(&d, pair, 1);
    CHECK_EQUAL(-EPIPE, scene_ask(&d, request_write(pair[1], "x", 1)));
    close_all(&d, pair + 1, 1);
    scene_ask(&d, request_socketpair(pair));
    close_all(&d, pair, 1);
    CHECK_EQUAL(-EPIPE, scene_ask(&d, request_send(pair[1], "x", 1)));
    close_all(&d, pair + 1, 1);
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_write(pair[1], "x", 1)));
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_close(pair[1])));
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(a_waiting_writer_learns_that_its_reader_left) {
    driver d;
    int pair[2];
    uint8_t *bytes = patterned(BIG);
    caller writer = {0};
    closer closer = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    CHECK_EQUAL(65536, scene_ask(&d, request_write(pair[1], bytes, BIG)));
    scene_call(&d, &writer, request_write(pair[1], "x", 1), 0, 0);
    scene_close(&d, &closer, pair[0], MS);
    driver_run(&d);
    CHECK_EQUAL(-EPIPE, writer.result);
    close_all(&d, pair + 1, 1);
    CHECK_EQUAL(0, scene_end(&d));
    free(bytes);
}

OVER_BACKENDS(all_of_it_goes_through_in_order) {
    driver d;
    int pairs[2][2];
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pairs[0]));
    scene_ask(&d, request_socketpair(pairs[1]));
    uint8_t *sent = patterned(BIG);
    for (int i = 0; i < 2; i++) {
        uint8_t *got = calloc(1, BIG);
        caller reader = {0}, writer = {0};
        rs_request read = request_read(pairs[i][0], got, BIG), write = request_write(pairs[i][1], sent, BIG);
        read.options = write.options = RS_REQUEST_ALL;
        scene_call(&d, &writer, write, 0, 0);
        scene_call(&d, &reader, read, i * MS, 0);
        driver_run(&d);
        CHECK_EQUAL(BIG, writer.result);
        CHECK_EQUAL(BIG, reader.result);
        CHECK(is_patterned(got, 0, BIG));
        free(got);
    }
    free(sent);
    close_all(&d, pairs[0], 4);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(all_of_a_vector_goes_through_in_order) {
    driver d;
    int pairs[2][2];
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pairs[0]));
    scene_ask(&d, request_socketpair(pairs[1]));
    uint8_t *sent = patterned(BIG), *got = calloc(1, BIG);
    for (int i = 0; i < 2; i++) {
        caller reader = {0}, writer = {0};
        struct iovec in[3] = {{got, 1}, {got + 1, BIG / 3}, {got + 1 + BIG / 3, BIG - 1 - BIG / 3}};
        struct iovec out[3] = {{sent, BIG / 2}, {sent + BIG / 2, 0}, {sent + BIG / 2, BIG - BIG / 2}};
        rs_request read = {.kind = RS_OP_READV, .options = RS_REQUEST_ALL, .fd = pairs[i][0],
                           .vector = {.parts = in, .count = 3, .offset = -1}};
        rs_request write = {.kind = RS_OP_WRITEV, .options = RS_REQUEST_ALL, .fd = pairs[i][1],
                            .vector = {.parts = out, .count = 3, .offset = -1}};
        memset(got, 0, BIG);
        scene_call(&d, &writer, write, 0, 0);
        scene_call(&d, &reader, read, i * MS, 0);
        driver_run(&d);
        CHECK_EQUAL(BIG, writer.result);
        CHECK_EQUAL(BIG, reader.result);
        CHECK(is_patterned(got, 0, BIG));
    }
    free(got);
    free(sent);
    close_all(&d, pairs[0], 4);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(all_of_it_ends_with_what_there_was) {
    driver d;
    int pair[2];
    uint8_t bytes[100];
    caller reader = {0}, writer = {0};
    closer closer = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    rs_request read = request_read(pair[0], bytes, sizeof(bytes));
    read.options = RS_REQUEST_ALL;
    scene_call(&d, &reader, read, 0, 0);
    scene_call(&d, &writer, request_write(pair[1], "hello", 5), MS, 0);
    scene_close(&d, &closer, pair[1], 2 * MS);
    driver_run(&d);
    CHECK_EQUAL(5, reader.result);
    /* A cancellation after the first byte: the bytes are told, the cancellation meets the next wait. */
    close_all(&d, pair, 1);
    canceller canceller = {.after_bytes = 5};
    reader = (caller){.then_sleep_ns = SECOND};
    scene_ask(&d, request_pipe(pair));
    read.fd = pair[0];
    scene_call(&d, &reader, read, 0, 0);
    writer = (caller){0};
    scene_call(&d, &writer, request_write(pair[1], "hello", 5), MS, 0);
    scene_cancel(&d, &canceller, &reader.task, 3 * MS);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_VALUE, reader.wake);
    CHECK_EQUAL(5, reader.result);
    CHECK_EQUAL(RS_WAKE_CANCEL, reader.then_wake);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(waiters_of_one_descriptor_are_served_in_order) {
    driver d;
    int pair[2];
    char bytes[4] = {0};
    caller readers[3] = {0}, writers[3] = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_socketpair(pair));
    for (int i = 0; i < 3; i++) scene_call(&d, &readers[i], request_recv(pair[0], &bytes[i], 1), 0, 0);
    for (int i = 0; i < 3; i++) scene_call(&d, &writers[i], request_send(pair[1], &"abc"[i], 1), (i + 1) * MS, 0);
    driver_run(&d);
    CHECK(strcmp(bytes, "abc") == 0);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(1, readers[i].result);
    CHECK(readers[0].order < readers[1].order && readers[1].order < readers[2].order);
    /* And all three by one message. */
    memset(readers, 0, sizeof(readers));
    memset(bytes, 0, sizeof(bytes));
    for (int i = 0; i < 3; i++) scene_call(&d, &readers[i], request_recv(pair[0], &bytes[i], 1), 0, 0);
    scene_call(&d, &writers[0], request_send(pair[1], "xyz", 3), MS, 0);
    driver_run(&d);
    CHECK(strcmp(bytes, "xyz") == 0);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

static int64_t fill(driver *d, int fd, const uint8_t *bytes) {
    int64_t total = 0;
    for (;;) {
        rs_request send = request_send(fd, bytes, BIG);
        send.transfer.flags = MSG_DONTWAIT;
        caller writer = {0};
        scene_call(d, &writer, send, 0, MS);
        driver_run(d);
        if (writer.wake != RS_WAKE_VALUE || writer.result < 0) return total;
        total += writer.result;
    }
}

OVER_BACKENDS(a_reader_and_a_writer_wait_on_one_socket) {
    driver d;
    int pair[2];
    char byte = 0;
    uint8_t *bytes = patterned(BIG);
    uint8_t *sink = calloc(1, 4 * BIG);
    subject_open(&d, subject);
    scene_ask(&d, request_socketpair(pair));
    int64_t filled = fill(&d, pair[0], bytes);
    caller reader = {0}, writer = {0}, peer_reads = {0}, peer_writes = {0};
    scene_call(&d, &reader, request_read(pair[0], &byte, 1), 0, 0);
    scene_call(&d, &writer, request_write(pair[0], "w", 1), 0, 0);
    scene_call(&d, &peer_writes, request_write(pair[1], "r", 1), MS, 0);
    rs_request drain = request_read(pair[1], sink, (uint64_t)filled);
    drain.options = RS_REQUEST_ALL;
    scene_call(&d, &peer_reads, drain, 2 * MS, 0);
    driver_run(&d);
    CHECK_EQUAL(1, reader.result);
    CHECK_EQUAL('r', byte);
    CHECK_EQUAL(1, writer.result);
    CHECK_EQUAL(filled, peer_reads.result);
    CHECK(reader.order < writer.order);
    CHECK_EQUAL(1, scene_ask(&d, request_read(pair[1], &byte, 1)));
    CHECK_EQUAL('w', byte);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
    free(bytes);
    free(sink);
}

OVER_BACKENDS(a_cancelled_read_takes_nothing) {
    driver d;
    int pair[2];
    char bytes[8] = {0};
    caller reader = {.then_sleep_ns = SECOND};
    canceller canceller = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    int64_t start_ns = rs_now(d.machine);
    scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, 0);
    scene_cancel(&d, &canceller, &reader.task, 2 * MS);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_CANCEL, reader.wake);
    CHECK_EQUAL(RS_WAKE_CANCEL, reader.then_wake);
    CHECK(reader.then_at_ns < start_ns + SECOND);
    scene_ask(&d, request_write(pair[1], "hello", 5));
    CHECK_EQUAL(5, scene_ask(&d, request_read(pair[0], bytes, 8)));
    CHECK_EQUAL(0, bytes[5]);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

/* Data and a cancellation at the same moment: whichever wins, the bytes are delivered or still there, and the
 * cancellation is not lost. */
OVER_BACKENDS(cancel_versus_completion) {
    driver d;
    int pair[2];
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    int values = 0, cancels = 0;
    for (int i = 0; i < 100; i++) {
        char bytes[8];
        caller reader = {.then_sleep_ns = SECOND}, writer = {0};
        canceller canceller = {0};
        scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, 0);
        int64_t cancel_ns = i % 10 == 0 ? 10 * MS : i % 2 ? (i % 5) * 50 * US : 100 * US;
        if (i % 3) scene_cancel(&d, &canceller, &reader.task, cancel_ns);
        scene_call(&d, &writer, request_write(pair[1], "12345", 5), 100 * US, 0);
        if (i % 3 == 0) scene_cancel(&d, &canceller, &reader.task, cancel_ns);
        driver_run(&d);
        CHECK_EQUAL(RS_WAKE_CANCEL, reader.then_wake);
        if (reader.wake == RS_WAKE_VALUE) {
            values++;
            CHECK_EQUAL(5, reader.result);
        } else {
            cancels++;
            CHECK_EQUAL(RS_WAKE_CANCEL, reader.wake);
            CHECK_EQUAL(5, scene_ask(&d, request_read(pair[0], bytes, 8)));
        }
    }
    CHECK(values > 0);
    CHECK(cancels > 0);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(a_timeout_ends_this_wait_and_no_other) {
    driver d;
    int pair[2];
    char bytes[8];
    caller reader = {.then_sleep_ns = 20 * MS};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    int64_t start_ns = rs_now(d.machine);
    scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, 5 * MS);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, reader.wake);
    CHECK(reader.at_ns >= start_ns + 5 * MS);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, reader.then_wake);
    CHECK(reader.then_at_ns >= reader.at_ns + 20 * MS);
    if (is_sim(subject)) CHECK_EQUAL(start_ns + 25 * MS, reader.then_at_ns);
    /* A timeout that does not fire leaves nothing behind. */
    caller writer = {0};
    reader = (caller){.then_sleep_ns = 20 * MS};
    scene_call(&d, &reader, request_read(pair[0], bytes, 8), 0, 10 * SECOND);
    scene_call(&d, &writer, request_write(pair[1], "x", 1), MS, 0);
    driver_run(&d);
    CHECK_EQUAL(1, reader.result);
    CHECK(reader.then_at_ns >= reader.at_ns + 20 * MS);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(closing_tells_those_who_wait) {
    driver d;
    int pair[2];
    char bytes[8];
    caller readers[3] = {0}, poller = {0}, other = {0};
    closer closer = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_socketpair(pair));
    for (int i = 0; i < 3; i++) scene_call(&d, &readers[i], request_read(pair[0], bytes, 8), 0, 0);
    scene_call(&d, &poller, request_poll(pair[0], POLLIN), 0, 0);
    scene_call(&d, &other, request_read(pair[1], bytes, 8), 0, 0);
    scene_close(&d, &closer, pair[0], MS);
    driver_run(&d);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(RS_WAKE_VALUE, readers[i].wake);
        CHECK_EQUAL(-EBADF, readers[i].result);
    }
    CHECK_EQUAL(-EBADF, poller.result);
    CHECK_EQUAL(0, closer.result);
    CHECK_EQUAL(0, other.result);
    close_all(&d, pair + 1, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(a_descriptor_number_is_used_again) {
    driver d;
    subject_open(&d, subject);
    for (int i = 0; i < 20; i++) {
        int pair[2];
        char byte = 0;
        caller reader = {0}, writer = {0};
        closer closer = {0};
        scene_ask(&d, i % 2 ? request_pipe(pair) : request_socketpair(pair));
        scene_call(&d, &reader, request_read(pair[0], &byte, 1), 0, 0);
        if (i % 3) scene_call(&d, &writer, request_write(pair[1], "x", 1), 100 * US, 0);
        else scene_close(&d, &closer, pair[0], 100 * US);
        driver_run(&d);
        CHECK_EQUAL(i % 3 ? 1 : -EBADF, reader.result);
        close_all(&d, i % 3 ? pair : pair + 1, i % 3 ? 2 : 1);
    }
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(vectors_and_messages) {
    driver d;
    int pair[2];
    char left[4] = {0}, right[8] = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_socketpair(pair));
    struct iovec out[2] = {{"abc", 3}, {"defg", 4}}, in[2] = {{left, 3}, {right, 8}};
    rs_request request = {.kind = RS_OP_WRITEV, .fd = pair[0], .vector = {.parts = out, .count = 2, .offset = -1}};
    CHECK_EQUAL(7, scene_ask(&d, request));
    rs_request peek = request_recv(pair[1], right, 8);
    peek.transfer.flags = MSG_PEEK;
    CHECK_EQUAL(7, scene_ask(&d, peek));
    CHECK(memcmp(right, "abcdefg", 7) == 0);
    request = (rs_request){.kind = RS_OP_READV, .fd = pair[1], .vector = {.parts = in, .count = 2, .offset = -1}};
    CHECK_EQUAL(7, scene_ask(&d, request));
    CHECK(memcmp(left, "abc", 3) == 0 && memcmp(right, "defg", 4) == 0);
    struct msghdr sent = {.msg_iov = out, .msg_iovlen = 2}, got = {.msg_iov = in, .msg_iovlen = 2};
    memset(left, 0, sizeof(left));
    caller receiver = {0}, sender = {0};
    rs_request receive = {.kind = RS_OP_RECVMSG, .fd = pair[0], .message.header = &got};
    rs_request send = {.kind = RS_OP_SENDMSG, .fd = pair[1], .message.header = &sent};
    scene_call(&d, &receiver, receive, 0, 0);
    scene_call(&d, &sender, send, MS, 0);
    driver_run(&d);
    CHECK_EQUAL(7, sender.result);
    CHECK_EQUAL(7, receiver.result);
    CHECK(memcmp(left, "abc", 3) == 0 && memcmp(right, "defg", 4) == 0);
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(poll_tells_readiness) {
    driver d;
    int pair[2];
    caller pollers[3] = {0}, writer = {0};
    closer closer = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(pair));
    CHECK_EQUAL(POLLOUT, scene_ask(&d, request_poll(pair[1], POLLOUT)));
    scene_call(&d, &pollers[0], request_poll(pair[0], POLLIN), 0, 0);
    scene_call(&d, &pollers[1], request_poll(pair[0], POLLIN), 0, 0);
    scene_call(&d, &pollers[2], request_poll(pair[0], POLLIN), 0, 500 * US);
    scene_call(&d, &writer, request_write(pair[1], "x", 1), 2 * MS, 0);
    driver_run(&d);
    CHECK_EQUAL(POLLIN, pollers[0].result);
    CHECK_EQUAL(POLLIN, pollers[1].result);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, pollers[2].wake);
    /* The end of the other side is told even to one who asked for nothing of the kind. */
    caller hung = {0}, idle = {0};
    scene_call(&d, &hung, request_poll(pair[0], POLLPRI), 0, SECOND);
    scene_call(&d, &idle, request_poll(pair[0], 0), 0, SECOND);
    scene_close(&d, &closer, pair[1], MS);
    driver_run(&d);
    CHECK_EQUAL(RS_WAKE_VALUE, hung.wake);
    CHECK_EQUAL(POLLHUP, hung.result);
    CHECK_EQUAL(POLLHUP, idle.result);
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_poll(pair[1], POLLIN)));
    close_all(&d, pair, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(numbers_that_are_no_descriptor) {
    driver d;
    char byte = 0;
    int numbers[] = {-1, -7, 999999, INT32_MAX};
    subject_open(&d, subject);
    for (int i = 0; i < 4; i++) {
        int fd = numbers[i];
        rs_request write = request_write(fd, &byte, 1);
        write.options = RS_REQUEST_ALL;
        CHECK_EQUAL(-EBADF, scene_ask(&d, write));
        CHECK_EQUAL(-EBADF, scene_ask(&d, request_read(fd, &byte, 1)));
        CHECK_EQUAL(-EBADF, scene_ask(&d, request_recv(fd, &byte, 1)));
        CHECK_EQUAL(-EBADF, scene_ask(&d, request_accept(fd)));
        CHECK_EQUAL(-EBADF, scene_ask(&d, request_poll(fd, POLLIN)));
        CHECK_EQUAL(-EBADF, scene_ask(&d, request_fsync(fd)));
        CHECK_EQUAL(-EBADF, scene_ask(&d, request_listen(fd, 1)));
        CHECK_EQUAL(-EBADF, scene_ask(&d, request_close(fd)));
    }
    CHECK(rs_descriptors_in(d.machine)->capacity < 1 << 21);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(half_a_connection) {
    driver d;
    int pair[2];
    char bytes[8];
    caller reader = {0}, ender = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_socketpair(pair));
    rs_request shutdown = {.kind = RS_OP_SHUTDOWN, .fd = pair[0], .shutdown.how = SHUT_WR};
    scene_call(&d, &reader, request_read(pair[1], bytes, 8), 0, 0);
    scene_call(&d, &ender, shutdown, MS, 0);
    driver_run(&d);
    CHECK_EQUAL(0, ender.result);
    CHECK_EQUAL(0, reader.result);
    CHECK_EQUAL(-EPIPE, scene_ask(&d, request_send(pair[0], "x", 1)));
    CHECK_EQUAL(2, scene_ask(&d, request_send(pair[1], "ok", 2)));
    CHECK_EQUAL(2, scene_ask(&d, request_recv(pair[0], bytes, 8)));
    close_all(&d, pair, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    return test_main(argc, argv);
}
