/* Mutexes, semaphores and barriers, one rule after the other, on a simulated kernel without faults. The random programs have a role
 * for mutexes as well (program_locks.c). */
#include "test.h"

#include "three.h"

/* --- mutex --- */

static rs_mutex mutex;

/* `one` has the lock; `two` waits for it until then, and `three` runs. */
static void begin_with_a_waiter(int64_t delay_ns) {
    begin_three();
    mutex = (rs_mutex){0};
    CHECK(rs_mutex_take(machine, &mutex));
    yield_to(two);
    CHECK(!rs_mutex_take(machine, &mutex));
    CHECK(!rs_mutex_is_mine(machine, &mutex));
    wait_in(&mutex.waiters, RS_WAIT_MUTEX, rs_deadline_after(rs_now(machine), delay_ns), three);
}

TEST(an_unlock_gives_the_lock_to_the_first_waiter) {
    begin_with_a_waiter(RS_NEVER);
    wait_in(&mutex.waiters, RS_WAIT_MUTEX, RS_NEVER, one);
    CHECK(rs_mutex_give(machine, &mutex));
    CHECK_EQUAL(rs_strand_id(two), mutex.owner);
    CHECK(!rs_mutex_take(machine, &mutex)); /* nobody comes between */
    CHECK(!rs_mutex_give(machine, &mutex));
    yield_to(two);
    CHECK(rs_mutex_waited(machine, &mutex, woken));
    CHECK_EQUAL(1, two->locks);
    CHECK(!rs_mutex_take(machine, &mutex));
    CHECK(rs_mutex_is_mine(machine, &mutex));
    CHECK(rs_mutex_give(machine, &mutex));
    yield_to(one);
    yield_to(three);
    CHECK(rs_mutex_waited(machine, &mutex, woken));
    CHECK(rs_mutex_give(machine, &mutex));
    CHECK(!rs_mutex_is_locked(machine, &mutex));
    finish(3, three, two, one);
}

TEST(a_lock_is_not_given_to_a_waiter_that_was_cancelled_in_the_same_turn) {
    begin_with_a_waiter(RS_NEVER);
    wait_in(&mutex.waiters, RS_WAIT_MUTEX, RS_NEVER, one);
    rs_scope_cancel(machine, &two->own, RS_CANCELLED_BY_CALL);
    CHECK(rs_mutex_give(machine, &mutex));
    CHECK_EQUAL(rs_strand_id(three), mutex.owner);
    rs_finish(machine);
    goes_on(two);
    CHECK_EQUAL(RS_WAKE_CANCEL, woken);
    CHECK(!rs_mutex_waited(machine, &mutex, woken));
    CHECK_EQUAL(0, two->locks);
    yield_to(three);
    CHECK(rs_mutex_waited(machine, &mutex, woken));
    CHECK(rs_mutex_give(machine, &mutex));
    finish(2, three, two);
}

TEST(a_lock_that_was_given_is_the_waiters_although_it_is_cancelled_then) {
    begin_with_a_waiter(MS);
    yield_to(one);
    CHECK(rs_mutex_give(machine, &mutex));
    rs_scope_cancel(machine, &two->own, RS_CANCELLED_BY_CALL);
    yield_to(three);
    yield_to(two);
    CHECK(rs_mutex_waited(machine, &mutex, woken));
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    CHECK(rs_mutex_give(machine, &mutex));
    finish(3, two, one, three);
}

TEST(a_waiter_whose_time_is_up_takes_the_lock_if_it_is_free_by_then) {
    begin_three();
    mutex = (rs_mutex){0};
    CHECK(rs_mutex_take(machine, &mutex));
    let_time_out(&mutex.waiters, RS_WAIT_MUTEX);
    CHECK(rs_mutex_give(machine, &mutex));
    CHECK_EQUAL(RS_NO_ID, mutex.owner);
    yield_to(two);
    CHECK(rs_mutex_waited(machine, &mutex, woken));
    CHECK_EQUAL(1, two->locks);
    CHECK(rs_mutex_give(machine, &mutex));
    finish(2, two, one);
}

