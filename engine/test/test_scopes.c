/* The tree of scopes: what a cancellation, a shield and a deadline mean for those inside. */
#include "test.h"

#include "by_hand.h"

#include <stdlib.h>

TEST(a_cancellation_ends_every_wait_inside_and_refuses_the_next) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope, inner;
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_strand *child = spawn_into(&scope), *outsider = spawn();
    rs_scope_open(machine, &inner, RS_NEVER, false);
    park(0, RS_NEVER);
    CHECK(next() == child);
    park(0, RS_NEVER);
    CHECK(next() == outsider);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    uint64_t outside = park(0, RS_NEVER);
    CHECK(next() == owner);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    CHECK(!rs_scope_answers(&inner));
    CHECK(rs_scope_answers(&scope));
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    CHECK(park(RS_PARK_SHIELDED, rs_now(machine)) != 0);
    CHECK(next() == child);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    rs_strand *late = spawn_into(&scope);
    rs_finish(machine);
    CHECK(next() == late);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    rs_finish(machine);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_scope_close(machine, &inner);
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    CHECK_EQUAL(RS_STRAND_PARKED, outsider->state);
    rs_wake(machine, rs_strand_id(outsider), outside, RS_WAKE_VALUE, 0);
    CHECK(next() == outsider);
    park_end();
    rs_finish(machine);
    end();
}

TEST(the_cancelled_owner_goes_on_after_its_scope) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope outer, scope, inner;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK(!rs_scope_answers(&inner));
    rs_scope_close(machine, &inner);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK(rs_scope_answers(&scope));
    rs_scope_close(machine, &scope);
    CHECK(park(0, rs_now(machine)) != 0);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    /* Two at once: the inner one is not the one to answer. */
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
    CHECK(!rs_scope_answers(&scope));
    rs_scope_close(machine, &scope);
    CHECK(rs_scope_answers(&outer));
    rs_scope_close(machine, &outer);
    rs_finish(machine);
    end();
}

TEST(the_innermost_run_is_that_of_the_scopes_around) {
    begin();
    rs_scope outermost, run, inside, nested;
    rs_scope_begin_outermost_run(machine, &outermost);
    rs_strand *owner = spawn(), *loose = spawn_into(&outermost), *beside = spawn_into(NULL);
    next();
    CHECK(rs_scope_run_here(machine) == NULL); /* nothing that the root has spawned itself is in it */
    rs_scope_open(machine, &run, RS_NEVER, false);
    rs_scope_make_run(&run);
    rs_scope_open(machine, &inside, RS_NEVER, true);
    CHECK(rs_scope_run_here(machine) == &run);
    rs_strand *child = spawn_into(&inside);
    uint64_t ticket = park(0, RS_NEVER);
    CHECK(next() == loose);
    CHECK(rs_scope_run_here(machine) == &outermost);
    rs_scope_cancel(machine, &outermost, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, park(0, RS_NEVER)); /* refused */
    rs_finish(machine);
    rs_scope_forgive(machine, &outermost);
    CHECK(next() == beside);
    CHECK(rs_scope_run_here(machine) == NULL);
    rs_finish(machine);
    CHECK(next() == child);
    rs_scope_open(machine, &nested, RS_NEVER, false);
    rs_scope_make_run(&nested);
    CHECK(rs_scope_run_here(machine) == &nested);
    rs_scope_close(machine, &nested);
    CHECK(rs_scope_run_here(machine) == &run);
    rs_wake(machine, rs_strand_id(owner), ticket, RS_WAKE_VALUE, 0);
    rs_finish(machine);
    CHECK(next() == owner);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_scope_close(machine, &inside);
    rs_scope_close(machine, &run);
    rs_finish(machine);
    end();
}

TEST(a_shield_hides_what_is_above_and_not_itself) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope, shield, inside;
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_scope_open(machine, &shield, RS_NEVER, true);
    rs_scope_open(machine, &inside, RS_NEVER, false);
    rs_strand *child = spawn_into(&shield);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    rs_interrupt(machine, owner);
    CHECK(park(0, rs_now(machine)) != 0);
    CHECK(next() == child);
    park(0, RS_NEVER);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_scope_close(machine, &inside);
    CHECK(park(0, RS_NEVER) != 0);
    rs_scope_cancel(machine, &shield, RS_CANCELLED_BY_CALL);
    CHECK(next() == owner);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    CHECK(rs_scope_answers(&shield));
    CHECK(park(RS_PARK_SHIELDED, rs_now(machine)) != 0);
    CHECK(next() == child);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    rs_finish(machine);
    next_ever();
    park_end();
    rs_scope_close(machine, &shield);
    /* Outside the shield, what it hid is there: the interrupt first. */
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_INTERRUPT, machine->refusal);
    owner->interrupts--;
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    rs_scope_close(machine, &scope);
    CHECK(rs_refusal(machine, 0) == RS_WAKE_VALUE);
    rs_finish(machine);
    end();
}

