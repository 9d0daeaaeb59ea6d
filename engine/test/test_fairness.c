/* Whose turn it is where turns are long: virtual time passes while a strand runs, as if it computed. */
#include "test.h"

#include "by_hand.h"

/* One turn of that length of the next strand. */
static rs_strand *turn(int64_t takes_ns) {
    rs_strand *strand = next();
    if (strand) rs_sim_advance(machine, takes_ns);
    return strand;
}

static rs_strand *sleeper(int64_t delay_ns) {
    rs_strand *strand = spawn();
    CHECK(next() == strand);
    park(0, rs_now(machine) + delay_ns);
    return strand;
}

static void sleep_again(int64_t delay_ns) {
    park_end();
    park(0, rs_now(machine) + delay_ns);
}

static void finish_all(void) {
    for (rs_strand *strand; (strand = next_ever());) {
        if (strand->wait != RS_WAIT_NONE) park_end();
        rs_finish(machine);
    }
    end();
}

TEST(after_a_long_turn_the_next_look_is_due_at_once) {
    begin();
    rs_strand *ticker = sleeper(50 * MS);
    for (int i = 0; i < 2; i++) spawn();
    for (int tick = 0; tick < 20; tick++) {
        rs_strand *strand = turn(100 * MS);
        CHECK(strand != ticker);
        if (strand->wait != RS_WAIT_NONE) park_end();
        rs_yield(machine);
        CHECK(next() == ticker);
        sleep_again(50 * MS);
    }
    CHECK(machine->metrics.polls < 45);
    finish_all();
}

static void who_is_unblocked_runs_and_then_its_caller(int others) {
    begin();
    rs_strand *ticker = sleeper(50 * MS), *blocked = spawn();
    CHECK(next() == blocked);
    rs_park_begin(machine, RS_WAIT_BLOCK, 0, RS_NEVER);
    rs_strand *caller = spawn();
    for (int i = 0; i < others; i++) spawn();
    CHECK(turn(100 * MS) == caller);
    CHECK(rs_unblock_first(machine, blocked));
    CHECK(!rs_unblock_first(machine, blocked));
    rs_yield_to_first(machine);
    CHECK(turn(100 * MS) == blocked);
    park_end();
    rs_finish(machine);
    CHECK(next() == caller);
    park_end();
    park(0, RS_NEVER);
    CHECK(next() == ticker);
    park_end();
    rs_finish(machine);
    rs_wake(machine, rs_strand_id(caller), caller->ticket, RS_WAKE_VALUE, 0);
    finish_all();
}

TEST(whoever_resumes_another_strand_goes_on_behind_it_and_ahead_of_all_others) {
    for (int others = 0; others < 3; others++) who_is_unblocked_runs_and_then_its_caller(others);
}

TEST(the_end_of_a_long_turn_that_waits_or_ends_is_no_different) {
    begin();
    rs_strand *ticker = sleeper(50 * MS), *first = spawn(), *second = spawn(), *third = spawn();
    CHECK(turn(100 * MS) == first);
    park(0, RS_NEVER);
    CHECK(next() == ticker);
    sleep_again(50 * MS);
    CHECK(turn(100 * MS) == second);
    rs_finish(machine);
    CHECK(next() == ticker);
    sleep_again(50 * MS);
    CHECK(next() == third);
    rs_finish(machine);
    rs_wake(machine, rs_strand_id(first), first->ticket, RS_WAKE_VALUE, 0);
    finish_all();
}

TEST(who_is_woken_goes_before_those_that_are_new) {
    begin();
    rs_strand *ticker = sleeper(50 * MS), *fresh[50];
    for (int i = 0; i < 50; i++) fresh[i] = spawn();
    for (int i = 0, ticks = 0; i < 50; i++) {
        rs_strand *strand = turn(20 * MS);
        if (strand == ticker) {
            ticks++;
            sleep_again(50 * MS);
            strand = turn(20 * MS);
        }
        CHECK(strand == fresh[i]);
        rs_finish(machine);
        if (i == 49) CHECK(ticks >= 16);
    }
    finish_all();
}