TEST(a_waiter_whose_time_is_up_has_no_lock_that_another_one_has) {
    begin_three();
    mutex = (rs_mutex){0};
    CHECK(rs_mutex_take(machine, &mutex));
    let_time_out(&mutex.waiters, RS_WAIT_MUTEX);
    yield_to(two);
    CHECK(!rs_mutex_waited(machine, &mutex, woken));
    CHECK_EQUAL(0, two->locks);
    yield_to(one);
    CHECK(rs_mutex_give(machine, &mutex));
    finish(2, one, two);
}

TEST(the_locks_of_a_strand_that_ends_go_to_their_waiters) {
    begin_with_a_waiter(RS_NEVER);
    rs_mutex other = {0}, unlocked = {0};
    rs_list list = {0};
    wait_in(&list, RS_WAIT_LIST, RS_NEVER, one); /* which is none of a mutex */
    CHECK(rs_mutex_take(machine, &other));
    CHECK(rs_mutex_take(machine, &unlocked));
    rs_finish(machine);
    CHECK_EQUAL(rs_strand_id(two), mutex.owner);
    CHECK(!rs_mutex_is_locked(machine, &other)); /* nobody waited for it */
    CHECK_EQUAL(1, list.len);
    goes_on(two);
    CHECK(rs_mutex_waited(machine, &mutex, woken));
    CHECK(rs_mutex_take(machine, &other));
    CHECK(rs_mutex_give(machine, &other));
    CHECK(rs_mutex_give(machine, &mutex));
    rs_list_wake_first(machine, &list, 0);
    yield_to(three);
    finish(2, three, two);
}

TEST(the_lock_of_a_strand_that_ends_goes_past_one_that_waits_no_more) {
    begin_with_a_waiter(RS_NEVER);
    wait_in(&mutex.waiters, RS_WAIT_MUTEX, RS_NEVER, one);
    rs_scope_cancel(machine, &two->own, RS_CANCELLED_BY_CALL);
    rs_finish(machine);
    CHECK_EQUAL(rs_strand_id(three), mutex.owner);
    goes_on(two);
    CHECK(!rs_mutex_waited(machine, &mutex, woken));
    rs_finish(machine);
    goes_on(three);
    CHECK(rs_mutex_waited(machine, &mutex, woken));
    CHECK(rs_mutex_give(machine, &mutex));
    finish(1, three);
}

/* --- the lock again, after a wait for which it was given up --- */

/* `two` has the lock, `one` waits for it again, shielded. */
static rs_relock begin_relock(rs_wake_kind kind) {
    begin_three();
    mutex = (rs_mutex){0};
    rs_relock relock = {.kind = kind};
    yield_to(two);
    CHECK(rs_mutex_take(machine, &mutex));
    yield_to(three);
    rs_finish(machine);
    goes_on(one);
    CHECK(rs_relock_waits(machine, &mutex, &relock));
    CHECK(rs_park_begin(machine, RS_WAIT_MUTEX, RS_PARK_SHIELDED, RS_NEVER) != 0);
    rs_list_append(machine, &mutex.waiters, one, 0);
    goes_on(two);
    return relock;
}

TEST(a_strand_waits_for_its_lock_again_and_keeps_what_has_ended_its_wait) {
    rs_relock relock = begin_relock(RS_WAKE_TIMEOUT);
    rs_scope_cancel(machine, &one->own, RS_CANCELLED_BY_CALL); /* the wait is shielded */
    CHECK(rs_mutex_give(machine, &mutex));
    yield_to(one);
    rs_relock_waited(&relock, woken);
    CHECK(!rs_relock_waits(machine, &mutex, &relock));
    CHECK_EQUAL(RS_WAKE_TIMEOUT, relock.kind);
    CHECK(rs_mutex_is_mine(machine, &mutex));
    CHECK_EQUAL(1, one->locks);
    CHECK(rs_mutex_give(machine, &mutex));
    finish(2, one, two);
}

