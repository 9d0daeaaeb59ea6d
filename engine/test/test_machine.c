/* The machine's rules, one by one, on a simulated kernel without faults. */
#include "test.h"

#include "by_hand.h"

#include <sys/wait.h>
#include <unistd.h>

/* --- tickets --- */

TEST(one_wake_per_park_is_accepted) {
    begin();
    rs_strand *strand = spawn();
    rs_id id = rs_strand_id(strand);
    CHECK(!rs_wake(machine, id, 0, RS_WAKE_VALUE, 1));
    CHECK(next() == strand);
    uint64_t first = park(0, RS_NEVER);
    CHECK(!rs_wake(machine, id, first + 1, RS_WAKE_VALUE, 1));
    CHECK(rs_wake(machine, id, first, RS_WAKE_TIMEOUT, 42));
    CHECK(!rs_wake(machine, id, first, RS_WAKE_VALUE, 43));
    CHECK(next() == strand);
    CHECK(!rs_wake(machine, id, first, RS_WAKE_VALUE, 44));
    int64_t result;
    CHECK_EQUAL(RS_WAKE_TIMEOUT, rs_park_end(machine, &result));
    CHECK_EQUAL(42, result);
    /* What was meant for the first wait does not end the second. */
    uint64_t second = park(0, RS_NEVER);
    CHECK(second != first);
    CHECK(!rs_wake(machine, id, first, RS_WAKE_VALUE, 45));
    CHECK_EQUAL(RS_STRAND_PARKED, strand->state);
    CHECK_EQUAL(5, machine->metrics.wakes_dropped);
    rs_wake(machine, id, second, RS_WAKE_VALUE, 0);
    CHECK(next() == strand);
    park_end();
    rs_finish(machine);
    CHECK(!rs_wake(machine, id, second, RS_WAKE_VALUE, 0));
    /* Nor does it wake whoever has the slot next. */
    rs_strand *heir = spawn();
    CHECK(heir == strand);
    CHECK(next() == heir);
    uint64_t third = park(0, RS_NEVER);
    CHECK(!rs_wake(machine, id, third, RS_WAKE_VALUE, 0));
    CHECK(rs_wake(machine, rs_strand_id(heir), third, RS_WAKE_VALUE, 0));
    next();
    park_end();
    rs_finish(machine);
    end();
}

TEST(a_timeout_that_lost_does_not_end_the_next_wait) {
    begin();
    rs_strand *strand = spawn();
    next();
    int64_t start_ns = rs_now(machine);
    uint64_t ticket = park(0, start_ns + 5 * MS);
    rs_wake(machine, rs_strand_id(strand), ticket, RS_WAKE_VALUE, 0);
    next();
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK_EQUAL(0, machine->timers.len);
    park(0, start_ns + 100 * MS);
    CHECK(next_ever() == strand);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    CHECK_EQUAL(start_ns + 100 * MS, rs_now(machine));
    rs_finish(machine);
    end();
}

TEST(a_wake_takes_its_strand_out_of_the_list) {
    begin();
    rs_list list = {0};
    rs_strand *strands[3];
    for (int i = 0; i < 3; i++) strands[i] = spawn();
    for (int i = 0; i < 3; i++) {
        CHECK(next() == strands[i]);
        park(0, i == 1 ? rs_now(machine) + MS : RS_NEVER);
        rs_list_append(machine, &list, strands[i], 10 + (uint64_t)i);
    }
    CHECK(next_ever() == strands[1]);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    CHECK_EQUAL(2, list.len);
    CHECK(strands[1]->waiter.list == NULL);
    rs_finish(machine);
    CHECK_EQUAL(10, rs_list_first(machine, &list)->waiter.tag);
    CHECK_EQUAL(rs_strand_id(strands[0]), rs_list_wake_first(machine, &list, 7));
    CHECK_EQUAL(1, rs_list_wake_all(machine, &list, 8));
    CHECK_EQUAL(RS_NO_ID, rs_list_wake_first(machine, &list, 9));
    for (int i = 0; i < 3; i += 2) {
        int64_t result;
        CHECK(next() == strands[i]);
        CHECK_EQUAL(RS_WAKE_VALUE, rs_park_end(machine, &result));
        CHECK_EQUAL(i == 0 ? 7 : 8, result);
        rs_finish(machine);
    }
    end();
}