TEST(a_shielded_park_waits_on) {
    begin();
    rs_strand *strand = spawn();
    next();
    uint64_t ticket = park(RS_PARK_SHIELDED, RS_NEVER);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    rs_interrupt(machine, strand);
    CHECK_EQUAL(RS_STRAND_PARKED, strand->state);
    rs_wake(machine, rs_strand_id(strand), ticket, RS_WAKE_VALUE, 0);
    next();
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_finish(machine);
    end();
}

TEST(a_deadline_costs_no_timer_until_somebody_waits) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope, inner;
    int64_t start_ns = rs_now(machine);
    rs_scope_open(machine, &scope, start_ns + 5 * MS, false);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    CHECK_EQUAL(0, machine->timers.len);
    park(0, start_ns + SECOND);
    CHECK_EQUAL(2, machine->timers.len);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    CHECK_EQUAL(start_ns + 5 * MS, rs_now(machine));
    CHECK_EQUAL(RS_CANCELLED_BY_DEADLINE, scope.cause);
    CHECK_EQUAL(RS_NOT_CANCELLED, inner.cause);
    rs_scope_close(machine, &inner);
    rs_scope_close(machine, &scope);
    CHECK_EQUAL(0, machine->timers.len);
    /* One that has passed already refuses the first wait. */
    rs_scope_open(machine, &scope, rs_now(machine), false);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    end();
}

TEST(a_deadline_can_be_moved) {
    begin();
    rs_strand *owner = spawn(), *other = spawn();
    next();
    rs_scope scope;
    int64_t start_ns = rs_now(machine);
    rs_scope_open(machine, &scope, start_ns + 5 * MS, false);
    rs_scope_set_deadline(machine, &scope, start_ns + 7 * MS);
    park(0, start_ns + SECOND);
    CHECK(next() == other);
    rs_scope_set_deadline(machine, &scope, start_ns + 20 * MS);
    rs_finish(machine);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    CHECK_EQUAL(start_ns + 20 * MS, rs_now(machine));
    /* What has happened has happened. */
    rs_scope_set_deadline(machine, &scope, RS_NEVER);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    rs_scope_close(machine, &scope);
    rs_scope_open(machine, &scope, rs_now(machine) + MS, false);
    park(0, rs_now(machine));
    next_ever();
    park_end();
    rs_scope_set_deadline(machine, &scope, rs_now(machine) + SECOND);
    CHECK_EQUAL(1, machine->timers.len);
    rs_scope_set_deadline(machine, &scope, RS_NEVER);
    CHECK_EQUAL(0, machine->timers.len);
    /* Nor does a cancelled scope keep one. */
    rs_scope_set_deadline(machine, &scope, rs_now(machine) + SECOND);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, machine->timers.len);
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    end();
}

/* --- closed in another order, by another strand, or not at all --- */

TEST(what_is_inside_a_closed_scope_moves_up) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope outer, middle, inner;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_open(machine, &middle, RS_NEVER, false);
    rs_strand *child = spawn_into(&middle);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    rs_scope_close(machine, &middle);
    rs_scope_close(machine, &middle);
    CHECK(owner->scope == &inner && inner.parent == &outer && child->own.parent == &outer);
    CHECK_EQUAL(1, outer.live);
    /* A closed scope can be told anything. */
    rs_scope_set_deadline(machine, &middle, rs_now(machine) + MS);
    rs_scope_cancel(machine, &middle, RS_CANCELLED_BY_CALL);
    park(0, RS_NEVER);
    CHECK(next() == child);
    park(0, RS_NEVER);
    CHECK(next_ever() == NULL);
    rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
    for (int i = 0; i < 2; i++) {
        rs_strand *strand = next();
        CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
        if (strand == owner) park(RS_PARK_SHIELDED, rs_now(machine));
        else rs_finish(machine);
    }
    CHECK(next_ever() == owner);
    park_end();
    CHECK_EQUAL(0, outer.live);
    rs_scope_close(machine, &inner);
    CHECK(owner->scope == &outer);
    rs_scope_close(machine, &outer);
    rs_finish(machine);
    end();
}

