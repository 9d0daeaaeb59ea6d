/* Buffers: what was put in comes out in order, whatever room is asked for, and both the memory and the copying stay within bounds. */
#include "test.h"

#include "flow/pool.h"

#include <stdlib.h>

/* The bytes that are put in, one after the other: each has its place in this row. */
static char byte_at(size_t place) { return (char)(place * 31 + place / 251); }

typedef struct {
    rs_pool pool;
    rs_buffer buffer;
    size_t put, taken;
} queue;

static bool put(queue *self, size_t len) {
    char *room = rs_buffer_room(&self->pool, &self->buffer, len);
    if (!room) return false;
    for (size_t i = 0; i < len; i++) room[i] = byte_at(self->put + i);
    rs_buffer_filled(&self->buffer, len);
    self->put += len;
    return true;
}

static void check_front(const queue *self) {
    const char *bytes = rs_buffer_at(&self->buffer);
    size_t len = rs_buffer_len(&self->buffer), wrong = 0;
    CHECK_EQUAL(self->put - self->taken, len);
    for (size_t i = 0; i < len; i++) wrong += bytes[i] != byte_at(self->taken + i);
    CHECK_EQUAL(0, wrong);
}

static void take(queue *self, size_t len) {
    check_front(self);
    rs_buffer_drop(&self->pool, &self->buffer, len);
    self->taken += len;
}

static void end(queue *self) {
    check_front(self);
    rs_buffer_clear(&self->pool, &self->buffer);
    CHECK_EQUAL(0, self->pool.lent);
    rs_pool_free(&self->pool);
}

TEST(room_that_is_there_already_but_partly_at_the_front) {
    queue one = {0};
    CHECK(put(&one, 60000));
    take(&one, 20000);
    CHECK(put(&one, 20000));
    CHECK_EQUAL(65536, one.buffer.capacity);
    end(&one);
}

TEST(room_for_which_a_few_bytes_were_taken_at_the_front) {
    queue one = {0};
    CHECK(put(&one, 65000));
    take(&one, 600);
    CHECK(put(&one, 1000));
    end(&one);
}

TEST(room_within_one_piece) {
    queue one = {0};
    CHECK(put(&one, RS_BUFFER_PIECE));
    take(&one, 100);
    CHECK(put(&one, 100));
    take(&one, RS_BUFFER_PIECE - 100);
    CHECK(put(&one, RS_BUFFER_PIECE - 100));
    end(&one);
}

TEST(room_at_every_place_of_the_front) {
    for (size_t held = 0; held <= 40000; held += 800) {
        for (size_t taken = 0; taken <= 40000; taken += 800) {
            queue one = {0};
            if (held + taken > 0) CHECK(put(&one, held + taken));
            take(&one, taken);
            size_t room = one.buffer.capacity - held;
            CHECK(put(&one, room > 0 ? room : 1));
            end(&one);
        }
    }
}

TEST(room_without_memory_for_more) {
    queue one = {0};
    CHECK(put(&one, 65000));
    take(&one, 600);
    rs_tries_left = 0;
    CHECK(put(&one, 1000)); /* there is as much, once what is there has moved */
    CHECK(!put(&one, 1000));
    rs_tries_left = -1;
    end(&one);
}

/* A reader that looks at many bytes and takes one, while they come one by one, must not have all of them moved for each. */
TEST(a_window_that_slides_is_seldom_moved) {
    enum { HELD = 100000, STEPS = 50000 };
    queue one = {0};
    CHECK(put(&one, HELD));
    uint32_t moves = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        rs_buffer_drop(&one.pool, &one.buffer, 1);
        one.taken++;
        size_t start = one.buffer.start;
        CHECK(rs_buffer_room(&one.pool, &one.buffer, 4096));
        moves += one.buffer.start != start;
        CHECK(put(&one, 1));
    }
    CHECK(moves < 10);
    CHECK(one.buffer.capacity <= 3 * (HELD + 4096));
    end(&one);
}

TEST(random_sizes) {
    srandom(1);
    for (int round = 0; round < 200; round++) {
        queue one = {0};
        size_t most = 1u << (10 + random() % 9), held_max = 1, len_max = 1;
        for (int step = 0; step < 60; step++) {
            size_t len = 1 + (size_t)random() % most;
            CHECK(put(&one, len));
            size_t held = rs_buffer_len(&one.buffer);
            if (held > held_max) held_max = held;
            if (len > len_max) len_max = len;
            take(&one, (size_t)random() % 8 ? (size_t)random() % (held + 1) : held);
            CHECK(one.buffer.capacity <= 3 * (held_max + len_max) + RS_BUFFER_PIECE);
        }
        end(&one);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }
