/* When a strand that never has to wait lets others run. */
#include "test.h"

#include "by_hand.h"

/* A strand runs, beside the root, which waits. */
static rs_strand *begin_turn(void) {
    begin();
    rs_strand *strand = spawn();
    CHECK(next() == strand);
    return strand;
}

static void finish(void) {
    rs_finish(machine);
    end();
}

static void move(uint64_t bytes) { machine->turn.bytes += bytes; }

/* How many ops the strand does before the one that is to wait for the others, each moving that much. */
static int ops_in_turn(uint64_t bytes) {
    int ops = 0;
    for (; !rs_turn_ends(machine); ops++) move(bytes);
    return ops;
}

static void yield_and_go_on(rs_strand *strand) {
    rs_yield(machine);
    CHECK(next() == strand);
    park_end();
}

TEST(a_turn_has_eight_ops_and_the_next_begins_after_a_yield) {
    rs_strand *strand = begin_turn();
    for (int turn = 0; turn < 3; turn++) {
        CHECK_EQUAL(8, ops_in_turn(1));
        yield_and_go_on(strand);
    }
    finish();
}

TEST(a_turn_ends_with_a_park_too) {
    rs_strand *strand = begin_turn();
    CHECK_EQUAL(8, ops_in_turn(1));
    uint64_t ticket = park(0, RS_NEVER);
    CHECK(rs_wake(machine, rs_strand_id(strand), ticket, RS_WAKE_VALUE, 0));
    CHECK(next() == strand);
    park_end();
    CHECK_EQUAL(8, ops_in_turn(1));
    finish();
}

TEST(a_turn_ends_when_it_has_moved_enough) {
    rs_strand *strand = begin_turn();
    CHECK_EQUAL(1, ops_in_turn(65536));
    yield_and_go_on(strand);
    CHECK_EQUAL(2, ops_in_turn(32768));
    finish();
}

TEST(writes_that_are_work_for_nobody_go_on_for_long) {
    begin_turn();
    int ops = 0;
    for (; ops < 100 && !rs_turn_ends(machine); ops++) {
        machine->turn.quiet_writes++;
        machine->turn.timed_from_ns = rs_clock_ns() + SECOND; /* that no busy computer ends it */
    }
    CHECK_EQUAL(100, ops);
    machine->turn.timed_from_ns = rs_clock_ns() - SECOND;
    for (; !rs_turn_ends(machine); ops++) machine->turn.quiet_writes++;
    CHECK_EQUAL(103, ops); /* the clock is looked at for every eighth */
    finish();
}

TEST(quiet_writes_have_an_end_of_their_own) {
    begin_turn();
    int ops = 0;
    for (; !rs_turn_ends(machine); ops++) {
        machine->turn.quiet_writes++;
        machine->turn.timed_from_ns = rs_clock_ns() + SECOND;
    }
    CHECK_EQUAL(1024, ops);
    finish();
}

TEST(a_turn_does_not_end_under_a_lock_but_on_the_way_to_the_next) {
    rs_strand *strand = begin_turn();
    CHECK(!rs_turn_ends_at_lock(machine));
    rs_lock_taken(strand);
    for (int i = 0; i < 100; i++) CHECK(!rs_turn_ends(machine));
    CHECK(!rs_turn_ends_at_lock(machine)); /* a second lock inside the first */
    rs_lock_given(strand);
    CHECK(rs_turn_ends_at_lock(machine));
    yield_and_go_on(strand);
    CHECK(!rs_turn_ends_at_lock(machine));
    finish();
}

TEST(under_a_lock_it_ends_all_the_same_after_very_many) {
    rs_strand *strand = begin_turn();
    rs_lock_taken(strand);
    CHECK_EQUAL(512, ops_in_turn(1));
    rs_lock_given(strand);
    finish();
}

/* A strand that has computed for longer than others should wait, with a sleeper that a look may wake. */
static rs_strand *begin_long_turn(void) {
    begin();
    rs_strand *sleeper = spawn(), *strand = spawn();
    CHECK(next() == sleeper);
    park(0, rs_now(machine) + SECOND);
    CHECK(next() == strand);
    rs_sim_advance(machine, 20 * MS);
    return strand;
}

static void finish_long_turn(void) {
    rs_finish(machine);
    CHECK(next_ever() != NULL);
    park_end();
    finish();
}

TEST(who_has_computed_for_long_does_one_op_no_more) {
    begin_long_turn();
    CHECK(rs_turn_ends(machine));
    finish_long_turn();
}