TEST(a_closed_scope_keeps_no_timer) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope;
    rs_scope_open(machine, &scope, rs_now(machine) + SECOND, false);
    park(0, rs_now(machine));
    CHECK(next_ever() == owner);
    park_end();
    rs_scope_close(machine, &scope);
    rs_scope_set_deadline(machine, &scope, rs_now(machine) + MS);
    CHECK_EQUAL(0, machine->timers.len);
    rs_finish(machine);
    end();
}

TEST(what_a_closed_shield_hid_meets_those_inside) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope outer, shield, inner;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_open(machine, &shield, RS_NEVER, true);
    rs_strand *child = spawn_into(&shield);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
    rs_yield(machine);
    CHECK(next() == child);
    park(0, RS_NEVER);
    CHECK(next() == owner);
    park_end();
    rs_scope_close(machine, &shield);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    CHECK(park(RS_PARK_SHIELDED, rs_now(machine) + MS) != 0);
    CHECK(next() == child);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    rs_finish(machine);
    next_ever();
    park_end();
    rs_scope_close(machine, &inner);
    rs_scope_close(machine, &outer);
    rs_finish(machine);
    end();
}

TEST(a_shield_closed_by_another_strand_lets_through_what_it_hid) {
    for (int interrupted = 0; interrupted < 2; interrupted++) {
        begin();
        rs_strand *owner = spawn(), *other = spawn();
        next();
        rs_scope outer, shield;
        rs_scope_open(machine, &outer, RS_NEVER, false);
        rs_scope_open(machine, &shield, RS_NEVER, true);
        park(0, RS_NEVER);
        CHECK(next() == other);
        if (interrupted) rs_interrupt(machine, owner);
        else rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
        CHECK_EQUAL(RS_STRAND_PARKED, owner->state);
        rs_scope_close(machine, &shield);
        rs_finish(machine);
        CHECK(next() == owner);
        CHECK_EQUAL(interrupted ? RS_WAKE_INTERRUPT : RS_WAKE_CANCEL, park_end());
        rs_scope_close(machine, &outer);
        rs_finish(machine);
        end();
    }
}

TEST(one_who_waits_for_a_scope_that_another_closes_goes_on) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope;
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_strand *child = spawn_into(&scope);
    rs_park_begin(machine, RS_WAIT_SCOPE, RS_PARK_SHIELDED, RS_NEVER);
    rs_list_append(machine, &scope.waiters, owner, 0);
    CHECK(next() == child);
    rs_scope_close(machine, &scope);
    uint64_t ticket = park(0, RS_NEVER);
    CHECK(next() == owner);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    rs_wake(machine, rs_strand_id(child), ticket, RS_WAKE_VALUE, 0);
    rs_finish(machine);
    CHECK(next() == child);
    park_end();
    rs_finish(machine);
    end();
}

TEST(an_owner_may_end_before_its_scopes_and_those_inside) {
    begin();
    rs_strand *parent = spawn();
    next();
    rs_scope outer, scope, inner;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_strand *owner = spawn_into(&outer);
    park(0, RS_NEVER);
    CHECK(next() == owner);
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_strand *child = spawn_into(&scope);
    rs_scope_open(machine, &inner, RS_NEVER, true);
    rs_finish(machine);
    CHECK(scope.closed && inner.closed);
    CHECK_EQUAL(1, outer.live);
    CHECK(child->own.parent == &outer);
    CHECK(next() == child);
    park(0, RS_NEVER);
    rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
    for (int i = 0; i < 2; i++) {
        rs_strand *strand = next();
        CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
        if (strand == parent) park(RS_PARK_SHIELDED, rs_now(machine));
        else rs_finish(machine);
    }
    next_ever();
    park_end();
    rs_finish(machine);
    /* One whose owner has nobody above. */
    owner = spawn_into(NULL);
    CHECK(next() == owner);
    rs_scope_open(machine, &scope, RS_NEVER, false);
    child = spawn_into(&scope);
    rs_finish(machine);
    CHECK(next() == child);
    CHECK(park(0, rs_now(machine) + MS) != 0);
    CHECK(next_ever() == child);
    park_end();
    rs_finish(machine);
    end();
}

