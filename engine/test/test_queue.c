/* Queues, one rule after the other, on a simulated kernel without faults. The random programs have roles for them as well
 * (program_locks.c, program_choose.c). */
#include "test.h"

#include "three.h"

static rs_queue queue;
static uint64_t item;

/* Three strands, of which the first runs, and a queue for so many items; 0: for any number. */
static void begin_queue(int64_t max) {
    begin_three();
    queue = (rs_queue){.max = max};
    item = 0;
}

static void end_queue(void) {
    rs_queue_free(&queue);
    CHECK(!rs_source_is_watched(&queue.for_items) && !rs_source_is_watched(&queue.for_places));
}

static void wait_to_pop(rs_strand *other) {
    CHECK_EQUAL(RS_QUEUE_WAITS, rs_queue_pop(machine, &queue, &item));
    wait_in(&queue.poppers, RS_WAIT_LIST, RS_NEVER, other);
}

static void wait_to_push(uint64_t offered, rs_strand *other) {
    CHECK_EQUAL(RS_QUEUE_WAITS, rs_queue_push(machine, &queue, offered));
    rs_queue_offer(machine, offered);
    wait_in(&queue.pushers, RS_WAIT_LIST, RS_NEVER, other);
}

static void push(uint64_t pushed) { CHECK_EQUAL(RS_QUEUE_DONE, rs_queue_push(machine, &queue, pushed)); }

static void pop(uint64_t expected) {
    CHECK_EQUAL(RS_QUEUE_DONE, rs_queue_pop(machine, &queue, &item));
    CHECK_EQUAL(expected, item);
}

static rs_queue_answer popped(void) { return rs_queue_popped(machine, &queue, woken, result, &item); }
static rs_queue_answer pushed(void) { return rs_queue_pushed(machine, &queue, woken, result); }

static uint64_t sum;
static void add(uint64_t each) { sum += each; }

/* --- the ring --- */

TEST(items_come_out_in_their_order_while_the_ring_turns_and_grows) {
    begin_queue(0);
    uint64_t in = 0, out = 0;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < round % 23; i++) push(++in);
        CHECK(in == out || rs_queue_last(&queue) == in);
        for (int i = 0; i < round % 19; i++) {
            if (out < in) pop(++out);
            else CHECK_EQUAL(RS_QUEUE_WAITS, rs_queue_pop(machine, &queue, &item));
        }
        sum = 0;
        rs_queue_each(&queue, add);
        uint64_t expected = 0;
        for (uint64_t each = out + 1; each <= in; each++) expected += each;
        CHECK_EQUAL(expected, sum);
    }
    CHECK_EQUAL(in - out, queue.len);
    end_queue();
    finish(3, one, two, three);
}

TEST(an_empty_queue_gives_much_memory_back_and_keeps_a_little) {
    begin_queue(0);
    for (uint64_t i = 0; i < 100000; i++) push(i);
    for (uint64_t i = 0; i < 100000; i++) pop(i);
    CHECK_EQUAL(0, queue.allocated);
    push(1);
    pop(1);
    CHECK(queue.allocated > 0);
    end_queue();
    finish(3, one, two, three);
}

TEST(a_push_without_memory_changes_nothing) {
    begin_queue(0);
    rs_tries_left = 0;
    CHECK_EQUAL(RS_QUEUE_NO_MEMORY, rs_queue_push(machine, &queue, 1));
    rs_tries_left = -1;
    CHECK_EQUAL(0, queue.len);
    push(2);
    pop(2);
    end_queue();
    finish(3, one, two, three);
}

/* --- hand-over --- */

TEST(an_item_goes_to_the_first_popper_in_the_step_that_wakes_it) {
    begin_queue(0);
    wait_to_pop(two);
    wait_to_pop(three);
    push(7);
    CHECK_EQUAL(0, queue.len);
    CHECK_EQUAL(7, one->hand); /* where a collector finds it */
    push(8);
    push(9);
    CHECK_EQUAL(1, queue.len);
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_DONE, popped());
    CHECK_EQUAL(7, item);
    CHECK_EQUAL(0, one->hand);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, popped());
    CHECK_EQUAL(8, item);
    pop(9);
    end_queue();
    finish(3, two, three, one);
}

