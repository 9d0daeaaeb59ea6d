/* Evaluations: who waits for a result and hears of it when, and what unwinds before. */
#include "test.h"

#include "by_hand.h"

static rs_evaluation evaluation;

static void open_evaluation(rs_evaluation_state state) {
    begin();
    rs_evaluation_init(&evaluation, state);
}

static void finish(rs_strand *strand, rs_await_outcome outcome) {
    CHECK(next_ever() == strand);
    CHECK_EQUAL(outcome, rs_await_end(machine, park_end()));
    rs_finish(machine);
}

/* The next strand, which waits for the result from here on. */
static rs_strand *await(int64_t deadline_ns) {
    rs_strand *strand = next();
    CHECK(rs_await_begin(machine, &evaluation.waiters, deadline_ns) != 0);
    return strand;
}

static void park_run(void) { CHECK(park(0, RS_NEVER) != 0); }

static void end_run(rs_strand *run) {
    CHECK(next_ever() == run);
    park_end();
    rs_evaluation_unwound(machine, &evaluation);
    rs_finish(machine);
}

TEST(a_result_wakes_all_who_wait_in_their_order) {
    open_evaluation(RS_EVALUATION_STARTS);
    rs_strand *run = spawn(), *first = spawn(), *second = spawn();
    CHECK(next() == run);
    rs_evaluation_begin(&evaluation);
    park_run();
    CHECK(await(RS_NEVER) == first && await(RS_NEVER) == second);
    CHECK(!rs_is_concluded(&evaluation));
    rs_wake(machine, rs_strand_id(run), run->ticket, RS_WAKE_VALUE, 0);
    CHECK(next() == run);
    park_end();
    rs_evaluation_conclude(machine, &evaluation, 42);
    rs_evaluation_unwound(machine, &evaluation);
    rs_finish(machine);
    CHECK(rs_is_concluded(&evaluation) && evaluation.result == 42 && evaluation.waiters.len == 0);
    finish(first, RS_AWAIT_LOOK);
    finish(second, RS_AWAIT_LOOK);
    end();
}

TEST(the_first_result_stays) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_evaluation_conclude_to(machine, &evaluation, 1, false);
    rs_evaluation_conclude(machine, &evaluation, 2);
    CHECK_EQUAL(1, evaluation.result);
    end();
}

TEST(one_that_is_concluded_before_it_begins) {
    open_evaluation(RS_EVALUATION_STARTS);
    rs_strand *waiter = spawn();
    CHECK(await(RS_NEVER) == waiter);
    rs_evaluation_conclude_to(machine, &evaluation, 7, false);
    CHECK(rs_is_concluded(&evaluation));
    finish(waiter, RS_AWAIT_LOOK);
    end();
}

TEST(waiters_hear_of_it_when_the_run_has_unwound_and_who_has_concluded_it_goes_first) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *run = spawn(), *waiter = spawn(), *canceller = spawn(), *other = spawn();
    CHECK(next() == run);
    park_run();
    CHECK(await(RS_NEVER) == waiter);
    CHECK(next() == canceller);
    rs_evaluation_conclude_to(machine, &evaluation, 5, true);
    rs_interrupt_first(machine, run);
    CHECK(rs_park_begin(machine, RS_WAIT_EVALUATION, 0, RS_NEVER) != 0);
    rs_list_append(machine, &evaluation.unwinders, canceller, 0);
    CHECK(rs_is_concluded(&evaluation) && evaluation.unwinds && evaluation.waiters.len == 1);
    CHECK(next() == run);
    CHECK_EQUAL(RS_WAKE_INTERRUPT, park_end());
    rs_take_interrupt(run);
    rs_yield(machine); /* it waits while it unwinds: nobody hears of that */
    CHECK(next() == other);
    CHECK(evaluation.unwinds && evaluation.waiters.len == 1 && evaluation.unwinders.len == 1);
    rs_finish(machine);
    end_run(run);
    CHECK(!evaluation.unwinds && evaluation.waiters.len == 0 && evaluation.unwinders.len == 0);
    finish(canceller, RS_AWAIT_LOOK);
    finish(waiter, RS_AWAIT_LOOK);
    end();
}

