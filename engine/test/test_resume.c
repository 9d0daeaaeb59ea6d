/* Waits that the program ends with a value of its own. */
#include "test.h"

#include "by_hand.h"

/* A strand in a resumable wait, beside the root. */
static rs_strand *wait_resumable(int64_t deadline_ns) {
    begin();
    rs_strand *strand = spawn();
    CHECK(next() == strand);
    rs_make_resumable(strand, rs_next_ticket(machine));
    park(0, deadline_ns);
    return strand;
}

static void finish(rs_strand *strand) {
    CHECK(next() == strand);
    park_end();
    rs_finish(machine);
    end();
}

TEST(a_resumed_wait_ends_once) {
    rs_strand *strand = wait_resumable(RS_NEVER);
    CHECK(rs_may_resume(machine, rs_strand_id(strand)) == RS_RESUMED);
    CHECK(rs_resume(machine, rs_strand_id(strand)) == RS_RESUMED);
    CHECK(rs_resume(machine, rs_strand_id(strand)) == RS_ENDED_ALREADY);
    CHECK(next() == strand);
    CHECK(park_end() == RS_WAKE_VALUE);
    CHECK(rs_was_resumed(machine, RS_WAKE_VALUE));
    CHECK(!rs_was_resumed(machine, RS_WAKE_VALUE));
    rs_finish(machine);
    end();
}

TEST(only_a_wait_that_was_made_resumable_can_be_resumed) {
    rs_strand *strand = wait_resumable(RS_NEVER);
    rs_resume(machine, rs_strand_id(strand));
    CHECK(next() == strand);
    park_end();
    CHECK(rs_may_resume(machine, rs_strand_id(strand)) == RS_NOT_WAITING);
    park(0, RS_NEVER);
    CHECK(rs_resume(machine, rs_strand_id(strand)) == RS_NOT_WAITING);
    CHECK(rs_wake(machine, rs_strand_id(strand), strand->ticket, RS_WAKE_VALUE, 0));
    finish(strand);
}

TEST(one_whose_time_is_up_can_be_resumed_until_it_goes_on) {
    begin();
    rs_strand *other = spawn(), *strand = spawn();
    int64_t now_ns = rs_now(machine);
    CHECK(next() == other);
    park(0, now_ns + 1000);
    CHECK(next() == strand);
    rs_make_resumable(strand, rs_next_ticket(machine));
    park(0, now_ns + 1001);
    rs_sleep(machine, now_ns + 2000);
    CHECK(next() == other);
    park_end();
    CHECK(strand->state == RS_STRAND_READY && strand->wake == RS_WAKE_TIMEOUT);
    CHECK(rs_resume(machine, rs_strand_id(strand)) == RS_RESUMED);
    rs_finish(machine);
    CHECK(next() == strand);
    CHECK(rs_was_resumed(machine, park_end()));
    rs_finish(machine);
    end();
}

TEST(one_that_was_cancelled_cannot_be_resumed) {
    rs_strand *strand = wait_resumable(RS_NEVER);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK(rs_resume(machine, rs_strand_id(strand)) == RS_ENDED_ALREADY);
    CHECK(next() == strand);
    CHECK(!rs_was_resumed(machine, park_end()));
    rs_finish(machine);
    end();
}

TEST(one_that_gives_way_can_be_resumed_until_its_turn) {
    begin();
    rs_strand *strand = spawn(), *other = spawn();
    CHECK(next() == strand);
    rs_yield(machine);
    rs_make_resumable(strand, strand->ticket);
    CHECK(next() == other);
    CHECK(rs_resume(machine, rs_strand_id(strand)) == RS_RESUMED);
    rs_finish(machine);
    CHECK(next() == strand);
    CHECK(rs_was_resumed(machine, park_end()));
    rs_finish(machine);
    end();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