TEST(joiners_and_the_owner_of_a_scope_hear_of_the_end) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope;
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_strand *child = spawn_into(&scope), *joiner = spawn();
    CHECK_EQUAL(1, scope.live);
    rs_park_begin(machine, RS_WAIT_SCOPE, 0, RS_NEVER);
    rs_list_append(machine, &scope.waiters, owner, 0);
    CHECK(next() == child);
    rs_yield(machine);
    CHECK(next() == joiner);
    rs_park_begin(machine, RS_WAIT_JOIN, 0, RS_NEVER);
    rs_list_append(machine, &child->joiners, joiner, 0);
    CHECK(next() == child);
    park_end();
    rs_finish(machine);
    CHECK(next() == joiner);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_finish(machine);
    CHECK(next() == owner);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    end();
}

/* --- switching --- */

TEST(a_displaced_strand_goes_to_the_head) {
    begin();
    rs_strand *first = spawn(), *second = spawn();
    CHECK(next() == first);
    rs_displaced(machine);
    CHECK_EQUAL(RS_STRAND_READY, first->state);
    CHECK(next() == first);
    CHECK_EQUAL(RS_STRAND_RUNNING, first->state);
    rs_displaced(machine);
    /* With none running there is nothing to displace. */
    rs_displaced(machine);
    CHECK(next() == first);
    /* Between a wake and its turn, a strand may be displaced as well. */
    uint64_t ticket = park(0, RS_NEVER);
    CHECK(next() == second);
    rs_wake(machine, rs_strand_id(first), ticket, RS_WAKE_VALUE, 0);
    rs_displaced(machine);
    CHECK(next() == second);
    rs_finish(machine);
    CHECK(next() == first);
    park_end();
    rs_finish(machine);
    end();
}

TEST(a_yield_goes_to_the_end) {
    begin();
    rs_strand *first = spawn(), *second = spawn();
    CHECK(next() == first);
    rs_yield(machine);
    CHECK(next() == second);
    rs_yield(machine);
    CHECK(next() == first);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_finish(machine);
    CHECK(next() == second);
    park_end();
    rs_finish(machine);
    end();
}

/* --- unblock --- */

static uint64_t block(int64_t deadline_ns) { return rs_park_begin(machine, RS_WAIT_BLOCK, 0, deadline_ns); }

TEST(unblock_wakes_a_blocked_strand_once) {
    begin();
    rs_strand *strand = spawn();
    next();
    block(RS_NEVER);
    CHECK(rs_unblock(machine, strand));
    CHECK(!rs_unblock(machine, strand));
    CHECK(next() == strand);
    CHECK(!rs_unblock(machine, strand));
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK(!strand->permit);
    CHECK_EQUAL(2, machine->metrics.wakes_dropped);
    rs_finish(machine);
    end();
}

TEST(unblock_wins_over_a_timeout_that_was_first) {
    begin();
    rs_strand *strand = spawn(), *other = spawn();
    next();
    block(rs_now(machine) + MS);
    CHECK(next() == other);
    park(0, rs_now(machine) + MS);
    CHECK(next_ever() == strand);
    /* Switched in, and still inside the hook. */
    CHECK(!rs_unblock(machine, strand));
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_finish(machine);
    CHECK(next() == other);
    park_end();
    rs_finish(machine);
    end();
}

TEST(unblock_wins_over_a_cancellation_which_stays_pending) {
    begin();
    rs_strand *strand = spawn();
    next();
    block(RS_NEVER);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_STRAND_READY, strand->state);
    CHECK(!rs_unblock(machine, strand));
    CHECK(next() == strand);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    rs_finish(machine);
    end();
}

