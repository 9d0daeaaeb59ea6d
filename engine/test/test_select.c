/* Selectors and their sources, one rule after the other, on a simulated kernel without faults. The random programs have a role for
 * them as well (program_choose.c). */
#include "test.h"

#include "by_hand.h"

#include <errno.h>
#include <poll.h>

static rs_source sources[3];
static rs_selector selector;
static rs_watch watches[3];

static void open_all(void) {
    memset(sources, 0, sizeof(sources));
    rs_selector_open(machine, &selector);
    for (int i = 0; i < 3; i++) rs_watch_open(&selector, &watches[i], &sources[i]);
}

/* As a strand that has looked at all and found nothing. */
static void look_in_vain(void) {
    while (!rs_links_empty(&selector.ready)) rs_watch_idle(rs_selector_next(&selector));
}

/* A strand that has. */
static rs_strand *begin_looking(void) {
    begin();
    rs_strand *strand = spawn();
    next();
    open_all();
    look_in_vain();
    return strand;
}

static uint64_t wait_in(rs_strand *strand, rs_selector *in, int64_t deadline_ns) {
    uint64_t ticket = rs_park_begin(machine, RS_WAIT_LIST, 0, deadline_ns);
    CHECK(ticket != 0);
    rs_list_append(machine, &in->waiters, strand, 0);
    return ticket;
}

static void finish_with(rs_wake_kind kind) {
    CHECK_EQUAL(kind, park_end());
    rs_selector_close(&selector);
    for (int i = 0; i < 3; i++) CHECK(!rs_source_is_watched(&sources[i]));
    CHECK(rs_links_empty(&rs_selectors_in(machine)->all));
    rs_finish(machine);
    end();
}

TEST(all_are_looked_at_first_and_each_goes_to_the_end) {
    begin();
    rs_strand *strand = spawn();
    next();
    open_all();
    CHECK_EQUAL(3, selector.ready_len);
    CHECK(rs_selector_next(&selector) == &watches[0]);
    CHECK(rs_selector_next(&selector) == &watches[1]);
    CHECK(rs_selector_next(&selector) == &watches[2]);
    CHECK(rs_selector_next(&selector) == &watches[0]);
    rs_watch_idle(&watches[1]);
    CHECK(rs_selector_next(&selector) == &watches[2]);
    CHECK(rs_selector_next(&selector) == &watches[0]);
    look_in_vain();
    wait_in(strand, &selector, RS_NEVER);
    rs_source_ready(&sources[1]);
    CHECK(next() == strand);
    CHECK(rs_selector_next(&selector) == &watches[1]);
    CHECK_EQUAL(1, selector.ready_len);
    finish_with(RS_WAKE_VALUE);
}

TEST(two_sources_in_the_same_pass_make_one_wake) {
    rs_strand *strand = begin_looking();
    wait_in(strand, &selector, RS_NEVER);
    rs_source_ready(&sources[2]);
    rs_source_ready(&sources[0]);
    rs_source_ready(&sources[2]);
    CHECK_EQUAL(1, machine->strands.run_len);
    CHECK(next() == strand);
    CHECK_EQUAL(2, selector.ready_len);
    CHECK(rs_selector_next(&selector) == &watches[2]);
    finish_with(RS_WAKE_VALUE);
}

TEST(what_becomes_ready_while_nobody_waits_is_found_by_the_next_look) {
    begin();
    spawn();
    next();
    open_all();
    look_in_vain();
    rs_source_ready(&sources[1]);
    CHECK_EQUAL(0, machine->strands.run_len);
    CHECK(rs_selector_next(&selector) == &watches[1]);
    wait_in(machine->runs, &selector, rs_now(machine));
    CHECK(next_ever() != NULL);
    finish_with(RS_WAKE_TIMEOUT);
}

/* The source looks for somebody to serve: one that was cancelled first waits no more. */
TEST(a_waiter_that_is_cancelled_first_is_not_served) {
    rs_strand *strand = begin_looking();
    wait_in(strand, &selector, RS_NEVER);
    CHECK(rs_source_waiting(&sources[0], NULL) == &watches[0]);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK(!rs_source_waiting(&sources[0], NULL));
    rs_source_ready(&sources[0]);
    CHECK(next() == strand);
    CHECK_EQUAL(1, selector.ready_len);
    finish_with(RS_WAKE_CANCEL);
}

