/* Channels: between strands of a simulated machine, one rule after the other, and between real threads with machines and without. */
#include "test.h"

#include "by_hand.h"
#include "ringspun/flow/channel.h"

#include <stdlib.h>
#include <unistd.h>

/* --- without anybody who waits --- */

TEST(values_come_out_in_their_order_and_no_more_than_fit) {
    rs_channel *channel = rs_channel_new(3);
    uint64_t value = 0, next_in = 1, next_out = 1;
    for (int round = 0; round < 20; round++) {
        while (rs_channel_push(channel, NULL, next_in, NULL) == RS_CHANNEL_DONE) next_in++;
        CHECK_EQUAL(3, rs_channel_len(channel));
        for (int i = 0; i < 1 + round % 3; i++) {
            CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_pop(channel, NULL, &value, NULL));
            CHECK_EQUAL(next_out++, value);
        }
    }
    rs_channel_close(channel, NULL);
    CHECK_EQUAL(RS_CHANNEL_CLOSED, rs_channel_push(channel, NULL, 1, NULL));
    while (rs_channel_pop(channel, NULL, &value, NULL) == RS_CHANNEL_DONE) CHECK_EQUAL(next_out++, value);
    CHECK_EQUAL(next_in, next_out);
    CHECK_EQUAL(RS_CHANNEL_CLOSED, rs_channel_pop(channel, NULL, &value, NULL));
    rs_channel_release(channel);
}

TEST(what_is_given_back_is_in_front_and_may_be_more_than_fits) {
    rs_channel *channel = rs_channel_new(1);
    uint64_t value = 0;
    rs_channel_waiter *waiters[2];
    for (int i = 0; i < 2; i++) {
        waiters[i] = rs_channel_waiter_new(NULL, RS_NO_ID, 0);
        CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, NULL, &value, waiters[i]));
    }
    for (uint64_t pushed = 1; pushed < 4; pushed++) CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_push(channel, NULL, pushed, NULL));
    for (int i = 1; i >= 0; i--) {
        rs_channel_refuse(waiters[i]);
        rs_channel_waiter_free(waiters[i]);
    }
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_push(channel, NULL, 4, NULL));
    for (uint64_t expected = 1; expected < 4; expected++) {
        CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_pop(channel, NULL, &value, NULL));
        CHECK_EQUAL(expected, value);
    }
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, NULL, &value, NULL));
    rs_channel_release(channel);
}

TEST(a_closed_channel_has_not_ended_while_a_value_may_be_given_back) {
    rs_channel *channel = rs_channel_new(1);
    uint64_t value = 0;
    rs_channel_waiter *given = rs_channel_waiter_new(NULL, RS_NO_ID, 0), *next = rs_channel_waiter_new(NULL, RS_NO_ID, 0);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, NULL, &value, given));
    CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_push(channel, NULL, 7, NULL));
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, NULL, &value, next));
    rs_channel_close(channel, NULL);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, NULL, &value, NULL));
    rs_channel_refuse(given);
    rs_channel_waiter_free(given);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, NULL, &value, NULL));
    CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_leave(next, &value));
    rs_channel_waiter_free(next);
    CHECK_EQUAL(7, value);
    CHECK_EQUAL(RS_CHANNEL_CLOSED, rs_channel_pop(channel, NULL, &value, NULL));
    rs_channel_release(channel);
}

TEST(who_pops_when_nothing_can_come_back_any_more_learns_of_the_end) {
    rs_channel *channel = rs_channel_new(1);
    uint64_t value = 0;
    rs_channel_waiter *given = rs_channel_waiter_new(NULL, RS_NO_ID, 0), *next = rs_channel_waiter_new(NULL, RS_NO_ID, 0);
    rs_channel_pop(channel, NULL, &value, given);
    rs_channel_push(channel, NULL, 7, NULL);
    rs_channel_close(channel, NULL);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, NULL, &value, next));
    CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_leave(given, &value));
    CHECK_EQUAL(RS_CHANNEL_CLOSED, rs_channel_leave(next, &value));
    rs_channel_waiter_free(given);
    rs_channel_waiter_free(next);
    rs_channel_release(channel);
}

/* --- strands of one machine --- */

static rs_channel_waiter *waiter_of(rs_strand *strand) {
    return rs_channel_waiter_new(machine, rs_strand_id(strand), machine->last_ticket + 1);
}