TEST(unblock_wins_over_an_interrupt_which_stays_pending) {
    begin();
    rs_strand *strand = spawn();
    next();
    block(RS_NEVER);
    rs_interrupt(machine, strand);
    rs_unblock(machine, strand);
    CHECK(next() == strand);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK_EQUAL(0, block(RS_NEVER));
    CHECK_EQUAL(RS_WAKE_INTERRUPT, machine->refusal);
    rs_finish(machine);
    end();
}

TEST(unblock_before_the_park_is_a_permit_for_the_next_block_only) {
    begin();
    rs_strand *strand = spawn();
    next();
    CHECK(!rs_unblock(machine, strand));
    CHECK(!rs_unblock(machine, strand));
    /* Another kind of wait leaves it alone. */
    park(0, rs_now(machine) + MS);
    CHECK(next_ever() == strand);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    CHECK_EQUAL(0, block(RS_NEVER));
    CHECK_EQUAL(RS_WAKE_VALUE, machine->refusal);
    CHECK_EQUAL(RS_STRAND_RUNNING, strand->state);
    CHECK(block(RS_NEVER) != 0);
    CHECK(rs_unblock(machine, strand));
    next();
    park_end();
    /* For one who is displaced on its way there, too. */
    rs_displaced(machine);
    rs_unblock(machine, strand);
    CHECK(next() == strand);
    CHECK_EQUAL(0, block(RS_NEVER));
    CHECK_EQUAL(RS_WAKE_VALUE, machine->refusal);
    /* Even for one who is cancelled: the lock is his already. */
    rs_unblock(machine, strand);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, block(RS_NEVER));
    CHECK_EQUAL(RS_WAKE_VALUE, machine->refusal);
    CHECK_EQUAL(0, block(RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    rs_finish(machine);
    end();
}

TEST(unblock_of_another_kind_of_wait_is_dropped) {
    begin();
    rs_strand *strand = spawn();
    CHECK(!rs_unblock(machine, strand));
    next();
    uint64_t ticket = park(0, RS_NEVER);
    CHECK(!rs_unblock(machine, strand));
    CHECK_EQUAL(RS_STRAND_PARKED, strand->state);
    rs_wake(machine, rs_strand_id(strand), ticket, RS_WAKE_VALUE, 0);
    CHECK(!rs_unblock(machine, strand));
    next();
    CHECK(!rs_unblock(machine, strand));
    park_end();
    CHECK(!strand->permit);
    rs_finish(machine);
    end();
}

/* As another thread sends it, which has seen that ticket. */
static void send_unblock(const rs_strand *strand, uint64_t ticket) {
    rs_send(machine, rs_message_new(RS_MESSAGE_UNBLOCK, rs_strand_id(strand), ticket));
}

/* Also again and again: what has come can be sent anew. */
TEST(an_unblock_comes_from_a_thread_without_memory) {
    begin();
    rs_strand *strand = spawn();
    next();
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t ticket = block(RS_NEVER);
        rs_tries_left = 0;
        send_unblock(strand, ticket);
        send_unblock(strand, ticket);
        rs_tries_left = -1;
        CHECK(next_ever() == strand);
        CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    }
    rs_finish(machine);
    end();
}

TEST(a_late_unblock_ends_the_wait_that_it_has_seen) {
    begin();
    rs_strand *strand = spawn();
    next();
    uint64_t ticket = block(RS_NEVER);
    CHECK(!rs_unblock_late(machine, rs_strand_id(strand), ticket + 1));
    CHECK_EQUAL(RS_STRAND_PARKED, strand->state);
    CHECK(rs_unblock_late(machine, rs_strand_id(strand), ticket));
    CHECK(!rs_unblock_late(machine, rs_strand_id(strand), ticket));
    CHECK(next() == strand);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    /* Neither another of the same kind, nor the time between two, as an unblock from here would. */
    CHECK(!rs_unblock_late(machine, rs_strand_id(strand), ticket));
    CHECK(!strand->permit);
    uint64_t second = block(rs_now(machine) + MS);
    CHECK(!rs_unblock_late(machine, rs_strand_id(strand), ticket));
    send_unblock(strand, ticket);
    CHECK(next_ever() == strand);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    /* Nor one of another kind, by whatever ticket. */
    uint64_t third = park(0, rs_now(machine) + MS);
    send_unblock(strand, second);
    CHECK(!rs_unblock_late(machine, rs_strand_id(strand), third));
    CHECK(next_ever() == strand);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_finish(machine);
    CHECK(!rs_unblock_late(machine, rs_strand_id(strand), third));
    end();
}