TEST(what_was_handed_over_is_the_strands_although_it_is_cancelled_then) {
    rs_strand *strand = begin_looking();
    wait_in(strand, &selector, rs_now(machine) + MS);
    CHECK(rs_watch_strand(&watches[2]) == strand);
    rs_watch_serve(&watches[2]);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK(next() == strand);
    CHECK(selector.served == &watches[2]);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    finish_with(RS_WAKE_VALUE);
}

TEST(a_time_that_is_up_and_a_source_in_the_same_pass) {
    rs_strand *strand = begin_looking();
    wait_in(strand, &selector, rs_now(machine) + MS);
    rs_decision decision = rs_next(machine);
    CHECK_EQUAL(RS_SLEEP, decision.verdict);
    rs_sleep(machine, decision.deadline_ns);
    rs_source_ready(&sources[1]); /* before the machine looks at its timers */
    CHECK(next() == strand);
    CHECK_EQUAL(1, selector.ready_len);
    CHECK_EQUAL(0, machine->timers.len);
    finish_with(RS_WAKE_VALUE);
}

TEST(who_has_waited_longest_is_served_first_in_a_list_or_a_selector) {
    begin();
    rs_strand *first = spawn(), *second = spawn();
    rs_list list = {0};
    next();
    open_all();
    look_in_vain();
    wait_in(first, &selector, RS_NEVER);
    CHECK(next() == second);
    park(0, RS_NEVER);
    rs_list_append(machine, &list, second, 0);
    CHECK(rs_source_waiting(&sources[0], rs_list_first(machine, &list)) == &watches[0]);
    rs_watch_serve(&watches[0]);
    CHECK(next() == first);
    park_end();
    selector.served = NULL;
    wait_in(first, &selector, RS_NEVER);
    CHECK(!rs_source_waiting(&sources[0], rs_list_first(machine, &list)));
    CHECK(rs_source_waiting(&sources[0], NULL) == &watches[0]);
    rs_list_wake_first(machine, &list, 0);
    CHECK(next() == second);
    park_end();
    rs_finish(machine);
    rs_source_ready(&sources[0]);
    next();
    finish_with(RS_WAKE_VALUE);
}

TEST(a_source_that_goes_leaves_the_watch_where_it_is) {
    begin();
    rs_strand *strand = spawn();
    next();
    open_all();
    rs_source_drop(&sources[1]);
    CHECK(!watches[1].watcher.source);
    look_in_vain();
    wait_in(strand, &selector, RS_NEVER);
    rs_source_ready(&sources[1]);
    CHECK(next() == NULL);
    rs_source_ready(&sources[0]);
    next();
    finish_with(RS_WAKE_VALUE);
}

TEST(a_strands_end_is_a_source) {
    begin();
    rs_strand *target = spawn(), *strand = spawn();
    CHECK(next() == target);
    park(0, RS_NEVER);
    CHECK(next() == strand);
    rs_selector_open(machine, &selector);
    rs_watch_open(&selector, &watches[0], &target->watched);
    look_in_vain();
    wait_in(strand, &selector, RS_NEVER);
    rs_wake(machine, rs_strand_id(target), target->ticket, RS_WAKE_VALUE, 0);
    CHECK(next() == target);
    park_end();
    rs_finish(machine);
    CHECK(!watches[0].watcher.source);
    CHECK(next() == strand);
    CHECK(rs_selector_next(&selector) == &watches[0]);
    finish_with(RS_WAKE_VALUE);
}

TEST(where_a_round_begins_is_drawn_from_the_seed) {
    begin();
    rs_strand *strand = spawn();
    next();
    uint32_t began[3] = {0};
    for (int i = 0; i < 300; i++) {
        open_all();
        rs_selector_shuffle(&selector);
        began[RS_LINKED(selector.ready.first, rs_watch, of_ready) - watches]++;
        rs_selector_close(&selector);
    }
    for (int i = 0; i < 3; i++) CHECK(began[i] > 50);
    open_all();
    wait_in(strand, &selector, rs_now(machine));
    next_ever();
    finish_with(RS_WAKE_TIMEOUT);
}