static rs_channel_waiter *pop_in_line(rs_channel *channel, rs_strand *strand, int64_t deadline_ns) {
    uint64_t value;
    rs_channel_waiter *waiter = waiter_of(strand);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_pop(channel, machine, &value, waiter));
    CHECK(rs_park_begin(machine, RS_WAIT_CHANNEL, 0, deadline_ns) == waiter->ticket);
    return waiter;
}

static rs_channel_waiter *push_in_line(rs_channel *channel, rs_strand *strand, uint64_t value) {
    rs_channel_waiter *waiter = waiter_of(strand);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_push(channel, machine, value, waiter));
    CHECK(rs_park_begin(machine, RS_WAIT_CHANNEL, 0, RS_NEVER) == waiter->ticket);
    return waiter;
}

static void leave(rs_channel_waiter *waiter, rs_wake_kind kind, rs_channel_answer answer, uint64_t expected) {
    uint64_t value = 0;
    CHECK_EQUAL(kind, park_end());
    CHECK_EQUAL(answer, rs_channel_leave(waiter, &value));
    CHECK_EQUAL(expected, value);
    rs_channel_waiter_free(waiter);
    rs_finish(machine);
}

TEST(a_value_is_given_to_who_has_waited_longest_with_its_wake) {
    begin();
    rs_channel *channel = rs_channel_new(1);
    rs_strand *strands[2] = {spawn(), spawn()};
    rs_channel_waiter *waiters[2];
    for (int i = 0; i < 2; i++) {
        CHECK(next() == strands[i]);
        waiters[i] = pop_in_line(channel, strands[i], RS_NEVER);
    }
    rs_channel_push(channel, machine, 1, NULL);
    rs_channel_push(channel, machine, 2, NULL);
    CHECK_EQUAL(0, rs_channel_len(channel));
    for (int i = 0; i < 2; i++) {
        CHECK(next() == strands[i]);
        leave(waiters[i], RS_WAKE_VALUE, RS_CHANNEL_DONE, (uint64_t)i + 1);
    }
    CHECK(rs_links_empty(&rs_channel_waiters_in(machine)->all));
    rs_channel_release(channel);
    end();
}

TEST(a_free_place_goes_to_who_has_waited_longest) {
    begin();
    rs_channel *channel = rs_channel_new(1);
    rs_channel_push(channel, machine, 1, NULL);
    rs_strand *strands[2] = {spawn(), spawn()};
    rs_channel_waiter *waiters[2];
    for (int i = 0; i < 2; i++) {
        CHECK(next() == strands[i]);
        waiters[i] = push_in_line(channel, strands[i], (uint64_t)i + 2);
    }
    for (uint64_t expected = 1; expected < 4; expected++) {
        uint64_t value = 0;
        CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_pop(channel, machine, &value, NULL));
        CHECK_EQUAL(expected, value);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(next() == strands[i]);
        leave(waiters[i], RS_WAKE_VALUE, RS_CHANNEL_DONE, 0);
    }
    rs_channel_release(channel);
    end();
}

TEST(who_was_cancelled_first_gets_nothing) {
    begin();
    rs_channel *channel = rs_channel_new(1);
    rs_strand *cancelled = spawn(), *other = spawn();
    next();
    rs_channel_waiter *first = pop_in_line(channel, cancelled, RS_NEVER);
    next();
    rs_channel_waiter *second = pop_in_line(channel, other, RS_NEVER);
    rs_scope_cancel(machine, &cancelled->own, RS_CANCELLED_BY_CALL);
    rs_channel_push(channel, machine, 7, NULL);
    CHECK(next() == cancelled);
    leave(first, RS_WAKE_CANCEL, RS_CHANNEL_WAITS, 0);
    CHECK(next() == other);
    leave(second, RS_WAKE_VALUE, RS_CHANNEL_DONE, 7);
    rs_channel_release(channel);
    end();
}

TEST(who_was_given_a_value_first_keeps_it) {
    begin();
    rs_channel *channel = rs_channel_new(1);
    rs_strand *strand = spawn();
    next();
    rs_channel_waiter *waiter = pop_in_line(channel, strand, rs_now(machine) + MS);
    rs_channel_push(channel, machine, 7, NULL);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK(next() == strand);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    leave(waiter, RS_WAKE_VALUE, RS_CHANNEL_DONE, 7);
    rs_channel_release(channel);
    end();
}