TEST(a_late_unblock_wins_until_the_hook_is_left) {
    begin();
    rs_strand *strand = spawn();
    next();
    uint64_t ticket = block(RS_NEVER);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_STRAND_READY, strand->state);
    send_unblock(strand, ticket);
    CHECK(next() == strand);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK_EQUAL(0, block(RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    rs_finish(machine);
    /* Even when it comes while the strand is being switched to. */
    rs_strand *late = spawn();
    CHECK(next() == late);
    ticket = block(rs_now(machine) + MS);
    CHECK(next_ever() == late);
    send_unblock(late, ticket);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    ticket = block(rs_now(machine) + MS);
    CHECK(next_ever() == late);
    send_unblock(late, ticket - 1);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_finish(machine);
    end();
}

/* --- a strand that starts at once --- */

TEST(a_strand_that_is_spawned_first_runs_before_its_caller_and_that_before_others) {
    begin();
    rs_strand *caller = spawn(), *ready = spawn();
    CHECK(next() == caller);
    rs_strand *first = rs_spawn_first(machine, root_scope(), NULL);
    CHECK(first != NULL);
    CHECK(rs_running(machine) == first);
    CHECK_EQUAL(RS_STRAND_RUNNING, first->state);
    CHECK_EQUAL(RS_STRAND_READY, caller->state);
    CHECK_EQUAL(2, root_scope()->live - 1);
    /* One inside the other. */
    rs_strand *inner = rs_spawn_first(machine, root_scope(), NULL);
    CHECK(rs_running(machine) == inner);
    park(0, rs_now(machine) + MS);
    CHECK(next() == first);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_finish(machine);
    CHECK(next() == caller);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_finish(machine);
    CHECK(next() == ready);
    rs_finish(machine);
    CHECK(next_ever() == inner);
    park_end();
    rs_finish(machine);
    end();
}

/* It is ready and waits for nothing: what was meant for a wait of its own is not lost, and does not end this. */
TEST(the_caller_of_a_strand_that_is_spawned_first) {
    begin();
    rs_strand *caller = spawn();
    CHECK(next() == caller);
    uint64_t before = park(0, rs_now(machine) + MS);
    CHECK(next_ever() == caller);
    park_end();
    rs_strand *first = rs_spawn_first(machine, root_scope(), NULL);
    CHECK(rs_running(machine) == first);
    CHECK(!rs_wake(machine, rs_strand_id(caller), before, RS_WAKE_TIMEOUT, 0));
    CHECK(!rs_unblock(machine, caller));
    rs_interrupt(machine, caller);
    rs_scope_cancel(machine, &caller->own, RS_CANCELLED_BY_CALL);
    rs_finish(machine);
    CHECK(next() == caller);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_INTERRUPT, machine->refusal);
    caller->interrupts = 0;
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    rs_finish(machine);
    end();
}

TEST(none_is_spawned_first_at_the_limit) {
    begin();
    machine->strands.slab.limit = 2;
    rs_strand *caller = spawn();
    CHECK(next() == caller);
    CHECK(rs_spawn_first(machine, root_scope(), NULL) == NULL);
    CHECK(rs_running(machine) == caller);
    CHECK_EQUAL(RS_STRAND_RUNNING, caller->state);
    CHECK(park(0, rs_now(machine) + MS) != 0);
    CHECK(next_ever() == caller);
    park_end();
    rs_finish(machine);
    end();
}

/* --- verdicts --- */