/* All of them at every look. */
/* Its time comes at once, before anybody else has had a turn, and then nothing is left that a later look could bring. */
TEST(who_is_woken_right_behind_its_own_turn_waits_for_one_turn) {
    begin();
    rs_strand *ticker = sleeper(50 * MS), *fresh[5];
    for (int i = 0; i < 5; i++) fresh[i] = spawn();
    for (int i = 0; i < 5; i++) {
        CHECK(turn(100 * MS) == fresh[i]);
        rs_finish(machine);
        CHECK(next() == ticker);
        sleep_again(50 * MS);
        rs_sim_advance(machine, 100 * MS);
    }
    finish_all();
}

TEST(a_flood_of_wakes_starves_nobody) {
    enum { FLOOD = 20, BUSY = 3, TURNS = 600 };
    begin();
    rs_strand *busy[BUSY];
    int turns_of[BUSY] = {0}, since = 0;
    for (int i = 0; i < FLOOD; i++) sleeper(MS);
    for (int i = 0; i < BUSY; i++) busy[i] = spawn();
    for (int i = 0; i < TURNS; i++) {
        rs_strand *strand = turn(5 * MS);
        int at = 0;
        while (at < BUSY && busy[at] != strand) at++;
        if (at == BUSY) {
            sleep_again(MS);
            CHECK(++since <= FLOOD);
            continue;
        }
        since = 0;
        turns_of[at]++;
        if (strand->wait != RS_WAIT_NONE) park_end();
        rs_yield(machine);
    }
    for (int i = 0; i < BUSY; i++) CHECK(turns_of[i] >= TURNS / (FLOOD + 1) / BUSY);
    finish_all();
}

/* Two that wake each other all the time do not keep a third from its turns, and it does not hold them up either. */
TEST(between_two_looks_all_have_their_turn_in_order) {
    begin();
    rs_strand *one = spawn(), *other = spawn(), *busy = spawn();
    CHECK(next() == one);
    park(0, RS_NEVER);
    CHECK(next() == other);
    park(0, RS_NEVER);
    CHECK(next() == busy);
    rs_wake(machine, rs_strand_id(one), one->ticket, RS_WAKE_VALUE, 0);
    rs_yield(machine);
    for (int i = 0; i < 200; i++) {
        rs_strand *waker = i % 2 ? other : one, *woken = i % 2 ? one : other;
        CHECK(next() == waker);
        park_end();
        rs_wake(machine, rs_strand_id(woken), woken->ticket, RS_WAKE_VALUE, 0);
        park(0, RS_NEVER);
        CHECK(next() == busy);
        park_end();
        rs_yield(machine);
    }
    CHECK(next() == one);
    park_end();
    rs_finish(machine);
    rs_wake(machine, rs_strand_id(other), other->ticket, RS_WAKE_VALUE, 0);
    finish_all();
}

/* Whoever yields goes on when all that were ready have run, however many look and are woken meanwhile. */
TEST(who_yields_lets_all_that_are_ready_go_first) {
    enum { READY = 200 };
    begin();
    rs_strand *ready[READY];
    for (int i = 0; i < READY; i++) {
        ready[i] = spawn();
        CHECK(next() == ready[i]);
        park(0, RS_NEVER);
    }
    rs_strand *ticker = sleeper(MS), *yields = spawn();
    for (int i = 0; i < READY; i++) rs_wake(machine, rs_strand_id(ready[i]), ready[i]->ticket, RS_WAKE_VALUE, 0);
    int before = 0;
    for (rs_strand *strand; (strand = turn(MS)) != yields || strand->wait == RS_WAIT_NONE;) {
        if (strand == yields) {
            rs_yield(machine);
            continue;
        }
        park_end();
        if (strand == ticker) park(0, rs_now(machine) + MS);
        else before++, rs_finish(machine);
    }
    CHECK_EQUAL(READY, before);
    park_end();
    rs_finish(machine);
    finish_all();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