TEST(who_has_concluded_it_is_cancelled_before_it_has_unwound) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *run = spawn(), *canceller = spawn();
    CHECK(next() == run);
    park_run();
    CHECK(next() == canceller);
    rs_evaluation_conclude_to(machine, &evaluation, 5, true);
    rs_interrupt_first(machine, run);
    CHECK(rs_park_begin(machine, RS_WAIT_EVALUATION, 0, RS_NEVER) != 0);
    rs_list_append(machine, &evaluation.unwinders, canceller, 0);
    rs_scope_cancel(machine, &canceller->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, evaluation.unwinders.len);
    rs_take_interrupt(run);
    end_run(run);
    finish(canceller, RS_AWAIT_RAISES);
    end();
}

TEST(a_waiter_that_is_cancelled_leaves_the_others_waiting) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *cancelled = spawn(), *other = spawn();
    CHECK(await(RS_NEVER) == cancelled && await(RS_NEVER) == other);
    rs_scope_cancel(machine, &cancelled->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(1, evaluation.waiters.len);
    finish(cancelled, RS_AWAIT_RAISES);
    rs_evaluation_conclude(machine, &evaluation, 1);
    finish(other, RS_AWAIT_LOOK);
    end();
}

TEST(no_wait_begins_in_a_strand_that_is_cancelled) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *strand = spawn();
    CHECK(next() == strand);
    rs_scope_cancel(machine, &strand->own, RS_CANCELLED_BY_CALL);
    CHECK_EQUAL(0, rs_await_begin(machine, &evaluation.waiters, RS_NEVER));
    CHECK_EQUAL(RS_WAKE_CANCEL, machine->refusal);
    CHECK_EQUAL(RS_AWAIT_RAISES, rs_await_end(machine, machine->refusal));
    CHECK_EQUAL(0, evaluation.waiters.len);
    rs_finish(machine);
    end();
}

TEST(a_result_that_comes_with_the_limit_counts) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *late = spawn(), *waiter = spawn();
    int64_t due_ns = rs_now(machine) + 1000;
    CHECK(next() == late);
    park(0, due_ns);
    CHECK(await(due_ns + 1) == waiter);
    rs_sleep(machine, due_ns + 1);
    CHECK(next() == late);
    park_end();
    CHECK(waiter->state == RS_STRAND_READY && waiter->wake == RS_WAKE_TIMEOUT);
    rs_evaluation_conclude(machine, &evaluation, 3);
    rs_finish(machine);
    finish(waiter, RS_AWAIT_LOOK);
    CHECK(rs_is_concluded(&evaluation));
    end();
}

TEST(a_wait_for_a_result_is_resumed_once) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *waiter = spawn(), *without_list = spawn();
    CHECK(await(RS_NEVER) == waiter);
    CHECK(next() == without_list && rs_await_begin(machine, NULL, RS_NEVER) != 0);
    CHECK_EQUAL(RS_RESUMED, rs_resume(machine, rs_strand_id(waiter)));
    CHECK_EQUAL(RS_RESUMED, rs_resume(machine, rs_strand_id(without_list)));
    CHECK_EQUAL(RS_ENDED_ALREADY, rs_resume(machine, rs_strand_id(waiter)));
    CHECK_EQUAL(0, evaluation.waiters.len);
    rs_evaluation_conclude(machine, &evaluation, 3);
    finish(waiter, RS_AWAIT_RESUMED);
    finish(without_list, RS_AWAIT_RESUMED);
    end();
}

