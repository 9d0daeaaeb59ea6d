/* A machine in whole ticks: which strands go in a tick, and in which order. */
#include "test.h"

#include "by_hand.h"

#include <stdlib.h>

static void begin_ticks(void) {
    begin();
    rs_machine_run_in_whole_ticks(machine);
}

/* A strand that waits since the present tick. */
static rs_strand *parked(int64_t deadline_ns) {
    rs_strand *strand = rs_spawn_next(machine, root_scope(), NULL);
    CHECK(next() == strand);
    park(0, deadline_ns);
    return strand;
}

static void wake(rs_strand *strand) { CHECK(rs_wake(machine, rs_strand_id(strand), strand->ticket, RS_WAKE_VALUE, 0)); }

/* That strand is the next, and ends. */
static void ends_next(rs_strand *strand, rs_wake_kind wake) {
    CHECK(next() == strand);
    CHECK_EQUAL(wake, park_end());
    rs_finish(machine);
}

static void begins_and_ends_next(rs_strand *strand) {
    CHECK(next() == strand);
    rs_finish(machine);
}

TEST(in_whole_ticks_those_that_are_ready_go_before_those_whose_time_has_come) {
    begin_ticks();
    int64_t now_ns = rs_now(machine);
    rs_strand *late = parked(now_ns), *early = parked(now_ns - MS), *woken = parked(RS_NEVER);
    rs_strand *new = spawn();
    wake(woken);
    begins_and_ends_next(new);
    ends_next(woken, RS_WAKE_VALUE);
    ends_next(early, RS_WAKE_TIMEOUT);
    ends_next(late, RS_WAKE_TIMEOUT);
    CHECK(next() == NULL);
    end();
}

/* That strand is the next, and yields. */
static void yields_next(rs_strand *strand) {
    CHECK(next() == strand);
    if (strand->wait == RS_WAIT_YIELD) park_end();
    rs_yield(machine);
}

TEST(in_whole_ticks_nobody_passes_those_that_came_before) {
    begin_ticks();
    rs_strand *one = spawn(), *woken = parked(RS_NEVER), *other = spawn();
    wake(woken);
    rs_strand *last = spawn();
    yields_next(one);
    yields_next(other);
    ends_next(woken, RS_WAKE_VALUE);
    yields_next(last);
    yields_next(one);
    yields_next(other);
    for (int i = 0; i < 3; i++) {
        CHECK(next() != NULL);
        park_end();
        rs_finish(machine);
    }
    end();
}

/* They may end the wait that it limits. */
TEST(in_whole_ticks_a_timer_fires_when_those_before_it_have_had_their_turns) {
    begin_ticks();
    int64_t now_ns = rs_now(machine);
    rs_strand *first = parked(now_ns - MS), *second = parked(now_ns);
    CHECK(next() == first);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    CHECK_EQUAL(RS_STRAND_PARKED, second->state);
    wake(second);
    rs_finish(machine);
    ends_next(second, RS_WAKE_VALUE);
    end();
}

TEST(in_whole_ticks_what_is_added_goes_in_the_next_tick) {
    begin_ticks();
    int64_t now_ns = rs_now(machine);
    rs_strand *adder = spawn(), *timed = parked(now_ns);
    CHECK(next() == adder);
    rs_strand *added = spawn();
    park(0, now_ns); /* due at once, but set in this tick */
    ends_next(timed, RS_WAKE_TIMEOUT);
    begins_and_ends_next(added);
    ends_next(adder, RS_WAKE_TIMEOUT);
    end();
}

/* Those at the head of the queue by order of their caller. */
TEST(in_whole_ticks_who_is_spawned_next_goes_in_this_tick) {
    begin_ticks();
    rs_strand *caller = spawn(), *ready = spawn();
    CHECK(next() == caller);
    rs_strand *heir = rs_spawn_next(machine, root_scope(), NULL);
    rs_finish(machine);
    begins_and_ends_next(heir);
    begins_and_ends_next(ready);
    end();
}

TEST(in_whole_ticks_a_message_from_outside_goes_first) {
    begin_ticks();
    rs_strand *first = parked(RS_NEVER), *second = parked(RS_NEVER), *ready = spawn();
    rs_strand *order[] = {first, second};
    for (int i = 0; i < 2; i++) {
        rs_message *message = calloc(1, sizeof(*message));
        *message = (rs_message){.kind = RS_MESSAGE_NUDGE, .name = rs_strand_id(order[i]), .payload = order[i]->ticket};
        rs_send(machine, message);
    }
    ends_next(first, RS_WAKE_VALUE);
    ends_next(second, RS_WAKE_VALUE);
    begins_and_ends_next(ready);
    end();
}

/* What is added now goes in the next tick, so it does not come right behind these. */
TEST(in_whole_ticks_none_is_the_last_when_the_tick_is_settled) {
    begin_ticks();
    rs_strand *one = spawn(), *other = spawn();
    CHECK(rs_run_last(&machine->strands) == other);
    CHECK(next() == one);
    CHECK(rs_run_last(&machine->strands) == NULL);
    rs_strand *added = spawn();
    CHECK(rs_run_last(&machine->strands) == added);
    rs_finish(machine);
    begins_and_ends_next(other);
    begins_and_ends_next(added);
    end();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
