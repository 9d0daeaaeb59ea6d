/* A cancellation, or a deadline, that is taken back: what it meant for those inside is over. */
#include "test.h"

#include "by_hand.h"

TEST(what_is_forgiven_refuses_no_more_waits) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope, inner;
    rs_scope_open(machine, &scope, rs_now(machine) + MS, false);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    rs_strand *child = spawn_into(&inner);
    park(0, RS_NEVER);
    CHECK(next() == child);
    park(0, RS_NEVER);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    CHECK(scope.effective && inner.effective);
    rs_scope_forgive(machine, &scope);
    CHECK(!scope.effective && !inner.effective && !child->own.effective);
    /* Its deadline is over: it comes no second time. */
    CHECK_EQUAL(0, machine->timers.len);
    CHECK(park(0, rs_now(machine) + SECOND) != 0);
    /* Whose wait had ended by it has been told. */
    CHECK(next() == child);
    CHECK_EQUAL(RS_WAKE_CANCEL, park_end());
    CHECK(park(0, rs_now(machine) + MS) != 0);
    CHECK(next_ever() == child);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_finish(machine);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_scope_close(machine, &inner);
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    end();
}

TEST(to_forgive_one_scope_is_not_to_forgive_another) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope outer, scope, inner;
    rs_scope_open(machine, &outer, RS_NEVER, false);
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_scope_open(machine, &inner, RS_NEVER, false);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    rs_scope_cancel(machine, &inner, RS_CANCELLED_BY_CALL);
    rs_scope_forgive(machine, &scope);
    CHECK(inner.effective && !scope.effective);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    rs_scope_cancel(machine, &outer, RS_CANCELLED_BY_CALL);
    rs_scope_forgive(machine, &inner);
    CHECK(inner.effective && scope.effective);
    rs_scope_forgive(machine, &scope);
    CHECK(scope.effective);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    rs_scope_forgive(machine, &outer);
    CHECK(!inner.effective && !scope.effective && !outer.effective);
    /* And can be cancelled anew. */
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, park(0, RS_NEVER));
    rs_scope_forgive(machine, &scope);
    CHECK(park(0, rs_now(machine) + MS) != 0);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_scope_close(machine, &inner);
    rs_scope_close(machine, &scope);
    rs_scope_close(machine, &outer);
    rs_finish(machine);
    end();
}

TEST(a_deadline_that_is_forgiven_before_it_comes_does_not_come) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope;
    rs_scope_open(machine, &scope, rs_now(machine) + 2 * MS, false);
    park(0, rs_now(machine) + MS);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    CHECK_EQUAL(1, machine->timers.len);
    rs_scope_forgive(machine, &scope);
    CHECK_EQUAL(0, machine->timers.len);
    park(0, rs_now(machine) + SECOND);
    CHECK(next_ever() == owner);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, park_end());
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    end();
}

int main(int argc, char **argv) { return test_main(argc, argv); }
