/* Who is told, and in which order, where nobody will wake anybody. */
#include "test.h"

#include "by_hand.h"
#include "ringspun/core/deadlock.h"

#include <stdlib.h>

static uint32_t times_told;
static bool others_are_there;

static void raise_in_root(rs_machine *m, rs_strand *root) {
    CHECK(root == rs_root(m));
    times_told++;
    rs_interrupt(m, root);
}

static bool others_may_wake(rs_machine *m) { return m == machine && others_are_there; }

/* A machine whose root waits, for whatever it is, and is told of deadlocks. */
static void begin_told_with(const rs_sim_faults *faults, uint32_t flags) {
    static const rs_driver driver = {.others_may_wake = others_may_wake, .on_deadlock = raise_in_root};
    begin_with(faults);
    CHECK(rs_wake(machine, machine->root, root_ticket, RS_WAKE_VALUE, 0));
    CHECK(next() == rs_root(machine));
    park_end();
    rs_machine_drive(machine, &driver, NULL, NULL);
    park(flags, RS_NEVER);
    times_told = 0;
    others_are_there = false;
}

static void begin_told(uint32_t flags) { begin_told_with(&no_faults, flags); }

static rs_strand *waiter(uint32_t flags) {
    rs_strand *strand = spawn();
    CHECK(next() == strand);
    park(flags, RS_NEVER);
    return strand;
}

static void check_deadlock(void) { CHECK_EQUAL(RS_DEADLOCK, rs_next(machine).verdict); }

/* The root's wait has ended in that way: it runs, and what it was told of is raised. */
static void check_root_goes_on(rs_wake_kind kind) {
    CHECK(next() == rs_root(machine));
    CHECK_EQUAL(kind, park_end());
    for (rs_strand *root = rs_root(machine); root->interrupts > 0;) rs_take_interrupt(root);
    root_ticket = park(RS_PARK_SHIELDED, RS_NEVER);
}

static void wake_and_finish(rs_strand *strand) {
    CHECK(rs_wake(machine, rs_strand_id(strand), strand->ticket, RS_WAKE_VALUE, 0));
    CHECK(next() == strand);
    park_end();
    rs_finish(machine);
}

TEST(where_only_the_root_waits_it_is_told) {
    begin_told(0);
    check_deadlock();
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(1, times_told);
    check_root_goes_on(RS_WAKE_INTERRUPT);
    end();
}

TEST(the_root_is_told_first_and_the_others_wait_on) {
    begin_told(0);
    rs_strand *shielded = waiter(RS_PARK_SHIELDED), *plain = waiter(0);
    check_deadlock();
    CHECK(rs_break_deadlock(machine));
    check_root_goes_on(RS_WAKE_INTERRUPT);
    CHECK_EQUAL(RS_STRAND_PARKED, shielded->state);
    CHECK_EQUAL(RS_STRAND_PARKED, plain->state);
    wake_and_finish(shielded);
    wake_and_finish(plain);
    end();
}

TEST(where_the_root_joins_a_strand_it_is_told_and_the_strand_waits_on) {
    begin_told(0);
    rs_strand *joined = waiter(RS_PARK_SHIELDED);
    CHECK(rs_wake(machine, machine->root, rs_root(machine)->ticket, RS_WAKE_VALUE, 0));
    CHECK(next() == rs_root(machine));
    park_end();
    rs_park_begin(machine, RS_WAIT_JOIN, 0, RS_NEVER);
    rs_list_append(machine, &joined->joiners, rs_root(machine), 0);
    check_deadlock();
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(0, joined->joiners.len);
    check_root_goes_on(RS_WAKE_INTERRUPT);
    wake_and_finish(joined);
    end();
}

TEST(behind_a_shielded_root_all_others_are_cancelled_shielded_or_not) {
    begin_told(RS_PARK_SHIELDED);
    rs_strand *waiters[] = {waiter(RS_PARK_SHIELDED), waiter(0)};
    check_deadlock();
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(1, times_told);
    check_deadlock();
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(1, times_told);
    for (int i = 0; i < 2; i++) {
        CHECK(next() == waiters[i]);
        CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
        rs_finish(machine);
    }
    CHECK_EQUAL(RS_STRAND_PARKED, rs_root(machine)->state);
    root_ticket = rs_root(machine)->ticket;
    end();
}

TEST(the_next_deadlock_begins_with_the_root_again) {
    begin_told(RS_PARK_SHIELDED);
    rs_strand *other = waiter(RS_PARK_SHIELDED);
    for (uint32_t times = 1; times <= 2; times++) {
        for (int step = 0; step < 2; step++) {
            check_deadlock();
            CHECK(rs_break_deadlock(machine));
            CHECK_EQUAL(times, times_told);
        }
        CHECK(next() == other);
        CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
        if (times == 1) park(RS_PARK_SHIELDED, RS_NEVER);
    }
    rs_finish(machine);
    root_ticket = rs_root(machine)->ticket;
    end();
}

TEST(a_shielded_root_that_nobody_else_can_help_goes_on_in_the_end) {
    begin_told(RS_PARK_SHIELDED);
    for (int step = 0; step < 3; step++) {
        check_deadlock();
        CHECK(rs_break_deadlock(machine));
    }
    CHECK_EQUAL(1, times_told);
    check_root_goes_on(RS_WAKE_INTERRUPT);
    end();
}

