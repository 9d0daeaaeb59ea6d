/* Batches: who begins which run, and in which order among the others. */
#include "test.h"

#include "by_hand.h"

/* What the driver knows a strand by. */
static int users[64];

static rs_strand *spawn_batch(rs_scope *scope) {
    CHECK(rs_batch_reserve(machine, sizeof(uint64_t)));
    rs_strand *strand = rs_batch_spawn(machine, scope, &users[0]);
    CHECK(strand != NULL && strand->batch != NULL);
    return strand;
}

static void add(rs_batch *batch, uint64_t number) {
    uint64_t *start = rs_batch_add(batch);
    CHECK(start != NULL);
    if (start) *start = number;
}

/* As a driver begins runs later: the strand, if it needed another one. */
static rs_strand *start_later(uint64_t number) {
    rs_batch *batch = rs_batch_open(machine, root_scope());
    rs_strand *strand = batch ? NULL : spawn_batch(root_scope());
    add(batch ? batch : strand->batch, number);
    return strand;
}

/* The number of the run that the strand begins now; 0: it has no more. */
static uint64_t begins(rs_strand *strand) {
    const uint64_t *start = rs_batch_next(machine, strand);
    return start ? *start : 0;
}

static void run_to_end(rs_strand *strand) {
    CHECK_EQUAL(0, begins(strand));
    CHECK(strand->batch == NULL);
    rs_finish(machine);
}

static rs_strand *begin_strand(void) {
    rs_strand *strand = next();
    rs_strand_began(strand);
    return strand;
}

/* The rest of the driver's list: those that have not begun. */
static uint64_t seen[64];
static int seen_len;

static void see(const void *start) { seen[seen_len++] = *(const uint64_t *)start; }

static int see_all(void) {
    seen_len = 0;
    rs_batches_each(machine, see);
    return seen_len;
}

TEST(runs_that_start_in_a_row_need_one_strand) {
    begin();
    rs_strand *strand = start_later(1);
    for (uint64_t number = 2; number <= 40; number++) CHECK(start_later(number) == NULL);
    CHECK(see_all() == 40 && seen[0] == 1 && seen[39] == 40);
    CHECK(begin_strand() == strand);
    for (uint64_t number = 1; number <= 40; number++) CHECK_EQUAL(number, begins(strand));
    run_to_end(strand);
    CHECK_EQUAL(0, see_all());
    end();
}

TEST(one_that_starts_behind_another_strand_needs_its_own) {
    begin();
    rs_strand *first = start_later(1);
    rs_strand *other = spawn();
    rs_strand *second = start_later(2);
    CHECK(second != NULL && start_later(3) == NULL);
    CHECK(begin_strand() == first && begins(first) == 1);
    run_to_end(first);
    CHECK(next() == other);
    rs_finish(machine);
    CHECK(begin_strand() == second && begins(second) == 2 && begins(second) == 3);
    run_to_end(second);
    end();
}

TEST(one_that_starts_when_the_batch_has_begun_needs_its_own) {
    begin();
    rs_strand *first = start_later(1);
    CHECK(begin_strand() == first && begins(first) == 1);
    rs_strand *second = start_later(2);
    CHECK(second != NULL);
    run_to_end(first);
    CHECK(begin_strand() == second && begins(second) == 2);
    run_to_end(second);
    end();
}

TEST(no_start_is_added_to_one_that_is_closed_or_of_another_scope) {
    begin();
    rs_strand *strand = spawn_batch(root_scope());
    add(strand->batch, 1);
    CHECK(rs_batch_open(machine, root_scope()) == strand->batch);
    CHECK(rs_batch_open(machine, &strand->own) == NULL);
    rs_batch_close(strand->batch);
    CHECK(rs_batch_open(machine, root_scope()) == NULL);
    CHECK(begin_strand() == strand && begins(strand) == 1);
    run_to_end(strand);
    strand = start_later(2);
    CHECK(start_later(3) == NULL); /* the memory of a batch that was closed serves one that is open */
    CHECK(begin_strand() == strand && begins(strand) == 2 && begins(strand) == 3);
    run_to_end(strand);
    end();
}