TEST(a_strand_goes_on_without_its_lock_when_a_deadlock_has_ended_that_wait_twice) {
    rs_relock relock = begin_relock(RS_WAKE_VALUE);
    for (int i = 0; i < 2; i++) {
        rs_break_park(machine, one, i == 0 ? RS_WAKE_INTERRUPT : RS_WAKE_CANCEL);
        yield_to(one);
        rs_relock_waited(&relock, woken);
        if (i == 1) break;
        CHECK(rs_relock_waits(machine, &mutex, &relock));
        CHECK_EQUAL(RS_WAKE_INTERRUPT, relock.kind);
        CHECK(rs_park_begin(machine, RS_WAIT_MUTEX, RS_PARK_SHIELDED, RS_NEVER) != 0);
        rs_list_append(machine, &mutex.waiters, one, 0);
        goes_on(two);
    }
    CHECK(!rs_relock_waits(machine, &mutex, &relock));
    CHECK_EQUAL(RS_WAKE_CANCEL, relock.kind);
    CHECK(!rs_mutex_is_mine(machine, &mutex));
    CHECK_EQUAL(0, one->locks);
    yield_to(two);
    CHECK(rs_mutex_give(machine, &mutex));
    finish(2, two, one);
}

TEST(a_free_lock_is_taken_again_without_a_wait) {
    begin_three();
    mutex = (rs_mutex){0};
    rs_relock relock = {.kind = RS_WAKE_CANCEL};
    CHECK(!rs_relock_waits(machine, &mutex, &relock));
    CHECK_EQUAL(RS_WAKE_CANCEL, relock.kind);
    CHECK(rs_mutex_give(machine, &mutex));
    finish(3, one, two, three);
}

/* --- semaphore --- */

static rs_semaphore semaphore;

TEST(permits_are_as_many_as_there_are) {
    begin_three();
    rs_semaphore_init(&semaphore, 2);
    CHECK(rs_semaphore_take(&semaphore));
    CHECK(rs_semaphore_take(&semaphore));
    CHECK(!rs_semaphore_take(&semaphore));
    CHECK(rs_semaphore_give(machine, &semaphore));
    CHECK(rs_semaphore_give(machine, &semaphore));
    CHECK(!rs_semaphore_give(machine, &semaphore));
    CHECK_EQUAL(2, semaphore.free);
    finish(3, one, two, three);
}

TEST(a_permit_goes_to_who_waits_and_not_to_one_that_was_cancelled_in_the_same_turn) {
    begin_three();
    rs_semaphore_init(&semaphore, 1);
    CHECK(rs_semaphore_take(&semaphore));
    yield_to(two);
    wait_in(&semaphore.waiters, RS_WAIT_LIST, RS_NEVER, three);
    wait_in(&semaphore.waiters, RS_WAIT_LIST, RS_NEVER, one);
    CHECK_EQUAL(2, rs_semaphore_waiting(&semaphore));
    rs_scope_cancel(machine, &two->own, RS_CANCELLED_BY_CALL);
    CHECK(rs_semaphore_give(machine, &semaphore));
    CHECK_EQUAL(0, semaphore.free);
    yield_to(two);
    CHECK(!rs_semaphore_waited(&semaphore, woken));
    yield_to(three);
    CHECK(rs_semaphore_waited(&semaphore, woken));
    CHECK(rs_semaphore_give(machine, &semaphore));
    CHECK_EQUAL(1, semaphore.free);
    finish(3, three, one, two);
}

TEST(a_waiter_whose_time_is_up_takes_a_permit_that_is_free_by_then) {
    begin_three();
    rs_semaphore_init(&semaphore, 1);
    CHECK(rs_semaphore_take(&semaphore));
    let_time_out(&semaphore.waiters, RS_WAIT_LIST);
    CHECK(rs_semaphore_give(machine, &semaphore));
    CHECK_EQUAL(1, semaphore.free);
    yield_to(two);
    CHECK(rs_semaphore_waited(&semaphore, woken));
    CHECK_EQUAL(0, semaphore.free);
    finish(2, two, one);
}