/* The strand waits for what it asks for. */
static rs_op *ask(rs_request request) {
    rs_op *op = rs_op_start(machine, &request, RS_PARK_SHIELDED, RS_NEVER);
    CHECK(op != NULL);
    return op;
}

TEST(an_op_that_will_never_end_is_cancelled) {
    int pair[2];
    char byte;
    begin_told(RS_PARK_SHIELDED);
    rs_strand *reader = spawn();
    CHECK(next() == reader);
    rs_op *op = ask(request_pipe(pair));
    CHECK(next_ever() == reader);
    park_end();
    rs_op_end(machine, op);
    op = ask(request_read(pair[0], &byte, 1));
    CHECK(next_ever() == NULL);
    CHECK(rs_break_deadlock(machine));
    check_deadlock();
    CHECK(rs_break_deadlock(machine));
    CHECK(next_ever() == reader);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    rs_op_end(machine, op);
    rs_finish(machine);
    root_ticket = rs_root(machine)->ticket;
    end();
}

/* The step that has cancelled the op looks as if it had been in vain. */
TEST(after_an_op_that_ended_late_the_next_deadlock_begins_with_the_root_again) {
    int pair[2];
    char byte;
    const rs_sim_faults late = {.late_cancel = 1000, .delay_max_ns = MS};
    begin_told_with(&late, RS_PARK_SHIELDED);
    CHECK(rs_wake(machine, machine->root, rs_root(machine)->ticket, RS_WAKE_VALUE, 0));
    CHECK(next() == rs_root(machine));
    park_end();
    rs_op *op = ask(request_pipe(pair));
    CHECK(next_ever() == rs_root(machine));
    park_end();
    rs_op_end(machine, op);
    rs_request request = request_read(pair[0], &byte, 1);
    op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(next_ever() == NULL);
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(0, machine->strands.run_len);
    CHECK(next_ever() == rs_root(machine));
    CHECK_EQUAL(RS_WAKE_INTERRUPT, park_end());
    rs_op_end(machine, op);
    rs_take_interrupt(rs_root(machine));
    root_ticket = park(0, RS_NEVER);
    rs_strand *other = waiter(0);
    CHECK(next_ever() == NULL);
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(2, times_told);
    CHECK_EQUAL(RS_STRAND_PARKED, other->state);
    check_root_goes_on(RS_WAKE_INTERRUPT);
    wake_and_finish(other);
    end();
}

TEST(while_others_may_wake_somebody_nobody_is_told) {
    begin_told(0);
    others_are_there = true;
    for (int look = 0; look < 4; look++) {
        check_deadlock();
        CHECK(!rs_break_deadlock(machine));
    }
    CHECK_EQUAL(0, times_told);
    others_are_there = false;
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(1, times_told);
    check_root_goes_on(RS_WAKE_INTERRUPT);
    end();
}

TEST(what_the_last_of_the_others_has_left_is_looked_at_before_anybody_is_told) {
    begin_told(0);
    check_deadlock();
    rs_message *message = calloc(1, sizeof(*message));
    *message = (rs_message){.kind = RS_MESSAGE_NUDGE, .name = machine->root, .payload = rs_root(machine)->ticket};
    rs_send(machine, message);
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(0, times_told);
    check_root_goes_on(RS_WAKE_VALUE);
    end();
}

TEST(the_root_of_a_forked_child_is_the_strand_that_has_come_along) {
    begin_told(0);
    rs_strand *survivor = spawn();
    CHECK(next() == survivor);
    CHECK_EQUAL(0, rs_machine_forked(machine));
    CHECK(rs_is_root(machine, survivor));
    park(0, RS_NEVER);
    check_deadlock();
    CHECK(rs_break_deadlock(machine));
    CHECK_EQUAL(1, times_told);
    check_root_goes_on(RS_WAKE_INTERRUPT);
    CHECK(rs_wake(machine, machine->root, root_ticket, RS_WAKE_VALUE, 0));
    CHECK(next() == survivor);
    park_end();
    rs_finish(machine);
    CHECK(rs_root(machine) == NULL);
    rs_machine_close(machine);
    rs_machine_free(machine);
}

TEST(it_is_known_whether_somebody_waits_for_something) {
    begin_told(0);
    CHECK(rs_somebody_waits(machine, RS_WAIT_SUSPEND));
    CHECK(!rs_somebody_waits(machine, RS_WAIT_SLEEP));
    rs_strand *sleeper = spawn();
    CHECK(next() == sleeper);
    rs_park_begin(machine, RS_WAIT_SLEEP, 0, RS_NEVER);
    CHECK(rs_somebody_waits(machine, RS_WAIT_SLEEP));
    CHECK(rs_wake(machine, rs_strand_id(sleeper), sleeper->ticket, RS_WAKE_VALUE, 0));
    CHECK(!rs_somebody_waits(machine, RS_WAIT_SLEEP));
    CHECK(next() == sleeper);
    park_end();
    rs_finish(machine);
    root_ticket = rs_root(machine)->ticket;
    end();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
