#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LASTS_MAX_NS (3600 * SECOND)
#define DECISIONS_MAX 2000000

const task_step program_steps[ROLES] = {
    [ROLE_WANDERER] = wanderer_step, [ROLE_PRODUCER] = producer_step, [ROLE_CONSUMER] = consumer_step,
    [ROLE_SERVER] = server_step, [ROLE_CLIENT] = client_step, [ROLE_FILER] = filer_step,
    [ROLE_VICTIM] = victim_step, [ROLE_CLOSER] = closer_step, [ROLE_PUSHER] = pusher_step,
    [ROLE_POPPER] = popper_step, [ROLE_CHOOSER] = chooser_step, [ROLE_LOCKER] = locker_step,
    [ROLE_STOCK_LOCKER] = stock_locker_step,
};

static const char *const role_names[ROLES] = {
    [ROLE_WANDERER] = "wanderer", [ROLE_PRODUCER] = "producer", [ROLE_CONSUMER] = "consumer",
    [ROLE_SERVER] = "server", [ROLE_CLIENT] = "client", [ROLE_FILER] = "filer", [ROLE_VICTIM] = "victim",
    [ROLE_CLOSER] = "closer", [ROLE_PUSHER] = "pusher", [ROLE_POPPER] = "popper", [ROLE_CHOOSER] = "chooser",
    [ROLE_LOCKER] = "locker", [ROLE_STOCK_LOCKER] = "stock locker",
};

/* --- chance --- */

static uint64_t next_random(uint64_t *state) {
    uint64_t word = *state += 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
}

uint64_t draw(worker *self, uint64_t bound) { return next_random(&self->random) % bound; }
bool chance(worker *self, uint64_t percent) { return draw(self, 100) < percent; }

int64_t draw_deadline(worker *self, uint64_t percent, int64_t max_ns) {
    if (!chance(self, percent)) return RS_NEVER;
    return rs_now(self->program->driver.machine) + (int64_t)draw(self, (uint64_t)max_ns);
}

worker *draw_worker(worker *self) { return &self->program->workers[draw(self, self->program->worker_count)]; }

static rs_sim_faults draw_faults(program *program) {
    rs_sim_faults faults = rs_sim_faults_none();
    if (program->seed % 4 == 0) return faults;
    faults = rs_sim_faults_default();
    if (program->seed % 4 == 1) return faults;
    faults.open_failure = faults.reset = 30;
    if (program->seed % 4 == 2) return faults;
    uint16_t *chances[] = {
        &faults.short_transfer, &faults.interrupted, &faults.delay, &faults.late_cancel, &faults.submission_full,
        &faults.no_buffers, &faults.late_wake, &faults.scribble, &faults.offload, &faults.open_failure, &faults.reset,
    };
    for (size_t i = 0; i < sizeof(chances) / sizeof(chances[0]); i++) {
        uint64_t word = next_random(&program->random);
        *chances[i] = (uint16_t)(word % 3 == 0 ? 0 : (word >> 8) % 1000);
    }
    faults.open_failure /= 10;
    faults.reset /= 10;
    faults.delay_max_ns = 1 + (int64_t)(next_random(&program->random) % (uint64_t)(20 * MS));
    return faults;
}

/* --- reports --- */

void program_say(worker *self, const char *what, int64_t detail) {
    if (!self->program->verbose) return;
    int64_t now_ns = rs_now(self->program->driver.machine) - self->program->start_ns;
    printf("%12lld ns  %2u %-12s %s %lld\n", (long long)now_ns, self->number, role_names[self->role], what,
           (long long)detail);
}

void program_fail(worker *self, const char *what, int64_t detail) {
    program *program = self->program;
    if (program->failed) return;
    program->failed = true;
    int64_t now_ns = rs_now(program->driver.machine) - program->start_ns;
    snprintf(program->failure, sizeof(program->failure), "at %lld ns, strand %u (%s): %s (%lld)", (long long)now_ns,
             self->number, role_names[self->role], what, (long long)detail);
    program_say(self, what, detail);
}

static void print_trace(const program *program) {
    const rs_trace *trace = &program->driver.machine->trace;
    uint64_t from = trace->count > 60 ? trace->count - 60 : 0;
    for (uint64_t i = from; i < trace->count; i++) {
        const rs_trace_event *event = &trace->ring[i % RS_TRACE_RING];
        printf("  %12lld ns  %-12s %llx %lld\n", (long long)(event->at_ns - program->start_ns),
               rs_trace_kind_name(event->kind), (unsigned long long)event->subject, (long long)event->detail);
    }
}

/* --- the run --- */

worker *program_spawn(program *program, rs_scope *scope, role role) {
    if (program->worker_count == WORKERS_MAX) return NULL;
    worker *self = &program->workers[program->worker_count];
    self->program = program;
    self->role = role;
    self->number = program->worker_count++;
    self->random = program->seed * 1000003 + self->number;
    self->fd = self->connection = -1;
    self->own_stream.fds[0] = self->own_stream.fds[1] = -1;
    self->deadline_ns = RS_NEVER;
    driver_spawn(&program->driver, scope, &self->task, program_steps[role]);
    program_say(self, "is spawned", 0);
    return self;
}

