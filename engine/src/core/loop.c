/* loop: decides which strand runs next, and when it is time to look at the backend, the inbox and the timers (rs_next). */
#include "core/run.h"

/* A poll costs about as much as six resumes: after this many it is noise, and a ready socket still waits microseconds. */
#define RESUMES_PER_POLL 61
#define POLL_EVERY_NS 200000
/* Reading the clock costs more than half a switch, so not at every resume: there, only the coarse one, which the kernel moves on
 * every few milliseconds (CLOCK_MONOTONIC_COARSE, clock_gettime(2)). After a turn that was longer the next look is due at once. */
#define RESUMES_PER_CLOCK 8
/* Several ticks of the coarse clock, on most kernels: so that two ops in a row, such as those of a `puts`, are seldom torn
 * apart. */
#define LONG_TURN_NS 10000000

static void fire(rs_machine *machine, rs_timer *timer) {
    RS_CHECK(!rs_timer_is_set(timer));
    machine->metrics.timers_fired++;
    if (timer->kind == RS_TIMER_SCOPE) {
        rs_scope *scope = (rs_scope *)((char *)timer - offsetof(rs_scope, timer));
        RS_CHECK(!scope->closed && scope->armed && scope->deadline_ns <= timer->deadline_ns);
        rs_scope_cancel(machine, scope, RS_CANCELLED_BY_DEADLINE);
    } else if (timer->kind == RS_TIMER_REMINDER) {
        if (machine->driver.on_reminder) machine->driver.on_reminder(machine);
    } else {
        rs_strand *strand = (rs_strand *)((char *)timer - offsetof(rs_strand, timer));
        RS_CHECK(strand->state == RS_STRAND_PARKED);
        rs_trace_if(machine, RS_TRACE_TIMER, rs_strand_id(strand), timer->deadline_ns);
        rs_interrupt_park(machine, strand, RS_WAKE_TIMEOUT);
    }
}

static void fire_timers(rs_machine *machine, int64_t now_ns) {
    rs_timer *timer;
    while ((timer = rs_timers_pop_due(&machine->timers, now_ns))) fire(machine, timer);
}

static inline int64_t coarse_now(rs_machine *machine) {
    return machine->clock ? machine->clock(machine) : machine->backend->coarse_clock();
}

/* Before any look, so that what came in time wins over its deadline, however long a busy computer keeps us. Returns whether there
 * are timers, which may be due by now. */
static bool note_time(rs_machine *machine) {
    bool timed = machine->timers.len > 0;
    if (timed) machine->polled_at_ns = rs_now(machine);
    return timed;
}

static void look(rs_machine *machine) {
    RS_CHECK(machine->running == RS_NO_INDEX);
    machine->attention = false;
    rs_note_sleep(machine);
    machine->coarse_ns = coarse_now(machine);
    machine->resumes_since_poll = 0;
    machine->metrics.polls++;
    rs_take_messages(machine);
    rs_flush(machine);
    /* Where none is in flight a backend may still have to settle what the last one has left. */
    if (machine->in_flight > 0 || machine->backend_deadline_ns != RS_NEVER) machine->backend->poll(machine);
    /* Who put these in may be waiting for an answer to them: nothing else would wake the machine. */
    rs_flush(machine);
}

static void harvest(rs_machine *machine) {
    bool timed = note_time(machine);
    look(machine);
    if (timed) fire_timers(machine, machine->polled_at_ns);
    rs_run_prefer_woken(&machine->strands);
}

/* A look may bring somebody who waits for a time or for the backend. */
static inline bool look_may_wake(const rs_machine *machine) {
    return machine->timers.len > 0 || machine->in_flight > 0;
}

static inline bool poll_is_due(rs_machine *machine) {
    if (RS_UNLIKELY(machine->attention || !rs_inbox_empty(&machine->inbox))) return true;
    if (!look_may_wake(machine) && !rs_has_gathered(machine)) return false;
    uint32_t resumes = ++machine->resumes_since_poll;
    if (resumes > RESUMES_PER_POLL) return true;
    int64_t coarse_ns = coarse_now(machine);
    if (RS_LIKELY(coarse_ns == machine->coarse_ns && resumes % RESUMES_PER_CLOCK != 0)) return false;
    machine->coarse_ns = coarse_ns;
    int64_t now_ns = rs_now(machine);
    RS_CHECK(now_ns >= machine->polled_at_ns);
    if (now_ns - machine->polled_at_ns < POLL_EVERY_NS) return false;
    machine->polled_at_ns = now_ns;
    return true;
}