TEST(closing_ends_all_waits) {
    begin();
    rs_channel *empty = rs_channel_new(1), *full = rs_channel_new(1);
    rs_channel_push(full, machine, 1, NULL);
    rs_strand *popper = spawn(), *pusher = spawn();
    next();
    rs_channel_waiter *pops = pop_in_line(empty, popper, RS_NEVER);
    next();
    rs_channel_waiter *pushes = push_in_line(full, pusher, 2);
    rs_channel_close(empty, machine);
    rs_channel_close(full, machine);
    CHECK(next() == popper);
    leave(pops, RS_WAKE_VALUE, RS_CHANNEL_CLOSED, 0);
    CHECK(next() == pusher);
    leave(pushes, RS_WAKE_VALUE, RS_CHANNEL_CLOSED, 0);
    CHECK_EQUAL(1, rs_channel_len(full));
    rs_channel_release(empty);
    rs_channel_release(full);
    end();
}

/* As when a thread ends: the values stand in front again in their order, or go to who else waits. */
TEST(what_was_given_to_those_who_never_look_is_given_back) {
    begin();
    rs_channel *channel = rs_channel_new(5);
    rs_strand *strands[3] = {spawn(), spawn(), spawn()};
    for (int i = 0; i < 3; i++) next(), pop_in_line(channel, strands[i], RS_NEVER);
    for (uint64_t value = 1; value < 3; value++) rs_channel_push(channel, machine, value, NULL);
    CHECK_EQUAL(0, rs_channel_len(channel));
    rs_channel_waiters_part.ends(machine);
    CHECK_EQUAL(0, rs_channel_waiting(channel));
    rs_channel_push(channel, NULL, 3, NULL);
    for (uint64_t expected = 1; expected < 4; expected++) {
        uint64_t value = 0;
        rs_channel_pop(channel, NULL, &value, NULL);
        CHECK_EQUAL(expected, value);
    }
    for (int i = 0; i < 3; i++) rs_wake(machine, rs_strand_id(strands[i]), strands[i]->ticket, RS_WAKE_CANCEL, 0);
    for (int i = 0; i < 3; i++) {
        CHECK(next() == strands[i]);
        park_end();
        rs_finish(machine);
    }
    rs_channel_release(channel);
    end();
}

/* --- observers --- */

TEST(a_watch_is_told_and_takes_when_it_looks) {
    begin();
    rs_channel *channel = rs_channel_new(1);
    rs_selector selector;
    rs_watch watch = {0};
    uint64_t value = 0;
    rs_selector_open(machine, &selector);
    rs_watch_open(&selector, &watch, NULL);
    rs_channel_observe(channel, &watch, false);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_look(watch.observer, &value));
    rs_watch_idle(&watch);
    rs_channel_push(channel, machine, 1, NULL);
    CHECK(watch.ready);
    CHECK_EQUAL(RS_CHANNEL_DONE, rs_channel_look(watch.observer, &value));
    CHECK_EQUAL(1, value);
    CHECK_EQUAL(RS_CHANNEL_WAITS, rs_channel_look(watch.observer, &value));
    rs_watch_idle(&watch);
    /* From elsewhere: by a message, and once until it is there. */
    rs_channel_push(channel, NULL, 2, NULL);
    CHECK(!watch.ready && watch.observer->notified);
    rs_channel_pop(channel, NULL, &value, NULL);
    rs_channel_push(channel, NULL, 3, NULL);
    next();
    CHECK(watch.ready && !watch.observer->notified);
    CHECK_EQUAL(1, machine->metrics.messages);
    rs_selector_close(&selector);
    CHECK(rs_links_empty(&channel->observers));
    rs_channel_release(channel);
    end();
}

TEST(a_message_for_a_watch_that_has_gone) {
    begin();
    rs_channel *channel = rs_channel_new(1);
    rs_selector selector;
    rs_watch watch = {0};
    uint64_t value = 0;
    rs_selector_open(machine, &selector);
    rs_watch_open(&selector, &watch, NULL);
    rs_channel_observe(channel, &watch, false);
    rs_channel_look(watch.observer, &value);
    rs_channel_push(channel, NULL, 2, NULL);
    rs_selector_close(&selector);
    rs_channel_release(channel); /* which has gone as well */
    CHECK(next() == NULL);
    CHECK_EQUAL(1, machine->metrics.messages);
    end();
}

/* --- threads --- */

#define PRODUCERS 3
#define PER_PRODUCER 20000

typedef struct {
    rs_channel *channel;
    uint64_t name;
    uint64_t sum, count;
    bool in_order;
} worker;