TEST(a_cancellation_goes_with_its_scope_when_an_inner_one_stays_open) {
    begin();
    spawn();
    next();
    rs_scope outer, inner, innermost;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    rs_scope_open(machine, &innermost, RS_NEVER, false);
    rs_strand *child = spawn_into(&outer);
    rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    rs_scope_close(machine, &outer);
    CHECK(!inner.effective && !innermost.effective);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    rs_scope_cancel(machine, &inner, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    rs_scope_close(machine, &innermost);
    rs_scope_close(machine, &inner);
    rs_finish(machine);
    /* A strand that it told to end does not hear that it need not. */
    CHECK(next() == child);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    rs_finish(machine);
    end();
}

/* --- whose a strand is for which the program names no scope --- */

TEST(the_innermost_run_has_the_strands_of_all_inside) {
    begin();
    rs_strand *owner = spawn();
    next();
    CHECK(rs_scope_run_here(machine) == NULL);
    rs_scope outer, between, nested;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_make_run(&outer);
    rs_scope_open(machine, &between, RS_NEVER, true);
    CHECK(rs_scope_run_here(machine) == &outer);
    rs_strand *beside = spawn_into(&between);
    rs_scope_open(machine, &nested, RS_NEVER, false);
    rs_scope_make_run(&nested);
    CHECK(rs_scope_run_here(machine) == &nested);
    rs_strand *inside = spawn_into(rs_scope_run_here(machine));
    park(0, RS_NEVER);
    CHECK(next() == beside);
    CHECK(rs_scope_run_here(machine) == &outer);
    rs_finish(machine);
    CHECK(next() == inside);
    CHECK(rs_scope_run_here(machine) == &nested);
    rs_finish(machine);
    rs_wake(machine, rs_strand_id(owner), owner->ticket, RS_WAKE_VALUE, 0);
    CHECK(next() == owner);
    park_end();
    rs_scope_close(machine, &nested);
    CHECK(rs_scope_run_here(machine) == &outer);
    rs_scope_close(machine, &between);
    rs_scope_close(machine, &outer);
    rs_finish(machine);
    end();
}

/* --- stacks of the program's own inside a strand --- */

static const void *stack_now;
static const void *outer_of[4];

static const void *current_stack(rs_machine *unused) { return (void)unused, stack_now; }
static const void *outer_stack(const void *stack) { return outer_of[(const char *)stack - (const char *)outer_of]; }

/* That stack runs, begun by that one; 0 is the strand's first. */
static void run_stack(int stack, int outer) {
    stack_now = stack ? (const char *)outer_of + stack : NULL;
    if (stack) outer_of[stack] = outer ? (const char *)outer_of + outer : NULL;
    machine->driver.stack = current_stack;
    machine->driver.outer_stack = outer_stack;
}

TEST(a_scope_on_a_suspended_stack_is_aside) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope first, second, shield;
    rs_scope_open(machine, &first, RS_NEVER, false);
    run_stack(1, 0);
    rs_scope_open(machine, &second, rs_now(machine) + MS, false);
    rs_scope_open(machine, &shield, RS_NEVER, true);
    CHECK_EQUAL(1, owner->shield_depth);
    run_stack(0, 0);
    park(0, rs_now(machine) + 5 * MS);
    CHECK(owner->scope == &first && owner->shield_depth == 0);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    CHECK_EQUAL(RS_NOT_CANCELLED, second.cause);
    run_stack(1, 0);
    rs_scope_close(machine, &shield);
    CHECK_EQUAL(0, owner->shield_depth);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    CHECK_EQUAL(RS_CANCELLED_BY_DEADLINE, second.cause);
    CHECK(rs_scope_answers(&second));
    run_stack(0, 0);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    rs_scope_close(machine, &first);
    CHECK(owner->scope == &owner->own);
    CHECK(second.parent == &owner->own);
    rs_finish(machine);
    CHECK(second.closed);
    end();
}