TEST(a_batch_is_handed_over_as_often_as_a_run_waits) {
    begin();
    rs_strand *first = start_later(1);
    for (uint64_t number = 2; number <= 4; number++) start_later(number);
    rs_strand *other = spawn();
    CHECK(begin_strand() == first && begins(first) == 1);
    park(0, RS_NEVER);
    rs_strand *second = rs_batch_hand_over(machine, first, &users[1]);
    CHECK(first->batch == NULL && second != NULL && second->batch != NULL && second->user == &users[1]);
    CHECK(see_all() == 3 && seen[0] == 2);
    CHECK(begin_strand() == second && begins(second) == 2);
    rs_yield(machine);
    rs_strand *third = rs_batch_hand_over(machine, second, &users[2]);
    CHECK(begin_strand() == third && begins(third) == 3 && begins(third) == 4);
    park(0, RS_NEVER);
    CHECK(rs_batch_hand_over(machine, third, &users[3]) == NULL); /* nothing is left */
    CHECK(third->batch == NULL && rs_links_empty(&rs_batches_in(machine)->all) && rs_batches_in(machine)->spare != NULL);
    CHECK(next() == other);
    rs_finish(machine);
    CHECK(next() == second);
    park_end();
    run_to_end(second);
    rs_wake(machine, rs_strand_id(third), third->ticket, RS_WAKE_VALUE, 0);
    rs_wake(machine, rs_strand_id(first), first->ticket, RS_WAKE_VALUE, 0);
    CHECK(next() == third);
    park_end();
    run_to_end(third);
    CHECK(next() == first);
    park_end();
    run_to_end(first);
    end();
}

TEST(a_rest_is_handed_over_to_where_its_strand_has_moved) {
    begin();
    rs_strand *owner = spawn();
    next();
    rs_scope scope;
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_strand *first = spawn_batch(&scope);
    add(first->batch, 1);
    add(first->batch, 2);
    rs_scope_close(machine, &scope);
    CHECK(first->own.parent == &owner->own);
    CHECK(rs_batch_open(machine, &scope) == NULL && rs_batch_open(machine, &owner->own) == first->batch);
    park(0, RS_NEVER);
    CHECK(begin_strand() == first && begins(first) == 1);
    park(0, RS_NEVER);
    rs_strand *second = rs_batch_hand_over(machine, first, &users[1]);
    CHECK(second != NULL && second->own.parent == &owner->own);
    CHECK_EQUAL(2, owner->own.live);
    CHECK(begin_strand() == second && begins(second) == 2);
    run_to_end(second);
    rs_wake(machine, rs_strand_id(first), first->ticket, RS_WAKE_VALUE, 0);
    CHECK(next() == first);
    park_end();
    run_to_end(first);
    rs_wake(machine, rs_strand_id(owner), owner->ticket, RS_WAKE_VALUE, 0);
    CHECK(next() == owner);
    park_end();
    rs_finish(machine);
    end();
}

TEST(the_rest_that_nobody_takes_stays_with_its_strand) {
    begin();
    rs_strand *strand = start_later(1);
    start_later(2);
    CHECK(begin_strand() == strand && begins(strand) == 1);
    CHECK(rs_batch_hand_over(machine, strand, NULL) == NULL);
    CHECK_EQUAL(2, begins(strand));
    run_to_end(strand);
    end();
}

TEST(the_rest_stays_with_its_strand_at_the_limit_of_strands) {
    begin();
    rs_strand *strand = start_later(1);
    start_later(2);
    CHECK(begin_strand() == strand && begins(strand) == 1);
    uint32_t limit = machine->strands.slab.limit;
    machine->strands.slab.limit = rs_strands_live(&machine->strands);
    CHECK(rs_batch_hand_over(machine, strand, &users[1]) == NULL);
    CHECK(rs_batch_reserve(machine, sizeof(uint64_t)) && rs_batch_spawn(machine, root_scope(), &users[1]) == NULL);
    CHECK(rs_batches_in(machine)->spare != NULL && see_all() == 1);
    machine->strands.slab.limit = limit;
    CHECK_EQUAL(2, begins(strand));
    run_to_end(strand);
    end();
}

/* Somebody is to go on at once, and is not held up by runs that have not begun. */
TEST(a_rest_goes_behind_those_whom_its_run_has_sent_on) {
    begin();
    rs_strand *targets[2] = {spawn(), spawn()};
    for (int i = 0; i < 2; i++) {
        CHECK(next() == targets[i]);
        park(0, RS_NEVER);
    }
    rs_strand *woken = spawn();
    CHECK(next() == woken);
    uint64_t ticket = park(0, RS_NEVER);
    rs_strand *strand = start_later(1);
    start_later(2);
    CHECK(begin_strand() == strand && begins(strand) == 1);
    rs_wake(machine, rs_strand_id(woken), ticket, RS_WAKE_VALUE, 0);
    rs_interrupt_first(machine, targets[1]);
    rs_interrupt_first(machine, targets[0]);
    rs_strand *rest = rs_batch_hand_over(machine, strand, &users[1]);
    rs_finish(machine);
    for (int i = 0; i < 2; i++) {
        CHECK(next() == targets[i]);
        CHECK_EQUAL(RS_WAKE_INTERRUPT, park_end());
        targets[i]->interrupts = 0;
        rs_finish(machine);
    }
    CHECK(begin_strand() == rest && begins(rest) == 2);
    run_to_end(rest);
    CHECK(next() == woken);
    park_end();
    rs_finish(machine);
    end();
}

static int64_t clock_ns;
static int64_t stopped_clock(rs_machine *m) {
    (void)m;
    return clock_ns;
}

TEST(a_rest_in_place_goes_behind_those_that_are_woken) {
    begin();
    clock_ns = rs_now(machine);
    rs_strand *sleeper = spawn();
    CHECK(next() == sleeper);
    park(0, clock_ns + 1000);
    rs_strand *strand = start_later(1);
    start_later(2);
    rs_strand *other = spawn();
    CHECK(begin_strand() == strand && begins(strand) == 1);
    CHECK(!rs_batch_turn_is_over(machine, strand));
    machine->clock = stopped_clock;
    clock_ns += 1000 * MS;
    machine->coarse_ns = 0;
    CHECK(rs_batch_turn_is_over(machine, strand));
    rs_strand *rest = rs_batch_hand_over_in_place(machine, strand, &users[1]);
    CHECK(!rs_batch_turn_is_over(machine, strand));
    rs_finish(machine);
    CHECK(next() == sleeper);
    park_end();
    rs_finish(machine);
    CHECK(begin_strand() == rest && begins(rest) == 2);
    run_to_end(rest);
    CHECK(next() == other);
    rs_finish(machine);
    machine->clock = NULL;
    end();
}

TEST(runs_of_a_cancelled_scope_are_refused_one_by_one) {
    begin();
    rs_strand *owner = spawn();
    CHECK(next() == owner);
    rs_scope scope;
    CHECK(rs_reserve_timer(machine));
    rs_scope_open(machine, &scope, RS_NEVER, false);
    rs_strand *strand = spawn_batch(&scope);
    for (uint64_t number = 1; number <= 3; number++) add(strand->batch, number);
    rs_scope_cancel(machine, &scope, RS_CANCELLED_BY_CALL);
    rs_yield(machine);
    CHECK(begin_strand() == strand && begins(strand) == 1);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    rs_strand *second = rs_batch_hand_over(machine, strand, &users[1]);
    CHECK_EQUAL(2, scope.live);
    rs_finish(machine);
    CHECK(begin_strand() == second && begins(second) == 2);
    CHECK_EQUAL(RS_WAKE_CANCEL, rs_refusal(machine, 0));
    CHECK_EQUAL(3, begins(second));
    run_to_end(second);
    CHECK_EQUAL(0, scope.live);
    CHECK(next() == owner);
    park_end();
    rs_scope_close(machine, &scope);
    rs_finish(machine);
    end();
}

TEST(without_memory_nothing_changes) {
    begin();
    rs_tries_left = 0;
    CHECK(!rs_batch_reserve(machine, sizeof(uint64_t)));
    rs_tries_left = 1;
    CHECK(!rs_batch_reserve(machine, sizeof(uint64_t)));
    rs_tries_left = -1;
    rs_strand *strand = start_later(1);
    rs_batch *batch = strand->batch;
    while (batch->len < batch->capacity) start_later(2);
    uint32_t len = batch->len;
    rs_tries_left = 0;
    CHECK(rs_batch_add(batch) == NULL);
    rs_tries_left = -1;
    CHECK(batch->len == len && see_all() == (int)len);
    CHECK(start_later(3) == NULL && rs_batch_bytes(batch) >= (len + 1) * sizeof(uint64_t));
    CHECK(begin_strand() == strand && begins(strand) == 1);
    for (uint32_t i = 1; i < len; i++) CHECK_EQUAL(2, begins(strand));
    CHECK_EQUAL(3, begins(strand));
    run_to_end(strand);
    end();
}

static rs_batch *begin_all(rs_strand *strand) {
    rs_batch *batch = strand->batch;
    CHECK(begin_strand() == strand);
    while (begins(strand)) {}
    rs_finish(machine);
    return batch;
}

TEST(a_batch_is_kept_for_the_next_time_unless_it_is_large) {
    begin();
    rs_strand *strand = start_later(1);
    for (int i = 0; i < 5000; i++) start_later(2);
    begin_all(strand);
    CHECK(rs_batches_in(machine)->spare == NULL);
    rs_batch *kept = begin_all(start_later(3));
    CHECK(rs_batches_in(machine)->spare == kept);
    CHECK(begin_all(start_later(4)) == kept);
    rs_strand *first = start_later(5), *between = spawn(), *second = start_later(6);
    CHECK(first->batch == kept && second->batch != kept);
    begin_all(first);
    CHECK(next() == between);
    rs_finish(machine);
    begin_all(second);
    CHECK(rs_batches_in(machine)->spare == kept && rs_links_empty(&rs_batches_in(machine)->all));
    end();
}