static void *produce(void *argument) {
    worker *self = argument;
    for (uint64_t i = 1; i <= PER_PRODUCER; i++) {
        uint64_t value = self->name << 32 | i;
        if (rs_channel_push(self->channel, NULL, value, NULL) == RS_CHANNEL_DONE) continue;
        rs_channel_waiter *waiter = rs_channel_waiter_new(NULL, 0, 0);
        if (rs_channel_push(self->channel, NULL, value, waiter) == RS_CHANNEL_WAITS) {
            rs_channel_sleep(waiter, RS_NEVER);
            if (rs_channel_leave(waiter, NULL) != RS_CHANNEL_DONE) self->in_order = false;
        }
        rs_channel_waiter_free(waiter);
    }
    return NULL;
}

static void got(worker *self, uint64_t *last, uint64_t value) {
    uint64_t name = value >> 32, number = value & UINT32_MAX;
    if (number <= last[name]) self->in_order = false;
    last[name] = number;
    self->sum += number;
    self->count++;
}

static void *consume(void *argument) {
    worker *self = argument;
    uint64_t value, last[PRODUCERS] = {0};
    for (;;) {
        rs_channel_waiter *waiter = rs_channel_waiter_new(NULL, 0, 0);
        rs_channel_answer answer = rs_channel_pop(self->channel, NULL, &value, waiter);
        if (answer == RS_CHANNEL_WAITS) {
            rs_channel_sleep(waiter, rs_clock_ns() + 50 * US); /* the time is up now and then */
            answer = rs_channel_leave(waiter, &value);
        }
        rs_channel_waiter_free(waiter);
        if (answer == RS_CHANNEL_CLOSED) return NULL;
        if (answer == RS_CHANNEL_DONE) got(self, last, value);
    }
}

/* A machine of its own, whose root pops. */
static void *consume_with_machine(void *argument) {
    worker *self = argument;
    uint64_t value, last[PRODUCERS] = {0};
    rs_machine *mine = rs_machine_new();
    rs_options options = rs_default_options();
    RS_ASSERT(rs_machine_open(mine, &rs_backend_epoll, &options) == 0);
    rs_channel_answer answer;
    do {
        rs_channel_waiter *waiter = rs_channel_waiter_new(mine, rs_strand_id(rs_running(mine)), mine->last_ticket + 1);
        answer = rs_channel_pop(self->channel, mine, &value, waiter);
        if (answer == RS_CHANNEL_WAITS) {
            RS_ASSERT(rs_park_begin(mine, RS_WAIT_CHANNEL, 0, RS_NEVER) == waiter->ticket);
            while (rs_next(mine).verdict != RS_RUN) rs_sleep(mine, RS_NEVER);
            rs_park_end(mine, NULL);
            answer = rs_channel_leave(waiter, &value);
            RS_ASSERT(answer != RS_CHANNEL_WAITS);
        }
        rs_channel_waiter_free(waiter);
        if (answer == RS_CHANNEL_DONE) got(self, last, value);
    } while (answer == RS_CHANNEL_DONE);
    rs_machine_close(mine);
    rs_machine_free(mine);
    return NULL;
}

static void between_threads(uint32_t capacity) {
    rs_channel *channel = rs_channel_new(capacity);
    void *(*const mains[])(void *) = {consume, consume, consume_with_machine, consume_with_machine};
    worker producers[PRODUCERS], consumers[4];
    pthread_t threads[PRODUCERS + 4];
    for (int i = 0; i < 4; i++) {
        consumers[i] = (worker){.channel = channel, .in_order = true};
        RS_ASSERT(pthread_create(&threads[PRODUCERS + i], NULL, mains[i], &consumers[i]) == 0);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (worker){.channel = channel, .name = (uint64_t)i, .in_order = true};
        RS_ASSERT(pthread_create(&threads[i], NULL, produce, &producers[i]) == 0);
    }
    for (int i = 0; i < PRODUCERS; i++) pthread_join(threads[i], NULL);
    rs_channel_close(channel, NULL);
    uint64_t sum = 0, count = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[PRODUCERS + i], NULL);
        CHECK(consumers[i].in_order);
        sum += consumers[i].sum;
        count += consumers[i].count;
    }
    for (int i = 0; i < PRODUCERS; i++) CHECK(producers[i].in_order);
    CHECK_EQUAL(PRODUCERS * PER_PRODUCER, count);
    CHECK_EQUAL((uint64_t)PRODUCERS * PER_PRODUCER * (PER_PRODUCER + 1) / 2, sum);
    CHECK_EQUAL(0, rs_channel_waiting(channel));
    CHECK_EQUAL(1, channel->references);
    rs_channel_release(channel);
}

TEST(each_value_arrives_once_between_threads_and_machines) {
    between_threads(1);
    between_threads(16);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