TEST(a_run_on_a_suspended_stack_has_no_strands_of_others) {
    begin();
    spawn();
    next();
    rs_scope outer, suspended;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_make_run(&outer);
    run_stack(1, 0);
    rs_scope_open(machine, &suspended, RS_NEVER, false);
    rs_scope_make_run(&suspended);
    CHECK(rs_scope_run_here(machine) == &suspended);
    run_stack(0, 0);
    CHECK(rs_scope_run_here(machine) == &outer);
    run_stack(1, 0);
    CHECK(rs_scope_run_here(machine) == &suspended);
    rs_scope_close(machine, &suspended);
    run_stack(0, 0);
    rs_scope_close(machine, &outer);
    rs_finish(machine);
    end();
}

TEST(a_stack_is_governed_by_what_is_open_around_its_turn) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope before, around, inside, nested;
    rs_scope_open(machine, &before, RS_NEVER, false);
    run_stack(1, 0);
    rs_scope_open(machine, &inside, RS_NEVER, false);
    run_stack(2, 1);
    rs_scope_open(machine, &nested, RS_NEVER, false);
    CHECK(nested.parent == &inside);
    run_stack(0, 0);
    rs_scope_cancel(machine, &before, RS_CANCELLED_BY_CALL);
    rs_scope_close(machine, &before);
    rs_scope_open(machine, &around, rs_now(machine) + MS, false);
    /* The other way round. */
    outer_of[2] = NULL;
    run_stack(1, 2);
    CHECK(park(0, RS_NEVER) != 0);
    CHECK(owner->scope == &inside && inside.parent == &nested && nested.parent == &around);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    CHECK(rs_scope_answers(&around) && !rs_scope_answers(&nested));
    rs_scope_close(machine, &nested);
    rs_scope_close(machine, &inside);
    CHECK_EQUAL(0, owner->stacked);
    run_stack(0, 0);
    rs_scope_close(machine, &around);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    rs_finish(machine);
    end();
}

TEST(scopes_of_forgotten_strands_are_closed) {
    begin();
    rs_strand *other = spawn(), *survivor = spawn();
    CHECK(next() == other);
    rs_scope left, mine, aside;
    rs_scope_open(machine, &left, rs_now(machine) + SECOND, true);
    park(0, RS_NEVER);
    CHECK(next() == survivor);
    rs_scope_open(machine, &mine, RS_NEVER, false);
    run_stack(1, 0);
    rs_scope_open(machine, &aside, RS_NEVER, false);
    run_stack(0, 0);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    rs_scope_cancel(machine, &mine, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, rs_machine_forked(machine));
    CHECK(left.closed);
    rs_scope_close(machine, &left);
    rs_scope_cancel(machine, &left, RS_CANCELLED_BY_CALL);
    CHECK(mine.effective && aside.effective);
    rs_scope_close(machine, &mine);
    CHECK(!aside.effective);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    run_stack(1, 0);
    CHECK_EQUAL(RS_WAKE_VALUE, rs_refusal(machine, 0));
    CHECK(survivor->scope == &aside);
    rs_scope_close(machine, &aside);
    rs_machine_close(machine);
    rs_machine_free(machine);
}

/* Deep and wide, in one walk. */
TEST(a_cancellation_reaches_a_deep_tree) {
    enum { DEPTH = 2000 };
    begin();
    rs_scope *scopes = calloc(1, sizeof(rs_scope) * DEPTH);
    rs_strand *owner = spawn();
    next();
    for (int i = 0; i < DEPTH; i++) {
        rs_scope_open(machine, &scopes[i], RS_NEVER, i == DEPTH / 2);
        if (i % 10 == 0) spawn_into(&scopes[i]);
    }
    park(0, RS_NEVER);
    for (int i = 0; i < DEPTH; i += 10) {
        next();
        park(0, RS_NEVER);
    }
    CHECK(next() == NULL);
    rs_scope_cancel(machine, &scopes[0], RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(DEPTH / 20, machine->strands.run_len);
    CHECK_EQUAL(RS_STRAND_PARKED, owner->state);
    rs_scope_cancel(machine, &scopes[DEPTH / 2], RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(DEPTH / 10 + 1, machine->strands.run_len);
    for (int i = 0; i < DEPTH / 10 + 1; i++) {
        rs_strand *strand = next();
        CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
        if (strand == owner) park(RS_PARK_SHIELDED, rs_now(machine));
        else rs_finish(machine);
    }
    CHECK(next_ever() == owner);
    park_end();
    for (int i = DEPTH; i-- > 0;) rs_scope_close(machine, &scopes[i]);
    rs_finish(machine);
    free(scopes);
    end();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