/* A permit goes to a strand in a selector, or in the list, by who has waited longer; with nobody there, the selector is told. */
TEST(a_permit_goes_to_a_selector_in_its_turn) {
    rs_selector selector;
    rs_watch watch;
    begin_three();
    rs_semaphore_init(&semaphore, 1);
    CHECK(rs_semaphore_take(&semaphore));
    yield_to(two);
    rs_selector_open(machine, &selector);
    rs_watch_open(&selector, &watch, &semaphore.for_permits);
    rs_watch_idle(&watch);
    wait_in(&selector.waiters, RS_WAIT_LIST, RS_NEVER, three);
    wait_in(&semaphore.waiters, RS_WAIT_LIST, RS_NEVER, one);
    CHECK_EQUAL(2, rs_semaphore_waiting(&semaphore));
    CHECK(rs_semaphore_give(machine, &semaphore));
    yield_to(two);
    CHECK(rs_selector_take_served(&selector) == &watch);
    CHECK(rs_semaphore_give(machine, &semaphore));
    yield_to(one);
    yield_to(three);
    CHECK(rs_semaphore_waited(&semaphore, woken));
    CHECK(rs_semaphore_give(machine, &semaphore));
    CHECK(watch.ready);
    rs_semaphore_drop(&semaphore);
    rs_selector_close(&selector);
    finish(3, three, two, one);
}

TEST(a_semaphore_of_a_machine_that_has_gone_has_all_its_permits) {
    rs_selector selector;
    rs_watch watch;
    begin_three();
    rs_semaphore_init(&semaphore, 3);
    CHECK(rs_semaphore_take(&semaphore));
    rs_selector_open(machine, &selector);
    rs_watch_open(&selector, &watch, &semaphore.for_permits);
    rs_semaphore_forget(&semaphore);
    CHECK_EQUAL(3, semaphore.free);
    CHECK(!rs_source_is_watched(&semaphore.for_permits));
    rs_selector_close(&selector);
    finish(3, one, two, three);
}

/* --- barrier --- */

TEST(all_at_a_barrier_go_on_when_the_last_one_comes) {
    rs_barrier barrier = {.parties = 3};
    begin_three();
    for (int round = 0; round < 2; round++) {
        CHECK(!rs_barrier_arrive(machine, &barrier));
        wait_in(&barrier.waiters, RS_WAIT_LIST, RS_NEVER, two);
        CHECK(!rs_barrier_arrive(machine, &barrier));
        wait_in(&barrier.waiters, RS_WAIT_LIST, RS_NEVER, three);
        CHECK(rs_barrier_arrive(machine, &barrier));
        yield_to(one);
        CHECK_EQUAL(RS_WAKE_VALUE, woken);
        yield_to(two);
        CHECK_EQUAL(RS_WAKE_VALUE, woken);
        yield_to(three);
        yield_to(one);
    }
    finish(3, one, two, three);
}

TEST(a_strand_that_is_cancelled_does_not_count_at_a_barrier) {
    rs_barrier barrier = {.parties = 2};
    begin_three();
    CHECK(!rs_barrier_arrive(machine, &barrier));
    wait_in(&barrier.waiters, RS_WAIT_LIST, RS_NEVER, two);
    rs_scope_cancel(machine, &one->own, RS_CANCELLED_BY_CALL);
    CHECK(!rs_barrier_arrive(machine, &barrier));
    wait_in(&barrier.waiters, RS_WAIT_LIST, RS_NEVER, three);
    CHECK(rs_barrier_arrive(machine, &barrier));
    yield_to(one);
    CHECK_EQUAL(RS_WAKE_CANCEL, woken);
    yield_to(two);
    CHECK_EQUAL(RS_WAKE_VALUE, woken);
    finish(3, two, three, one);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