/* --- descriptors --- */

static int pipe_of[2];

static void open_pipe(rs_strand *strand) {
    rs_request request = request_pipe(pipe_of);
    rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(op != NULL && next_ever() == strand);
    park_end();
    rs_op_end(machine, op);
}

static void perform(rs_strand *strand, rs_request request) {
    rs_op *op = rs_op_start(machine, &request, 0, RS_NEVER);
    CHECK(op != NULL && next_ever() == strand);
    park_end();
    rs_op_end(machine, op);
}

TEST(an_op_for_a_descriptor_makes_its_watch_ready_and_lasts_from_wait_to_wait) {
    begin();
    rs_strand *strand = spawn();
    next();
    open_pipe(strand);
    open_all();
    rs_watch watch = {0};
    rs_watch_open(&selector, &watch, NULL);
    look_in_vain();
    CHECK(rs_watch_arm(&watch, pipe_of[0], POLLIN));
    rs_id op = watch.op;
    wait_in(strand, &selector, RS_NEVER);
    rs_source_ready(&sources[0]);
    CHECK(next() == strand);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK(rs_watch_arm(&watch, pipe_of[0], POLLIN));
    CHECK(watch.op == op);
    look_in_vain();
    rs_strand *writer = spawn();
    wait_in(strand, &selector, RS_NEVER);
    CHECK(next() == writer);
    perform(writer, request_write(pipe_of[1], "x", 1));
    rs_finish(machine);
    CHECK(next_ever() == strand);
    CHECK_EQUAL(RS_WAKE_VALUE, park_end());
    CHECK(rs_selector_next(&selector) == &watch);
    CHECK(watch.result & POLLIN);
    CHECK(!watch.op && machine->unawaited == 0);
    perform(strand, request_close(pipe_of[0]));
    perform(strand, request_close(pipe_of[1]));
    wait_in(strand, &selector, rs_now(machine));
    next_ever();
    finish_with(RS_WAKE_TIMEOUT);
}

TEST(a_watch_that_goes_takes_its_op_along) {
    for (int abandons = 0; abandons < 2; abandons++) {
        begin();
        rs_strand *strand = spawn();
        next();
        open_pipe(strand);
        open_all();
        rs_watch watch = {0};
        rs_watch_open(&selector, &watch, NULL);
        CHECK(rs_watch_arm(&watch, pipe_of[0], POLLIN));
        if (abandons) rs_selector_abandon(&selector);
        else rs_selector_close(&selector);
        CHECK_EQUAL(0, machine->unawaited);
        perform(strand, request_close(pipe_of[1]));
        CHECK_EQUAL(0, machine->in_flight);
        perform(strand, request_close(pipe_of[0]));
        CHECK_EQUAL(0, rs_ops_in(machine)->slab.used);
        open_all();
        wait_in(strand, &selector, rs_now(machine));
        next_ever();
        finish_with(RS_WAKE_TIMEOUT);
    }
}

TEST(closing_a_descriptor_ends_the_op_of_its_watch) {
    begin();
    rs_strand *strand = spawn();
    next();
    open_pipe(strand);
    open_all();
    rs_watch watch = {0};
    rs_watch_open(&selector, &watch, NULL);
    look_in_vain();
    rs_watch_arm(&watch, pipe_of[0], POLLIN);
    CHECK_EQUAL(0, rs_descriptor_closing(machine, pipe_of[0]));
    CHECK_EQUAL(-ECANCELED, watch.result);
    CHECK(watch.ready);
    perform(strand, request_close(pipe_of[0]));
    perform(strand, request_close(pipe_of[1]));
    wait_in(strand, &selector, rs_now(machine));
    next_ever();
    finish_with(RS_WAKE_TIMEOUT);
}

/* --- the machine's end --- */

TEST(a_machine_that_closes_leaves_no_selector_open) {
    begin();
    open_all();
    end();
    CHECK(!selector.machine);
    for (int i = 0; i < 3; i++) CHECK(!rs_source_is_watched(&sources[i]) && !watches[i].watcher.source);
    rs_selector_close(&selector);
    rs_selector_abandon(&selector);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