TEST(an_item_goes_past_a_popper_that_was_cancelled_in_the_same_turn) {
    begin_queue(0);
    wait_to_pop(two);
    wait_to_pop(three);
    rs_scope_cancel(machine, &one->own, RS_CANCELLED_BY_CALL);
    push(7);
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_WAITS, popped());
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, popped());
    CHECK_EQUAL(7, item);
    end_queue();
    finish(3, two, three, one);
}

TEST(an_item_that_was_handed_over_is_the_poppers_although_it_is_cancelled_then) {
    begin_queue(0);
    wait_to_pop(two);
    push(7);
    rs_scope_cancel(machine, &one->own, RS_CANCELLED_BY_CALL);
    yield_to(three);
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_DONE, popped());
    CHECK_EQUAL(7, item);
    end_queue();
    finish(3, one, two, three);
}

TEST(a_popper_whose_time_is_up_takes_what_has_come_by_then) {
    begin_queue(0);
    let_time_out(&queue.poppers, RS_WAIT_LIST);
    push(7);
    CHECK_EQUAL(1, queue.len);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, popped());
    CHECK_EQUAL(7, item);
    end_queue();
    finish(2, two, one);
}

TEST(a_popper_whose_time_is_up_goes_without) {
    begin_queue(0);
    let_time_out(&queue.poppers, RS_WAIT_LIST);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_WAITS, popped());
    end_queue();
    finish(2, two, one);
}

/* --- a limit --- */

TEST(a_pop_gives_the_place_to_the_first_pusher_and_takes_its_item_in) {
    begin_queue(1);
    push(1);
    wait_to_push(2, two);
    wait_to_push(3, three);
    CHECK_EQUAL(2, one->hand);
    pop(1);
    CHECK_EQUAL(1, queue.len); /* nobody comes between */
    CHECK_EQUAL(RS_QUEUE_WAITS, rs_queue_push(machine, &queue, 4));
    pop(2);
    pop(3);
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    CHECK_EQUAL(0, one->hand);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    end_queue();
    finish(3, two, three, one);
}

TEST(the_item_of_a_pusher_that_was_cancelled_was_never_in_the_queue) {
    begin_queue(1);
    push(1);
    wait_to_push(2, two);
    wait_to_push(3, three);
    rs_scope_cancel(machine, &one->own, RS_CANCELLED_BY_CALL);
    pop(1);
    pop(3);
    CHECK_EQUAL(0, queue.len);
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_WAITS, pushed());
    CHECK_EQUAL(0, one->hand);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    end_queue();
    finish(3, two, three, one);
}

TEST(a_pusher_whose_time_is_up_pushes_if_there_is_a_place_by_then) {
    begin_queue(1);
    push(1);
    rs_queue_offer(machine, 2);
    let_time_out(&queue.pushers, RS_WAIT_LIST);
    CHECK_EQUAL(2, rs_strand_take_hand(one));
    two->hand = 2;
    pop(1);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    pop(2);
    end_queue();
    finish(2, two, one);
}

/* As one that came too late, and not as one that waited when it was closed. */
TEST(a_pusher_whose_time_is_up_puts_nothing_into_a_closed_queue) {
    begin_queue(1);
    push(1);
    let_time_out(&queue.pushers, RS_WAIT_LIST);
    pop(1);
    rs_queue_close(machine, &queue);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_WAITS, pushed());
    CHECK_EQUAL(0, queue.len);
    end_queue();
    finish(2, two, one);
}

TEST(a_higher_limit_or_a_clear_queue_takes_in_as_many_as_there_are_places) {
    begin_queue(1);
    push(1);
    wait_to_push(2, two);
    wait_to_push(3, three);
    CHECK(!rs_queue_take_in(machine, &queue));
    rs_queue_limit(&queue, 2);
    CHECK(rs_queue_take_in(machine, &queue));
    CHECK(!rs_queue_take_in(machine, &queue));
    CHECK_EQUAL(2, rs_queue_last(&queue));
    rs_queue_clear(&queue);
    CHECK(rs_queue_take_in(machine, &queue));
    CHECK(!rs_queue_take_in(machine, &queue));
    pop(3);
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    end_queue();
    finish(3, two, three, one);
}

