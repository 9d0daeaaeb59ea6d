/* Who runs ahead of the others: strands spawned next, and those that are interrupted or woken first. */
#include "test.h"

#include "by_hand.h"

/* --- rs_spawn_next --- */

TEST(a_strand_that_is_spawned_next_runs_before_the_others_and_its_spawner_goes_on) {
    begin();
    rs_strand *caller = spawn(), *ready = spawn();
    CHECK(next() == caller);
    rs_strand *one = rs_spawn_next(machine, root_scope(), NULL);
    CHECK_EQUAL(RS_STRAND_NEW, one->state);
    CHECK(rs_running(machine) == caller);
    CHECK_EQUAL(RS_STRAND_RUNNING, caller->state);
    CHECK_EQUAL(3, root_scope()->live);
    rs_strand *other = rs_spawn_next(machine, root_scope(), NULL);
    rs_finish(machine);
    rs_strand *order[] = {other, one, ready};
    for (int i = 0; i < 3; i++) {
        CHECK(next() == order[i]);
        rs_finish(machine);
    }
    end();
}

/* As a strand hands over what it was to begin: in the middle of its wait, when none runs. */
TEST(a_strand_is_spawned_next_when_none_runs) {
    begin();
    rs_strand *caller = spawn(), *ready = spawn();
    CHECK(next() == caller);
    uint64_t ticket = park(0, RS_NEVER);
    rs_strand *heir = rs_spawn_next(machine, root_scope(), NULL);
    CHECK(next() == heir);
    rs_wake(machine, rs_strand_id(caller), ticket, RS_WAKE_VALUE, 0);
    rs_finish(machine);
    CHECK(next() == ready);
    rs_finish(machine);
    CHECK(next() == caller);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_finish(machine);
    end();
}

TEST(none_is_spawned_next_at_the_limit) {
    begin();
    machine->strands.slab.limit = 2;
    rs_strand *caller = spawn();
    CHECK(next() == caller);
    CHECK(rs_spawn_next(machine, root_scope(), NULL) == NULL);
    CHECK_EQUAL(1, root_scope()->live);
    CHECK(rs_running(machine) == caller);
    rs_finish(machine);
    CHECK(next() == NULL);
    end();
}

/* --- rs_interrupt_first --- */

static void give_back(rs_strand *strand) {
    CHECK_EQUAL(1, strand->interrupts);
    strand->interrupts = 0;
    rs_finish(machine);
}

static uint64_t park_as(rs_wait_kind wait, int64_t deadline_ns) { return rs_park_begin(machine, wait, 0, deadline_ns); }

TEST(an_interrupt_first_ends_a_wait_and_goes_ahead) {
    begin();
    rs_strand *target = spawn(), *caller = spawn(), *ready = spawn();
    CHECK(next() == target);
    park(0, rs_now(machine) + MS);
    CHECK(next() == caller);
    rs_interrupt_first(machine, target);
    CHECK(!machine->wakes_first);
    CHECK_EQUAL(0, machine->timers.len);
    rs_finish(machine);
    CHECK(next() == target);
    CHECK_EQUAL(RS_WAKE_INTERRUPT, park_end());
    give_back(target);
    CHECK(next() == ready);
    rs_finish(machine);
    end();
}

/* What it has waited for has come already, and the interrupt comes before its turn. */
TEST(an_interrupt_first_takes_the_place_of_a_wake_that_takes_nothing) {
    const rs_wait_kind waits[] = {RS_WAIT_SLEEP, RS_WAIT_EVALUATION};
    for (int i = 0; i < 2; i++) {
        begin();
        rs_strand *target = spawn(), *caller = spawn();
        CHECK(next() == target);
        uint64_t ticket = park_as(waits[i], RS_NEVER);
        CHECK(next() == caller);
        CHECK(rs_wake(machine, rs_strand_id(target), ticket, RS_WAKE_VALUE, 7));
        rs_interrupt_first(machine, target);
        rs_finish(machine);
        CHECK(next() == target);
        CHECK_EQUAL(RS_WAKE_INTERRUPT, park_end());
        give_back(target);
        end();
    }
}

TEST(an_interrupt_first_ends_a_yield) {
    begin();
    rs_strand *target = spawn(), *caller = spawn();
    CHECK(next() == target);
    rs_yield(machine);
    CHECK(next() == caller);
    rs_interrupt_first(machine, target);
    rs_finish(machine);
    CHECK(next() == target);
    CHECK_EQUAL(RS_WAKE_INTERRUPT, park_end());
    give_back(target);
    end();
}

/* An item, a lock or a permit may be its own by now: that is delivered, and the interrupt meets the next wait. */
TEST(an_interrupt_first_does_not_take_what_was_handed_over) {
    const rs_wait_kind waits[] = {RS_WAIT_LIST, RS_WAIT_SUSPEND, RS_WAIT_BLOCK, RS_WAIT_JOIN};
    for (int i = 0; i < 4; i++) {
        begin();
        rs_strand *target = spawn(), *caller = spawn();
        CHECK(next() == target);
        uint64_t ticket = park_as(waits[i], RS_NEVER);
        CHECK(next() == caller);
        CHECK(rs_wake(machine, rs_strand_id(target), ticket, RS_WAKE_VALUE, 7));
        rs_interrupt_first(machine, target);
        rs_finish(machine);
        CHECK(next() == target);
        int64_t result;
        CHECK_EQUAL(RS_WAKE_VALUE, rs_park_end(machine, &result));
        CHECK_EQUAL(7, result);
        CHECK_EQUAL(0, park(0, RS_NEVER));
        CHECK_EQUAL(RS_WAKE_INTERRUPT, machine->refusal);
        give_back(target);
        end();
    }
}