TEST(a_wait_that_its_result_has_ended_is_not_resumed) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *waiter = spawn();
    CHECK(await(RS_NEVER) == waiter);
    rs_evaluation_conclude(machine, &evaluation, 3);
    CHECK_EQUAL(RS_ENDED_ALREADY, rs_resume(machine, rs_strand_id(waiter)));
    rs_id id = rs_strand_id(waiter);
    finish(waiter, RS_AWAIT_LOOK);
    CHECK_EQUAL(RS_NOT_WAITING, rs_resume(machine, id));
    CHECK_EQUAL(RS_NOT_WAITING, rs_resume(machine, RS_NO_ID));
    end();
}

static int heard;

static void hear(rs_watcher *watcher) {
    (void)watcher;
    heard++;
}

TEST(selectors_hear_of_the_result_and_keep_no_source) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_source *source = rs_evaluation_source(&evaluation);
    CHECK(source != NULL && rs_evaluation_source(&evaluation) == source);
    rs_watcher watcher;
    rs_watcher_init(&watcher, source, hear);
    heard = 0;
    rs_evaluation_conclude_to(machine, &evaluation, 3, true);
    CHECK_EQUAL(0, heard);
    rs_evaluation_unwound(machine, &evaluation);
    CHECK_EQUAL(1, heard);
    CHECK(evaluation.watched == NULL && watcher.source == NULL);
    end();
}

TEST(a_source_for_which_there_is_no_memory_is_asked_for_again) {
    open_evaluation(RS_EVALUATION_STARTS);
    rs_tries_left = 0;
    CHECK(rs_evaluation_source(&evaluation) == NULL);
    rs_tries_left = -1;
    CHECK(rs_evaluation_source(&evaluation) != NULL);
    rs_evaluation_free(&evaluation);
    CHECK(evaluation.watched == NULL);
    end();
}

TEST(in_a_forked_child_nobody_of_the_parent_waits) {
    open_evaluation(RS_EVALUATION_RUNS);
    rs_strand *waiter = spawn(), *survivor = spawn();
    rs_evaluation own;
    rs_evaluation_init(&own, RS_EVALUATION_RUNS);
    CHECK(await(RS_NEVER) == waiter);
    CHECK(next() == survivor);
    rs_evaluation_conclude_to(machine, &own, 2, true);
    CHECK_EQUAL(0, rs_machine_forked(machine));
    rs_evaluation_forked(&evaluation, true, 9);
    rs_evaluation_forked(&own, false, 0);
    CHECK(rs_is_concluded(&evaluation) && evaluation.result == 9 && evaluation.waiters.len == 0);
    CHECK(rs_is_concluded(&own) && own.result == 2 && !own.unwinds);
    rs_evaluation_unwound(machine, &own);
    rs_machine_close(machine);
    rs_machine_free(machine);
}

/* --- at random --- */

#define RUNS 6
#define WAITERS 12

typedef struct {
    task task;
    rs_evaluation evaluation;
    bool begun, unwinding, ended;
    int heard;                  /* waiters that went on with its result */
} run;

typedef struct {
    task task;
    run *of;
    int steps;
    uint64_t resumed_with;      /* how often it was resumed, and has gone on by that */
    uint64_t went_on;
} waiter;

static run runs[RUNS];
static waiter waiters[WAITERS];
static uint64_t seed;