TEST(verdicts) {
    begin();
    rs_strand *strand = spawn();
    next();
    int64_t deadline_ns = rs_now(machine) + 3 * MS;
    park(0, deadline_ns);
    rs_decision decision = rs_next(machine);
    CHECK_EQUAL(RS_SLEEP, decision.verdict);
    CHECK_EQUAL(deadline_ns, decision.deadline_ns);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    next();
    park_end();
    rs_finish(machine);
    CHECK_EQUAL(RS_DEADLOCK, rs_next(machine).verdict);
    /* Work outside will come back, so there is hope. */
    machine->outside = 1;
    CHECK_EQUAL(RS_SLEEP, rs_next(machine).verdict);
    machine->outside = 0;
    end();
}

static int reminded;
static void remember(rs_machine *reminds) { reminded += reminds == machine; }

TEST(a_reminder_is_no_hope_and_ends_no_wait) {
    begin();
    reminded = 0;
    machine->driver.on_reminder = remember;
    spawn();
    next();
    int64_t start_ns = rs_now(machine);
    rs_timer_set(&machine->timers, &machine->reminder, start_ns + MS);
    uint64_t ticket = park(0, RS_NEVER);
    CHECK_EQUAL(RS_DEADLOCK, rs_next(machine).verdict);
    CHECK_EQUAL(0, reminded);
    /* Where there is some, the machine sleeps no longer than until then. */
    machine->outside = 1;
    rs_decision decision = rs_next(machine);
    CHECK_EQUAL(RS_SLEEP, decision.verdict);
    CHECK_EQUAL(start_ns + MS, decision.deadline_ns);
    rs_sleep(machine, decision.deadline_ns);
    decision = rs_next(machine);
    CHECK_EQUAL(1, reminded);
    CHECK_EQUAL(RS_SLEEP, decision.verdict);
    CHECK_EQUAL(RS_NEVER, decision.deadline_ns);
    machine->outside = 0;
    rs_timer_set(&machine->timers, &machine->reminder, start_ns + 2 * MS);
    rs_wake(machine, rs_strand_id(rs_strand_at(&machine->strands, 1)), ticket, RS_WAKE_VALUE, 0);
    next();
    park_end();
    rs_finish(machine);
    CHECK_EQUAL(RS_DEADLOCK, rs_next(machine).verdict);
    CHECK_EQUAL(1, reminded);
    rs_timer_clear(&machine->timers, &machine->reminder);
    end();
}

/* --- a simulated machine in a forked process --- */

static int forked_child(rs_scope *scope, rs_strand *runs) {
    test_failures = 0;
    CHECK_EQUAL(0, rs_machine_forked(machine));
    CHECK(rs_running(machine) == runs);
    CHECK_EQUAL(1, rs_strands_live(&machine->strands));
    CHECK_EQUAL(0, machine->in_flight);
    CHECK_EQUAL(0, machine->timers.len);
    CHECK(runs->scope == scope);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    rs_scope_close(machine, scope);
    park(0, rs_now(machine) + MS);
    CHECK(next_ever() == runs);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_finish(machine);
    CHECK_EQUAL(RS_DEADLOCK, rs_next(machine).verdict);
    rs_machine_close(machine);
    rs_machine_free(machine);
    return test_failures > 0;
}

TEST(a_simulated_machine_survives_a_fork) {
    begin();
    rs_strand *strand = spawn(), *reader = spawn();
    int pair[2];
    char byte;
    CHECK(next() == strand);
    rs_request request = request_pipe(pair);
    rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(next() == reader);
    rs_request read = request_read(pair[0], &byte, 1);
    rs_op *reading = rs_op_start(machine, &read, 0, rs_now(machine) + SECOND);
    CHECK(next() == strand);
    park_end();
    rs_op_end(machine, op);
    rs_scope scope;
    rs_scope_open(machine, &scope, rs_now(machine) + SECOND, false);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(forked_child(&scope, strand));
    int status;
    CHECK_EQUAL(child, waitpid(child, &status, 0));
    CHECK_EQUAL(0, status);
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    CHECK(next_ever() == reader);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_op_end(machine, reading);
    rs_finish(machine);
    end();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