bool rs_turn_is_long(rs_machine *machine) {
    return look_may_wake(machine) && coarse_now(machine) - machine->coarse_ns >= LONG_TURN_NS;
}

static inline rs_decision run_next(rs_machine *machine) {
    RS_CHECK(machine->strands.run_len > 0);
    rs_strand *strand = rs_run_pop(&machine->strands);
    rs_run_now(machine, strand);
    return (rs_decision){.verdict = RS_RUN, .strand = strand};
}

static bool ops_may_wake(const rs_machine *machine) {
    RS_CHECK(machine->in_flight >= machine->unawaited);
    if (rs_is_simulated(machine) || machine->in_flight == 0) return false;
    if (machine->in_flight > machine->unawaited) return true;
    RS_EACH_PART(machine, part) {
        if (part->may_wake && part->may_wake(machine)) return true;
    }
    return false;
}

static rs_decision nothing_to_run(rs_machine *machine) {
    RS_CHECK(machine->strands.run_len == 0 && machine->strands.woken_len == 0);
    int64_t deadline_ns = rs_timers_earliest(&machine->timers);
    if (machine->backend_deadline_ns < deadline_ns) deadline_ns = machine->backend_deadline_ns;
    bool timed = machine->timers.len > rs_timer_is_set(&machine->reminder) || machine->backend_deadline_ns != RS_NEVER;
    bool hope = timed || machine->outside > 0 || machine->wakers > 0 || ops_may_wake(machine);
    return (rs_decision){.verdict = hope ? RS_SLEEP : RS_DEADLOCK, .deadline_ns = deadline_ns};
}

void rs_machine_run_in_whole_ticks(rs_machine *machine) {
    machine->options.whole_ticks = true;
    machine->strands.passes_left = machine->strands.passes_due = 0;
    machine->strands.passable = false;
}

static bool is_idle(const rs_machine *machine) {
    return machine->strands.run_len == 0 && rs_timers_earliest(&machine->timers) > machine->polled_at_ns;
}

static void begin_tick(rs_machine *machine) {
    note_time(machine);
    rs_tick begun = {.begins = true, .was_idle = is_idle(machine), .resumes = machine->metrics.resumes};
    rs_run_queue ready = rs_run_set_aside(&machine->strands);
    machine->strands.tick_order = RS_ORDER_TICK;
    look(machine);
    rs_run_put_behind(&machine->strands, &ready);
    machine->tick = begun;
}

/* Those woken from outside have had their turns. If that took no time, what came in time wins over its deadline, as in `look`. */
static void settle_tick(rs_machine *machine) {
    rs_tick *tick = &machine->tick;
    bool one_ran = tick->resumes != machine->metrics.resumes;
    if (one_ran && tick->was_idle) {
        begin_tick(machine);
        return;
    }
    tick->begins = false;
    tick->timers = machine->timers.next_order;
    tick->now_ns = one_ran && machine->timers.len > 0 ? rs_now(machine) : machine->polled_at_ns;
    machine->strands.tick_order = machine->strands.last_order;
}

/* Fires one timer. The strands of those before it have had their turns, and may have ended the wait that it limits. */
static bool fire_next(rs_machine *machine) {
    if (machine->timers.len == 0 || machine->timers.heap[0]->order >= machine->tick.timers) return false;
    rs_timer *timer = rs_timers_pop_due(&machine->timers, machine->tick.now_ns);
    if (!timer) return false;
    rs_run_queue ready = rs_run_set_aside(&machine->strands);
    fire(machine, timer);
    rs_run_put_behind(&machine->strands, &ready);
    return true;
}

static rs_decision next_of_tick(rs_machine *machine) {
    for (bool looked = false;;) {
        if (rs_run_is_due(&machine->strands)) break;
        if (machine->tick.begins) settle_tick(machine);
        else if (fire_next(machine)) continue;
        else if (looked && machine->strands.run_len == 0) return nothing_to_run(machine);
        else looked = true, begin_tick(machine);
    }
    if (look_may_wake(machine)) machine->coarse_ns = coarse_now(machine);
    return run_next(machine);
}

rs_decision rs_next(rs_machine *machine) {
    RS_CHECK(machine->running == RS_NO_INDEX);
    if (RS_UNLIKELY(machine->options.whole_ticks)) return next_of_tick(machine);
    if (machine->strands.run_len == 0 || poll_is_due(machine)) {
        harvest(machine);
        if (machine->strands.run_len == 0) return nothing_to_run(machine);
    }
    return run_next(machine);
}