static uint32_t draw(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

static bool take_interrupt(task *task) {
    if (task->wake != RS_WAKE_INTERRUPT) return false;
    rs_take_interrupt(task->strand);
    return true;
}

/* A run sleeps a few times. Who is interrupted has been concluded, and unwinds by one more sleep. */
static void step_run(task *task) {
    run *self = (run *)task;
    rs_machine *m = task->driver->machine;
    TASK_BEGIN(task);
    if (rs_is_concluded(&self->evaluation)) goto ended;
    rs_evaluation_begin(&self->evaluation);
    self->begun = true;
    do {
        TASK_WAIT(task, task_sleep(task, draw(20) * US));
        self->unwinding = take_interrupt(task);
    } while (!self->unwinding && draw(4) > 0);
    CHECK_EQUAL(self->unwinding, rs_is_concluded(&self->evaluation));
    if (self->unwinding) {
        TASK_WAIT(task, task_sleep(task, draw(5) * US));
        CHECK(self->evaluation.unwinds && self->heard == 0);
    } else {
        rs_evaluation_conclude(m, &self->evaluation, 1);
    }
    rs_evaluation_unwound(m, &self->evaluation);
ended:
    self->ended = true;
    TASK_END(task);
}

static void conclude(rs_machine *m, run *run) {
    if (rs_is_concluded(&run->evaluation)) return;
    bool unwinds = run->begun;
    rs_evaluation_conclude_to(m, &run->evaluation, 2, unwinds);
    if (unwinds) rs_interrupt_first(m, run->task.strand);
}

static void cancel(rs_machine *m, waiter *other) {
    if (!other->task.finished) rs_scope_cancel(m, &other->task.strand->own, RS_CANCELLED_BY_CALL);
}

static void resume(rs_machine *m, waiter *other) {
    if (other->task.finished) return;
    if (rs_resume(m, other->task.id) == RS_RESUMED) other->resumed_with++;
}

/* A waiter does one thing after the other; each of its waits ends in one way. */
static void step_waiter(task *task) {
    waiter *self = (waiter *)task;
    rs_machine *m = task->driver->machine;
    TASK_BEGIN(task);
    for (self->steps = 0; self->steps < 8; self->steps++) {
        self->of = &runs[draw(RUNS)];
        if (draw(6) == 0) conclude(m, self->of);
        if (draw(6) == 0) resume(m, &waiters[draw(WAITERS)]);
        if (draw(12) == 0) cancel(m, &waiters[draw(WAITERS)]);
        if (rs_is_concluded(&self->of->evaluation)) continue;
        int64_t deadline_ns = draw(2) ? RS_NEVER : rs_now(m) + draw(20) * US;
        task->ticket = rs_await_begin(m, &self->of->evaluation.waiters, deadline_ns);
        task->parked = task->ticket != 0;
        task->wake = m->refusal;
        TASK_WAIT(task, task->parked);
        rs_await_outcome outcome = rs_await_end(m, task->wake);
        if (outcome == RS_AWAIT_RESUMED) self->went_on++;
        if (outcome == RS_AWAIT_RAISES) break;
        if (outcome != RS_AWAIT_LOOK) continue;
        bool there = rs_is_concluded(&self->of->evaluation);
        CHECK(there || task->wake == RS_WAKE_TIMEOUT);
        bool heard_of_it = there && task->wake == RS_WAKE_VALUE;
        CHECK(!(heard_of_it && self->of->evaluation.unwinds));
        self->of->heard += heard_of_it;
    }
    TASK_END(task);
}

static void run_seed(uint64_t number) {
    static driver d;
    rs_options options = rs_default_options();
    options.faults = &no_faults;
    options.seed = seed = number;
    RS_ASSERT(driver_open(&d, &rs_backend_sim, &options) == 0);
    memset(runs, 0, sizeof(runs));
    memset(waiters, 0, sizeof(waiters));
    for (int i = 0; i < RUNS; i++) {
        rs_evaluation_init(&runs[i].evaluation, RS_EVALUATION_STARTS);
        driver_spawn(&d, NULL, &runs[i].task, step_run);
    }
    for (int i = 0; i < WAITERS; i++) driver_spawn(&d, NULL, &waiters[i].task, step_waiter);
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    for (int i = 0; i < RUNS; i++) {
        CHECK(runs[i].ended && rs_is_concluded(&runs[i].evaluation) && !runs[i].evaluation.unwinds);
        CHECK(runs[i].evaluation.waiters.len == 0 && runs[i].evaluation.unwinders.len == 0);
    }
    for (int i = 0; i < WAITERS; i++) CHECK_EQUAL(waiters[i].resumed_with, waiters[i].went_on);
    driver_close(&d);
}

TEST(runs_and_waiters_at_random_in_a_simulation) {
    for (uint64_t number = 1; number <= 2000 && test_failures == 0; number++) {
        run_seed(number);
        if (test_failures > 0) printf("  seed %" PRIu64 "\n", number);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }
