/* The branches of a selector, one rule after the other, on a simulated kernel without faults. The random programs have a role for
 * selectors as well (program_choose.c). */
#include "test.h"

#include "three.h"

#include <errno.h>
#include <poll.h>

enum { NONE = 4, SOURCE = 1000, BLOCK = 2000, ITEM = 3000 };

static rs_branches branches;
static rs_queue queues[2];
static rs_semaphore semaphore;
static uint64_t value;
static rs_look answer;
static rs_win win;

static rs_branch *add(rs_branch_kind kind, void *from, uint64_t number) {
    rs_branch given = {.kind = kind, .from = from, .source = SOURCE + number, .block = BLOCK + number, .watch.item = ITEM + number};
    return rs_branches_add(&branches, &given, NULL);
}

static void begin_branches(void) {
    begin_three();
    memset(queues, 0, sizeof(queues));
    rs_semaphore_init(&semaphore, 1);
    rs_branches_open(machine, &branches);
}

static void end_branches(void) {
    rs_branches_close(&branches);
    rs_branches_free(&branches);
    for (int i = 0; i < 2; i++) {
        CHECK(!rs_source_is_watched(&queues[i].for_items) && !rs_source_is_watched(&queues[i].for_places));
        rs_queue_free(&queues[i]);
    }
    CHECK(!rs_source_is_watched(&semaphore.for_permits));
}

static rs_branch *look(void) {
    value = NONE;
    return rs_branches_look(machine, &branches, &value, &answer);
}

static void wins(rs_branch *expected, uint64_t expected_value) {
    CHECK(look() == expected);
    CHECK_EQUAL(RS_LOOK_WON, answer);
    CHECK_EQUAL(expected_value, value);
}

static uint64_t sum;
static void count(uint64_t word) { sum += word; }

static uint64_t sum_of_words(void) {
    sum = 0;
    rs_branches_each(&branches, count);
    return sum;
}

TEST(each_kind_takes_what_its_source_has_or_changes_nothing) {
    begin_branches();
    rs_queue_limit(&queues[1], 1);
    rs_branch *pop = add(RS_BRANCH_POP, &queues[0], 0), *push = add(RS_BRANCH_PUSH, &queues[1], 1);
    rs_branch *acquire = add(RS_BRANCH_ACQUIRE, &semaphore, 2);
    CHECK_EQUAL(3, branches.used_len);
    wins(push, SOURCE + 1);
    wins(acquire, SOURCE + 2);
    CHECK(!look());
    CHECK_EQUAL(0, branches.selector.ready_len);
    CHECK_EQUAL(ITEM + 1, rs_queue_last(&queues[1]));
    rs_queue_push(machine, &queues[0], 7);
    wins(pop, 7);
    CHECK(rs_semaphore_give(machine, &semaphore));
    rs_queue_pop(machine, &queues[1], &value);
    wins(acquire, SOURCE + 2);
    wins(push, SOURCE + 1);
    CHECK(!look());
    end_branches();
    finish(3, one, two, three);
}

TEST(a_closed_queue_wins_for_who_pops_and_fails_who_pushes) {
    begin_branches();
    rs_queue_push(machine, &queues[0], 7);
    rs_queue_close(machine, &queues[0]);
    rs_branch *pop = add(RS_BRANCH_POP, &queues[0], 0);
    wins(pop, 7);
    wins(pop, NONE);
    rs_branches_remove(&branches, pop);
    rs_branch *push = add(RS_BRANCH_PUSH, &queues[0], 0);
    CHECK(look() == push);
    CHECK_EQUAL(RS_LOOK_CLOSED, answer);
    end_branches();
    finish(3, one, two, three);
}

TEST(channels_are_looked_at_like_queues) {
    begin_branches();
    rs_channel *channel = rs_channel_new(1);
    rs_branch *pop = add(RS_BRANCH_POP_CHANNEL, channel, 0), *push = add(RS_BRANCH_PUSH_CHANNEL, channel, 1);
    wins(push, SOURCE + 1);
    wins(pop, ITEM + 1);
    rs_channel_close(channel, machine);
    rs_branches_remove(&branches, push);
    wins(pop, NONE);
    end_branches();
    rs_channel_release(channel);
    finish(3, one, two, three);
}

TEST(the_driver_is_asked_about_a_source_of_its_own) {
    begin_branches();
    rs_source source = {0};
    rs_branch given = {.kind = RS_BRANCH_RESULT, .source = SOURCE};
    rs_branch *result = rs_branches_add(&branches, &given, &source);
    CHECK(look() == result);
    CHECK_EQUAL(RS_LOOK_ASK, answer);
    rs_watch_idle(&result->watch);
    CHECK(!look());
    rs_source_ready(&source);
    CHECK(look() == result);
    CHECK_EQUAL(RS_LOOK_ASK, answer);
    end_branches();
    finish(3, one, two, three);
}

TEST(all_of_a_source_are_removed_and_their_memory_is_used_again) {
    begin_branches();
    rs_branch *first = add(RS_BRANCH_POP, &queues[0], 0);
    add(RS_BRANCH_POP, &queues[0], 0);
    add(RS_BRANCH_POP, &queues[1], 1);
    CHECK_EQUAL(3 * (SOURCE + BLOCK + ITEM) + 3, sum_of_words());
    CHECK_EQUAL(2, rs_branches_remove_all(&branches, SOURCE));
    CHECK_EQUAL(0, rs_branches_remove_all(&branches, SOURCE));
    CHECK_EQUAL(SOURCE + BLOCK + ITEM + 3, sum_of_words());
    CHECK_EQUAL(1, branches.used_len);
    CHECK_EQUAL(3 * sizeof(rs_branch), rs_branches_bytes(&branches));
    CHECK(add(RS_BRANCH_POP, &queues[0], 0) == first);
    CHECK_EQUAL(3 * sizeof(rs_branch), rs_branches_bytes(&branches));
    for (int i = 0; i < 20; i++) add(RS_BRANCH_POP, &queues[0], 0);
    rs_branches_clear(&branches);
    CHECK_EQUAL(0, sum_of_words());
    CHECK(rs_branches_bytes(&branches) < 20 * sizeof(rs_branch));
    rs_tries_left = 0;
    while (branches.spare_len > 0) CHECK(add(RS_BRANCH_POP, &queues[0], 0) != NULL);
    CHECK(add(RS_BRANCH_POP, &queues[0], 0) == NULL);
    rs_tries_left = -1;
    end_branches();
    finish(3, one, two, three);
}

/* `one` waits in the selector for an item of the first queue, and `two` runs. */
static rs_branch *wait_for_item(void) {
    begin_branches();
    rs_branch *pop = add(RS_BRANCH_POP, &queues[0], 0);
    CHECK(!look());
    CHECK(rs_branches_enter(machine, &branches));
    wait_in(&branches.selector.waiters, RS_WAIT_LIST, RS_NEVER, two);
    return pop;
}

TEST(one_strand_at_a_time_waits) {
    wait_for_item();
    CHECK(!rs_branches_enter(machine, &branches));
    rs_scope_cancel(machine, &one->own, RS_CANCELLED_BY_CALL);
    CHECK(!rs_branches_enter(machine, &branches));
    yield_to(three);
    yield_to(one);
    rs_finish(machine); /* without having left */
    goes_on(two);
    CHECK(rs_branches_enter(machine, &branches));
    rs_branches_leave(&branches);
    end_branches();
    finish(2, two, three);
}

TEST(what_was_served_is_taken_once) {
    wait_for_item();
    rs_queue_push(machine, &queues[0], 7);
    CHECK_EQUAL(0, queues[0].len);
    yield_to(three);
    yield_to(one);
    CHECK(rs_branches_take_served(machine, &branches, &win));
    CHECK(win.kind == RS_BRANCH_POP && win.source == SOURCE && win.block == BLOCK && win.value == 7);
    CHECK(!rs_branches_take_served(machine, &branches, &win));
    end_branches();
    finish(3, one, two, three);
}

TEST(what_was_served_is_taken_although_its_branch_or_all_have_gone) {
    for (int all = 0; all < 2; all++) {
        rs_branch *pop = wait_for_item();
        rs_queue_push(machine, &queues[0], 7);
        if (all) rs_branches_close(&branches);
        else rs_branches_remove(&branches, pop);
        CHECK_EQUAL(0, branches.used_len);
        CHECK_EQUAL(SOURCE + BLOCK + ITEM, sum_of_words());
        yield_to(three);
        yield_to(one);
        CHECK(rs_branches_take_served(machine, &branches, &win));
        CHECK_EQUAL(7, win.value);
        CHECK_EQUAL(0, sum_of_words());
        end_branches();
        finish(3, one, two, three);
    }
}

TEST(what_nobody_takes_any_more_is_freed) {
    rs_branch *pop = wait_for_item();
    rs_queue_push(machine, &queues[0], 7);
    rs_branches_remove(&branches, pop);
    rs_branches_free(&branches);
    yield_to(three);
    yield_to(one);
    rs_queue_free(&queues[0]);
    finish(3, one, two, three);
}

TEST(a_choice_looks_once_more_after_its_time_and_waits_no_more) {
    rs_select select;
    int64_t until_ns = 0;
    begin_branches();
    rs_select_begin(&select, 5, false);
    CHECK(rs_select_waits(machine, &select, &until_ns));
    CHECK_EQUAL(5, until_ns);
    rs_select_waited(&select, RS_WAKE_VALUE);
    CHECK(rs_select_waits(machine, &select, &until_ns));
    rs_select_waited(&select, RS_WAKE_TIMEOUT);
    CHECK(!rs_select_waits(machine, &select, &until_ns));
    rs_select_begin(&select, RS_NEVER, true);
    CHECK(!rs_select_waits(machine, &select, &until_ns));
    end_branches();
    finish(3, one, two, three);
}

static void perform(rs_request request) {
    rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(op != NULL);
    goes_on(one);
    rs_op_end(machine, op);
}

/* The simulated kernel polls nothing without an op. */
TEST(a_choice_that_never_waits_parks_for_a_moment_where_only_ops_poll) {
    rs_select select;
    int64_t until_ns = RS_NEVER, error = 0;
    int pair[2];
    begin_branches();
    yield_to(two);
    rs_finish(machine);
    goes_on(three);
    rs_finish(machine);
    goes_on(one);
    perform(request_pipe(pair));
    rs_branch *readable = add(RS_BRANCH_READABLE, NULL, 0);
    CHECK(look() == readable);
    CHECK_EQUAL(RS_LOOK_ASK, answer);
    CHECK_EQUAL(RS_LOOK_NOTHING, rs_branch_look_at(machine, readable, pair[0], POLLIN, &error));
    CHECK(!look());
    rs_select_begin(&select, RS_NEVER, true);
    CHECK(rs_select_waits(machine, &select, &until_ns));
    CHECK_EQUAL(rs_now(machine), until_ns);
    perform(request_write(pair[1], "x", 1));
    if (branches.selector.ready_len == 0) wait_in(&branches.selector.waiters, RS_WAIT_LIST, RS_NEVER, one);
    CHECK(look() == readable);
    CHECK_EQUAL(RS_LOOK_WON, rs_branch_look_at(machine, readable, pair[0], POLLIN, &error));
    rs_branches_remove(&branches, readable);
    perform(request_close(pair[0]));
    perform(request_close(pair[1]));
    readable = add(RS_BRANCH_READABLE, NULL, 0);
    CHECK(look() == readable);
    if (rs_branch_look_at(machine, readable, pair[0], POLLIN, &error) == RS_LOOK_NOTHING) {
        if (branches.selector.ready_len == 0) wait_in(&branches.selector.waiters, RS_WAIT_LIST, RS_NEVER, one);
        CHECK(look() == readable);
        CHECK_EQUAL(RS_LOOK_FAILED, rs_branch_look_at(machine, readable, pair[0], POLLIN, &error));
    }
    CHECK_EQUAL(-EBADF, error);
    end_branches();
    finish(1, one);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