static void spawn_queue(program *program, uint32_t number) {
    item_queue *queue = &program->queues[number];
    queue->pushers_left = 1 + (uint32_t)(next_random(&program->random) % 3);
    queue->poppers_left = 1 + (uint32_t)(next_random(&program->random) % 3);
    uint32_t pushers = queue->pushers_left;
    for (uint32_t i = 0; i < pushers + queue->poppers_left; i++) {
        program_spawn(program, &program->arena, i < pushers ? ROLE_PUSHER : ROLE_POPPER)->queue = queue;
    }
}

static void spawn_all(program *program) {
    static const role first[] = {ROLE_WANDERER, ROLE_WANDERER, ROLE_WANDERER, ROLE_PRODUCER, ROLE_PRODUCER,
                                 ROLE_SERVER, ROLE_FILER, ROLE_VICTIM, ROLE_LOCKER, ROLE_LOCKER, ROLE_STOCK_LOCKER,
                                 ROLE_CHOOSER};
    uint32_t wanted = 6 + (uint32_t)(next_random(&program->random) % 25);
    for (uint32_t i = 0; i < QUEUES; i++) {
        rs_queue_limit(&program->queues[i].items, QUEUE_CAPACITY);
        if (next_random(&program->random) % 2) spawn_queue(program, i);
        else rs_queue_close(program->driver.machine, &program->queues[i].items);
    }
    while (program->worker_count < wanted) {
        role role = first[next_random(&program->random) % (sizeof(first) / sizeof(first[0]))];
        program_spawn(program, &program->arena, role);
    }
}

static void run(program *program) {
    driver *driver = &program->driver;
    driver_park_root(driver);
    for (uint64_t i = 0; driver->unfinished > 0 && !program->failed; i++) {
        rs_decision decision = rs_next(driver->machine);
        worker *somebody = &program->workers[0];
        if (i > DECISIONS_MAX) program_fail(somebody, "it goes on for ever; unfinished", driver->unfinished);
        if (decision.verdict == RS_RUN) {
            if (program->displaced) EXPECT(program->displaced, decision.strand == program->displaced->task.strand, 0);
            program->displaced = NULL;
            driver_resume(driver, decision.strand);
            continue;
        }
        check_at_rest(program);
        if (decision.verdict == RS_DEADLOCK) program_fail(somebody, "deadlock; unfinished", driver->unfinished);
        if (decision.deadline_ns > program->start_ns + LASTS_MAX_NS) program_fail(somebody, "it takes too long", 0);
        if (!program->failed) rs_sleep(driver->machine, decision.deadline_ns);
    }
    if (program->failed) return;
    driver_unpark_root(driver);
    rs_scope_close(driver->machine, &program->arena);
    /* Ops that were left behind end by themselves. */
    driver_park_root(driver);
    while (driver->machine->in_flight > 0) {
        rs_verdict verdict = driver_step(driver);
        if (verdict != RS_DEADLOCK || driver->machine->in_flight == 0) continue;
        program_fail(&program->workers[0], "an op that was left behind never ends", driver->machine->in_flight);
        return;
    }
    driver_unpark_root(driver);
    check_end(program);
}

program_report program_run(uint64_t seed, bool verbose) {
    static program program;
    memset(&program, 0, sizeof(program));
    program.seed = program.random = seed;
    program.verbose = verbose;
    program.untidy = seed % 5 == 0;
    program.faults = draw_faults(&program);
    program.workers = calloc(1, sizeof(worker) * WORKERS_MAX);
    rs_options options = rs_default_options();
    options.seed = seed;
    options.trace = true;
    options.faults = &program.faults;
    options.whole_ticks = seed % 4 == 3;
    int error = driver_open(&program.driver, &rs_backend_sim, &options);
    RS_ASSERT(error == 0);
    rs_machine *machine = program.driver.machine;
    program.start_ns = rs_now(machine);
    bool short_life = next_random(&program.random) % 4 == 0;
    int64_t end_ns = rs_now(machine) + (int64_t)(next_random(&program.random) % (uint64_t)(100 * MS));
    RS_ASSERT(rs_reserve_timer(machine));
    rs_scope_open(machine, &program.arena, short_life ? end_ns : RS_NEVER, false);
    spawn_all(&program);
    run(&program);
    program_report report = {
        .failed = program.failed, .hash = machine->trace.hash, .events = machine->trace.count, .parks = program.parks,
        .lasted_ns = rs_now(machine) - program.start_ns,
    };
    memcpy(report.failure, program.failure, sizeof(report.failure));
    /* After a failure nothing can be relied on, so what is open stays open. */
    if (program.failed) print_trace(&program);
    else driver_close(&program.driver);
    if (!program.failed) free(program.workers);
    for (int i = 0; i < QUEUES; i++) rs_queue_free(&program.queues[i].items);
    return report;
}