/* Its place is given to it by the next pop, for which there is memory. */
TEST(a_pusher_stays_in_line_when_there_is_no_memory_for_its_item) {
    begin_queue(8);
    for (uint64_t i = 1; i <= 8; i++) push(i);
    wait_to_push(9, two);
    rs_queue_limit(&queue, 100);
    rs_tries_left = 0;
    CHECK(!rs_queue_take_in(machine, &queue));
    rs_tries_left = -1;
    CHECK_EQUAL(1, queue.pushers.len);
    pop(1);
    CHECK_EQUAL(0, queue.pushers.len);
    CHECK_EQUAL(9, rs_queue_last(&queue));
    yield_to(three);
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    end_queue();
    finish(3, one, two, three);
}

/* --- the end --- */

TEST(a_close_ends_the_waits_of_poppers) {
    begin_queue(0);
    wait_to_pop(two);
    wait_to_pop(three);
    CHECK_EQUAL(2, rs_queue_waiting(&queue));
    rs_queue_close(machine, &queue);
    CHECK_EQUAL(0, rs_queue_waiting(&queue));
    CHECK_EQUAL(RS_QUEUE_CLOSED, rs_queue_push(machine, &queue, 1));
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_CLOSED, popped());
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_CLOSED, popped());
    CHECK_EQUAL(RS_QUEUE_CLOSED, rs_queue_pop(machine, &queue, &item));
    end_queue();
    finish(3, two, three, one);
}

TEST(a_close_ends_the_waits_of_pushers_and_what_is_inside_is_popped) {
    begin_queue(1);
    push(1);
    wait_to_push(2, two);
    wait_to_push(3, three);
    rs_queue_close(machine, &queue);
    pop(1);
    CHECK_EQUAL(RS_QUEUE_CLOSED, rs_queue_pop(machine, &queue, &item));
    yield_to(one);
    CHECK_EQUAL(RS_QUEUE_CLOSED, pushed());
    CHECK_EQUAL(0, one->hand);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_CLOSED, pushed());
    end_queue();
    finish(3, two, three, one);
}

/* --- selectors --- */

static rs_selector selector;
static rs_watch watch;

/* The strand that runs waits in a selector whose only source has nothing. */
static void select_from(rs_source *source, uint64_t offered, rs_strand *other) {
    rs_selector_open(machine, &selector);
    rs_watch_open(&selector, &watch, source);
    watch.item = offered;
    rs_watch_idle(&watch);
    wait_in(&selector.waiters, RS_WAIT_LIST, RS_NEVER, other);
}

TEST(an_item_goes_to_a_selector_in_its_turn) {
    begin_queue(0);
    select_from(&queue.for_items, 0, two);
    wait_to_pop(three);
    CHECK_EQUAL(2, rs_queue_waiting(&queue));
    push(7);
    push(8);
    yield_to(one);
    CHECK(rs_selector_take_served(&selector) == &watch);
    CHECK_EQUAL(7, rs_strand_take_hand(one));
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, popped());
    CHECK_EQUAL(8, item);
    push(9);
    CHECK(watch.ready);
    end_queue();
    rs_selector_close(&selector);
    finish(3, two, three, one);
}

TEST(a_place_goes_to_a_selector_in_its_turn_and_its_item_is_taken_in) {
    begin_queue(1);
    push(1);
    select_from(&queue.for_places, 2, two);
    wait_to_push(3, three);
    pop(1);
    CHECK_EQUAL(2, rs_queue_last(&queue));
    yield_to(one);
    CHECK(rs_selector_take_served(&selector) == &watch);
    pop(2);
    pop(3);
    CHECK(watch.ready);
    yield_to(three);
    yield_to(two);
    CHECK_EQUAL(RS_QUEUE_DONE, pushed());
    end_queue();
    rs_selector_close(&selector);
    finish(3, two, one, three);
}

TEST(a_queue_of_a_machine_that_has_gone_keeps_what_is_inside) {
    begin_queue(2);
    push(1);
    push(2);
    select_from(&queue.for_places, 3, two);
    rs_queue_forget(&queue);
    pop(1);
    pop(2);
    CHECK_EQUAL(RS_QUEUE_WAITS, rs_queue_pop(machine, &queue, &item));
    end_queue();
    rs_selector_close(&selector);
    yield_to(three);
    yield_to(one);
    finish(3, one, two, three);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