TEST(an_interrupt_first_of_one_under_a_shield_meets_the_first_wait_after_it) {
    begin();
    rs_strand *target = spawn(), *caller = spawn();
    CHECK(next() == target);
    rs_scope shield;
    rs_scope_open(machine, &shield, RS_NEVER, true);
    uint64_t ticket = park_as(RS_WAIT_SLEEP, RS_NEVER);
    CHECK(next() == caller);
    rs_interrupt_first(machine, target);
    CHECK_EQUAL(RS_STRAND_PARKED, target->state);
    CHECK(rs_wake(machine, rs_strand_id(target), ticket, RS_WAKE_VALUE, 0));
    rs_interrupt_first(machine, target);
    target->interrupts--;
    rs_finish(machine);
    CHECK(next() == target);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_scope_close(machine, &shield);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_INTERRUPT, machine->refusal);
    give_back(target);
    end();
}

TEST(an_interrupt_first_of_one_that_has_not_begun) {
    begin();
    rs_strand *caller = spawn(), *target = spawn();
    CHECK(next() == caller);
    rs_interrupt_first(machine, target);
    CHECK_EQUAL(RS_STRAND_NEW, target->state);
    rs_finish(machine);
    CHECK(next() == target);
    CHECK_EQUAL(RS_WAKE_INTERRUPT, rs_refusal(machine, 0));
    give_back(target);
    end();
}

/* --- over ops: readiness takes nothing either, bytes are taken --- */

static int pair[2];

/* The strand that runs makes a pipe. */
static void make_pipe(rs_strand *strand) {
    rs_request request = request_pipe(pair);
    rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(next_ever() == strand);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_op_end(machine, op);
}

static void write_to(rs_strand *strand, const char *text) {
    rs_request request = request_write(pair[1], text, strlen(text));
    rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(next_ever() == strand);
    park_end();
    rs_op_end(machine, op);
}

static void close_pipe(rs_strand *strand) {
    for (int i = 0; i < 2; i++) {
        rs_request request = request_close(pair[i]);
        rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
        CHECK(next_ever() == strand);
        park_end();
        rs_op_end(machine, op);
    }
}

/* The target waits for that request, what it waits for comes, and it is interrupted before its turn. How its wait ends. */
static rs_wake_kind interrupt_after(rs_request (*make)(void)) {
    rs_strand *caller = spawn();
    CHECK(next() == caller);
    make_pipe(caller);
    rs_strand *target = spawn();
    rs_yield(machine);
    CHECK(next() == target);
    rs_request request = make();
    rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(next() == caller);
    park_end();
    write_to(caller, "x");
    for (int i = 0; i < 10 && target->state == RS_STRAND_PARKED; i++) machine->backend->poll(machine);
    CHECK_EQUAL(RS_STRAND_READY, target->state);
    rs_interrupt_first(machine, target);
    rs_yield(machine);
    CHECK(next() == target);
    rs_wake_kind kind = park_end();
    rs_op_end(machine, op);
    give_back(target);
    CHECK(next_ever() == caller);
    park_end();
    close_pipe(caller);
    rs_finish(machine);
    return kind;
}

static char byte[1];
static rs_request for_readiness(void) { return request_poll(pair[0], 1); }
static rs_request for_bytes(void) { return request_read(pair[0], byte, 1); }

TEST(an_interrupt_first_takes_the_place_of_readiness) {
    begin();
    CHECK_EQUAL(RS_WAKE_INTERRUPT, interrupt_after(for_readiness));
    end();
}

TEST(an_interrupt_first_does_not_take_bytes) {
    begin();
    CHECK_EQUAL(RS_WAKE_VALUE, interrupt_after(for_bytes));
    CHECK_EQUAL('x', byte[0]);
    end();
}

/* --- rs_list_wake_all_first --- */

TEST(all_in_a_list_are_woken_first_in_their_order) {
    begin();
    rs_list list = {0};
    rs_strand *waiters[3];
    for (int i = 0; i < 3; i++) waiters[i] = spawn();
    for (int i = 0; i < 3; i++) {
        CHECK(next() == waiters[i]);
        park(0, RS_NEVER);
        rs_list_append(machine, &list, waiters[i], 0);
    }
    rs_strand *caller = spawn(), *ready = spawn();
    CHECK(next() == caller);
    rs_list_wake_all_first(machine, &list);
    CHECK_EQUAL(0, list.len);
    CHECK(!machine->wakes_first);
    rs_finish(machine);
    for (int i = 0; i < 3; i++) {
        CHECK(next() == waiters[i]);
        CHECK_EQUAL(RS_WAKE_VALUE, park_end());
        rs_finish(machine);
    }
    CHECK(next() == ready);
    rs_finish(machine);
    end();
}

TEST(nobody_is_woken_first_of_an_empty_list) {
    begin();
    rs_list list = {0};
    rs_strand *caller = spawn(), *ready = spawn();
    CHECK(next() == caller);
    rs_list_wake_all_first(machine, &list);
    CHECK(!machine->wakes_first);
    uint64_t ticket = park(0, RS_NEVER);
    CHECK(next() == ready);
    CHECK(rs_wake(machine, rs_strand_id(caller), ticket, RS_WAKE_VALUE, 0));
    rs_finish(machine);
    CHECK(next() == caller);
    park_end();
    rs_finish(machine);
    end();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