TEST(a_machine_that_closes_frees_what_has_not_begun) {
    begin();
    start_later(1);
    spawn();
    start_later(2);
    CHECK_EQUAL(2, see_all());
    rs_machine_close(machine);
    CHECK_EQUAL(0, see_all());
    rs_machine_free(machine);
    machine = rs_machine_new();
    CHECK_EQUAL(0, see_all());
    rs_machine_free(machine);
}

TEST(a_forked_child_begins_none_of_the_parents_runs) {
    begin();
    rs_strand *survivor = start_later(1);
    start_later(2);
    CHECK(begin_strand() == survivor && begins(survivor) == 1);
    start_later(3);
    CHECK_EQUAL(2, see_all());
    CHECK_EQUAL(0, rs_machine_forked(machine));
    CHECK(see_all() == 0 && begins(survivor) == 0 && survivor->batch == NULL);
    rs_strand *own = spawn_batch(&survivor->own);
    add(own->batch, 4);
    rs_yield(machine);
    CHECK(begin_strand() == own && begins(own) == 4);
    run_to_end(own);
    CHECK(next() == survivor);
    park_end();
    rs_machine_close(machine);
    rs_machine_free(machine);
}

/* --- at random --- */

#define NUMBERS 400

typedef struct {
    task task;
    bool own;                   /* a strand that belongs to no batch */
    uint64_t number;            /* of the run that it is in */
    int waits;
} runner;

static runner runners[NUMBERS * 2];
static uint32_t runners_len;
static uint64_t seed, started, begun_len;
static bool begun[NUMBERS + 1];
static driver d;

static uint32_t draw(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

static void step_runner(task *task);

static runner *add_runner(void) {
    runner *self = &runners[runners_len];
    RS_ASSERT(runners_len < NUMBERS * 2);
    *self = (runner){.task = {.driver = &d, .step = step_runner}};
    return self;
}

static void is_runner_of(runner *self, rs_strand *strand) {
    runners_len++;
    self->task.strand = strand;
    self->task.id = rs_strand_id(strand);
    d.unfinished++;
}

static void start_some(uint32_t count) {
    for (; count > 0 && started < NUMBERS; count--) {
        rs_batch *batch = rs_batch_open(d.machine, &rs_root(d.machine)->own);
        if (!batch) {
            runner *self = add_runner();
            RS_ASSERT(rs_batch_reserve(d.machine, sizeof(uint64_t)));
            rs_strand *strand = rs_batch_spawn(d.machine, &rs_root(d.machine)->own, self);
            is_runner_of(self, strand);
            batch = strand->batch;
        }
        *(uint64_t *)rs_batch_add(batch) = ++started;
    }
}

static void hand_over(runner *self, bool in_place) {
    if (!self->task.strand->batch) return;
    runner *other = draw(8) ? add_runner() : NULL;
    rs_strand *strand = in_place ? rs_batch_hand_over_in_place(d.machine, self->task.strand, other)
                                 : rs_batch_hand_over(d.machine, self->task.strand, other);
    if (strand) is_runner_of(other, strand);
}

/* Its runs wait or not, start others, and keep their strand to themselves at times. */
static void step_runner(task *task) {
    runner *self = (runner *)task;
    TASK_BEGIN(task);
    rs_strand_began(task->strand);
    for (;;) {
        const uint64_t *start = rs_batch_next(d.machine, task->strand);
        if (!start) break;
        self->number = *start;
        CHECK(!begun[self->number]);
        begun[self->number] = true;
        begun_len++;
        start_some(draw(4));
        for (self->waits = (int)draw(3); self->waits > 0; self->waits--) {
            bool sleeps = draw(2) > 0;
            if (sleeps) task_sleep(task, draw(20) * US);
            else task_yield(task);
            if (task->parked) hand_over(self, false);
            TASK_WAIT(task, task->parked);
        }
        if (task->strand->batch && draw(5) == 0) hand_over(self, draw(2) > 0);
    }
    CHECK(task->strand->batch == NULL);
    TASK_END(task);
}

static void run_seed(uint64_t number) {
    rs_options options = rs_default_options();
    options.faults = &no_faults;
    options.seed = seed = number;
    RS_ASSERT(driver_open(&d, &rs_backend_sim, &options) == 0);
    runners_len = 0;
    started = begun_len = 0;
    memset(begun, 0, sizeof(begun));
    start_some(1 + draw(30));
    CHECK_EQUAL(RS_RUN, driver_run(&d));
    CHECK(begun_len == started && rs_links_empty(&rs_batches_in(d.machine)->all));
    driver_close(&d);
}

TEST(each_run_begins_once_at_random_in_a_simulation) {
    for (uint64_t number = 1; number <= 2000 && test_failures == 0; number++) {
        run_seed(number);
        if (test_failures > 0) printf("  seed %" PRIu64 "\n", number);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }
