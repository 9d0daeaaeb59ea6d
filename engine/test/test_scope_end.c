/* How a scope ends that runs a block and has strands in it, on a simulated kernel without faults. The tree of cancellation is in
 * test_scopes.c. */
#include "test.h"

#include "three.h"

static rs_scope outer, scope;
static rs_scope_end end_of;
static rs_strand *child, *other;
static uint32_t flags;

/* `one` has a scope in another one, with two children in it; it runs. */
static void begin_scope(int64_t delay_ns) {
    begin_three();
    end_of = (rs_scope_end){0};
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_open(machine, &scope, rs_deadline_after(rs_now(machine), delay_ns), false);
    child = spawn_into(&scope);
    other = spawn_into(&scope);
}

static void child_ends(bool cancelled, bool failed, bool is_the_scopes) {
    rs_finish(machine);
    CHECK_EQUAL(is_the_scopes, rs_scope_child_ended(machine, &scope, &end_of, cancelled, failed));
}

/* The owner waits for the children, and another one runs. */
static void wait_for_children(uint32_t expected_flags, rs_strand *goes_on_with) {
    CHECK(rs_scope_end_waits(&scope, &end_of, &flags));
    CHECK_EQUAL(expected_flags, flags);
    CHECK(rs_park_begin(machine, RS_WAIT_SCOPE, flags, RS_NEVER) != 0);
    rs_list_append(machine, &scope.waiters, one, 0);
    goes_on(goes_on_with);
}

static void owner_woken(rs_wake_kind expected) {
    CHECK_EQUAL(expected, woken);
    rs_scope_end_waited(machine, &scope, &end_of, woken);
}

/* Those around have ended first. */
static void let_others_end(rs_strand *goes_on_with) {
    goes_on(two);
    rs_finish(machine);
    goes_on(three);
    rs_finish(machine);
    goes_on(goes_on_with);
}

static void ends_by(rs_scope_ends expected, bool has_error) {
    CHECK(!rs_scope_end_waits(&scope, &end_of, &flags));
    rs_scope_closes(&scope, &end_of);
    rs_scope_close(machine, &scope);
    CHECK_EQUAL(expected, rs_scope_ends_by(&scope, &end_of, has_error));
    rs_scope_close(machine, &outer);
    finish(1, one);
}

static void park_owner(void) {
    CHECK(rs_scope_end_waits(&scope, &end_of, &flags));
    CHECK(rs_park_begin(machine, RS_WAIT_SCOPE, flags, RS_NEVER) != 0);
    rs_list_append(machine, &scope.waiters, one, 0);
    let_others_end(child);
}

TEST(a_scope_ends_with_the_value_of_its_block_when_all_children_have_ended) {
    begin_scope(RS_NEVER);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_RETURNED);
    park_owner();
    child_ends(false, false, false);
    goes_on(other);
    child_ends(false, false, false);
    goes_on(one);
    owner_woken(RS_WAKE_VALUE);
    ends_by(RS_ENDS_BY_VALUE, false);
}

TEST(a_child_that_fails_cancels_the_others_and_the_owner_which_waits_for_them_shielded) {
    begin_scope(RS_NEVER);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_RETURNED);
    park_owner();
    child_ends(false, true, true);
    CHECK(scope.effective && !outer.effective);
    goes_on(other);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    yield_to(one);
    owner_woken(RS_WAKE_CANCEL);
    wait_for_children(RS_PARK_SHIELDED, other);
    child_ends(true, false, false);
    goes_on(one);
    owner_woken(RS_WAKE_VALUE);
    ends_by(RS_ENDS_BY_ERROR, true);
}

TEST(a_block_that_fails_cancels_the_children_and_its_owner_hears_of_nothing_else) {
    begin_scope(RS_NEVER);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_FAILED);
    CHECK(scope.effective);
    CHECK(rs_scope_end_waits(&scope, &end_of, &flags));
    CHECK_EQUAL(0, rs_park_begin(machine, RS_WAIT_SCOPE, flags, RS_NEVER)); /* refused, for the scope is cancelled */
    woken = machine->refusal;
    owner_woken(RS_WAKE_CANCEL);
    park_owner();
    child_ends(true, false, false);
    goes_on(other);
    child_ends(true, false, false);
    goes_on(one);
    owner_woken(RS_WAKE_VALUE);
    ends_by(RS_ENDS_BY_ERROR, true);
}

TEST(a_scope_that_was_cancelled_absorbs_that) {
    begin_scope(RS_NEVER);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_CANCELLED);
    rs_scope_end_waited(machine, &scope, &end_of, RS_WAKE_CANCEL);
    park_owner();
    child_ends(true, false, false);
    goes_on(other);
    child_ends(true, false, false);
    goes_on(one);
    ends_by(RS_ENDS_CANCELLED, false);
}

TEST(a_cancellation_from_above_goes_on_above) {
    begin_scope(RS_NEVER);
    rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_CANCELLED);
    rs_scope_end_waited(machine, &scope, &end_of, RS_WAKE_CANCEL);
    park_owner();
    child_ends(true, false, false);
    goes_on(other);
    child_ends(true, false, false);
    goes_on(one);
    ends_by(RS_ENDS_BY_ABOVE, false);
}

TEST(a_cancellation_that_no_scope_around_knows_passes_through) {
    begin_scope(RS_NEVER);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_CANCELLED);
    CHECK(end_of.foreign && scope.effective);
    rs_scope_end_waited(machine, &scope, &end_of, RS_WAKE_CANCEL);
    park_owner();
    child_ends(true, false, false);
    goes_on(other);
    child_ends(true, false, false);
    goes_on(one);
    ends_by(RS_ENDS_BY_FOREIGN, false);
}

/* A child does not get to its end: the block has a value, and the scope none. */
TEST(a_deadline_that_has_cut_a_child_is_what_the_scope_ends_by) {
    begin_scope(MS);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_RETURNED);
    park_owner();
    CHECK(rs_park_begin(machine, RS_WAIT_SUSPEND, 0, RS_NEVER) != 0);
    goes_on(other);
    child_ends(false, false, false);
    for (bool ended = false; !ended || scope.live > 0;) {
        rs_strand *strand = next_ever();
        woken = rs_park_end(machine, &result);
        CHECK_EQUAL(RS_WAKE_CANCEL, woken);
        if (strand == child) {
            child_ends(true, false, false);
            ended = true;
            continue;
        }
        CHECK(strand == one);
        rs_scope_end_waited(machine, &scope, &end_of, woken);
        CHECK(rs_scope_end_waits(&scope, &end_of, &flags));
        CHECK(rs_park_begin(machine, RS_WAIT_SCOPE, flags, RS_NEVER) != 0);
        rs_list_append(machine, &scope.waiters, one, 0);
    }
    goes_on(one);
    CHECK_EQUAL(RS_CANCELLED_BY_DEADLINE, scope.cause);
    ends_by(RS_ENDS_BY_DEADLINE, false);
}

TEST(an_interrupt_of_the_owner_cancels_the_children) {
    begin_scope(RS_NEVER);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_RETURNED);
    park_owner();
    rs_interrupt(machine, one);
    yield_to(other);
    yield_to(one);
    owner_woken(RS_WAKE_INTERRUPT);
    CHECK(scope.effective);
    wait_for_children(RS_PARK_SHIELDED, child);
    child_ends(true, false, false);
    goes_on(other);
    child_ends(true, false, false);
    goes_on(one);
    CHECK_EQUAL(RS_WAKE_INTERRUPT, end_of.interrupted);
    rs_take_interrupt(one);
    ends_by(RS_ENDS_BY_ERROR, true);
}

/* The stack was too deep to wait: the scope above has them now. */
TEST(a_child_that_fails_after_the_scope_has_closed_has_an_error_of_its_own) {
    begin_scope(RS_NEVER);
    rs_scope_block_ended(machine, &scope, &end_of, RS_BLOCK_RETURNED);
    rs_scope_closes(&scope, &end_of);
    rs_scope_close(machine, &scope);
    CHECK(rs_park_begin(machine, RS_WAIT_SUSPEND, 0, rs_now(machine)) != 0);
    let_others_end(child);
    child_ends(false, true, false);
    CHECK(!outer.effective);
    goes_on(other);
    child_ends(false, false, false);
    goes_on(one);
    rs_scope_close(machine, &outer);
    finish(1, one);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