TEST(who_has_computed_for_long_looks_no_more_at_any_op) {
    begin_long_turn();
    CHECK(rs_turn_ends(machine));
    CHECK(!rs_turn_ends(machine)); /* the clock is not read for each */
    CHECK(rs_turn_ends_at_look(machine));
    finish_long_turn();
}

/* How many turns of it end before one raises the cancellation. */
static int turns_of_cancelled(rs_strand *strand) {
    for (int turns = 0;; turns++) {
        CHECK_EQUAL(8, ops_in_turn(1));
        if (rs_turn_refusal(machine) != RS_WAKE_VALUE) return turns;
        yield_and_go_on(strand);
    }
}

TEST(a_cancelled_strand_that_never_waits_meets_that_once) {
    rs_strand *strand = begin_turn();
    CHECK_EQUAL(8, ops_in_turn(1));
    CHECK_EQUAL(RS_WAKE_VALUE, rs_turn_refusal(machine));
    yield_and_go_on(strand);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(127, turns_of_cancelled(strand));
    rs_cancellation_met(machine);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQUAL(RS_WAKE_VALUE, rs_turn_refusal(machine));
        yield_and_go_on(strand);
    }
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    finish();
}

TEST(each_cancellation_is_met_and_scopes_inside_are_of_the_same) {
    rs_strand *strand = begin_turn();
    rs_scope limit, inner;
    rs_scope_open(machine, &limit, RS_NEVER, false);
    rs_scope_cancel(machine, &limit, RS_CANCELLED_BY_DEADLINE);
    CHECK_EQUAL(127, turns_of_cancelled(strand));
    rs_cancellation_met(machine);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_turn_refusal(machine));
    rs_scope_close(machine, &inner);
    rs_scope_close(machine, &limit);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    for (int turn = 0; turn < 127; turn++) {
        rs_scope_open(machine, &inner, RS_NEVER, false);
        CHECK_EQUAL(RS_WAKE_VALUE, rs_turn_refusal(machine));
        rs_scope_close(machine, &inner);
    }
    rs_scope_open(machine, &inner, RS_NEVER, false);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_turn_refusal(machine));
    rs_scope_close(machine, &inner);
    finish();
}

/* Others have had no turn between the two. */
TEST(a_strand_that_runs_first_does_not_end_the_turn_of_its_caller) {
    rs_strand *caller = begin_turn();
    for (int i = 0; i < 6; i++) CHECK(!rs_turn_ends(machine));
    CHECK(rs_spawn_first(machine, root_scope(), NULL) != NULL);
    rs_turn paused = rs_turn_pause(machine);
    for (int i = 0; i < 7; i++) CHECK(!rs_turn_ends(machine)); /* it has a turn of its own */
    rs_turn_end(&machine->turn);
    rs_finish(machine);
    CHECK(next() == caller);
    park_end();
    rs_turn_go_on(machine, &paused);
    CHECK_EQUAL(2, ops_in_turn(1));
    finish();
}

TEST(what_the_caller_moved_before_counts_on) {
    rs_strand *caller = begin_turn();
    CHECK(!rs_turn_ends(machine));
    move(65535);
    CHECK(rs_spawn_first(machine, root_scope(), NULL) != NULL);
    rs_turn paused = rs_turn_pause(machine);
    CHECK(!rs_turn_ends(machine));
    rs_turn_end(&machine->turn);
    rs_finish(machine);
    CHECK(next() == caller);
    park_end();
    rs_turn_go_on(machine, &paused);
    CHECK_EQUAL(1, ops_in_turn(1));
    finish();
}

int main(int argc, char **argv) { return test_main(argc, argv); }

/* --- what is called when the tick ends --- */

static rs_links tick_ends;
static uintptr_t called, due;

static void add_up(uintptr_t data) { due += data; }

static void look_what_is_due(uintptr_t data) {
    static const uintptr_t expected[] = {[1] = 2 + 3, [2] = 3 + 4, [3] = 4, [4] = 0};
    called = called * 10 + data;
    due = 0;
    rs_tick_ends_visit(&tick_ends, add_up);
    CHECK_EQUAL(expected[data], due);
    if (data == 1) CHECK(rs_tick_ends_add(&tick_ends, look_what_is_due, 4));
}

TEST(what_is_still_to_be_called_is_visited_meanwhile) {
    tick_ends = (rs_links){0};
    called = 0;
    for (uintptr_t data = 1; data <= 3; data++) CHECK(rs_tick_ends_add(&tick_ends, look_what_is_due, data));
    rs_tick_ends_call(&tick_ends);
    CHECK_EQUAL(123, called);
    rs_tick_ends_call(&tick_ends);
    CHECK_EQUAL(1234, called);
    rs_tick_ends_call(&tick_ends);
    CHECK_EQUAL(1234, called);
}
