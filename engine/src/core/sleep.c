#include "core/machine.h"

static void sleep_now(rs_machine *machine, int64_t deadline_ns) {
    RS_CHECK(!atomic_load(&machine->sleeping));
    machine->metrics.sleeps++;
    atomic_store(&machine->sleeping, true);
    /* A sender pushes first and looks at `sleeping` second; we do it the other way round, so one of us sees the other. */
    if (rs_inbox_empty(&machine->inbox)) machine->backend->wait(machine, deadline_ns);
    atomic_store(&machine->sleeping, false);
}

static bool has_come(rs_machine *machine) {
    return !rs_inbox_empty(&machine->inbox) || machine->backend->peek(machine);
}

/* Who queues up for a lock sleeps there. So when something has come from a machine that still has it, this one looks on until that
 * lets go: then it takes the lock without having slept. For so long at most. */
#define LOCK_WAIT_NS 50000

static bool is_lock_taken(const rs_sleeps *sleeps) {
    return sleeps->lock_taken && atomic_load_explicit(sleeps->lock_taken, memory_order_relaxed);
}

static void wait_for_lock(rs_machine *machine) {
    int64_t until_ns = rs_now(machine) + LOCK_WAIT_NS;
    while (is_lock_taken(&machine->sleeps) && rs_now(machine) < until_ns) machine->backend->give_way();
}

/* Who has what the machine waits for may have been woken on this very processor, so it is given away between two looks. */
static bool look_until(rs_machine *machine, int64_t until_ns) {
    RS_CHECK(!atomic_load(&machine->sleeping)); /* who sends something need not wake it */
    while (!has_come(machine)) {
        if (rs_now(machine) >= until_ns) return false;
        machine->backend->give_way();
    }
    if (is_lock_taken(&machine->sleeps)) wait_for_lock(machine);
    return true;
}

/* To fall asleep and be woken takes as long as a server nearby needs for its answer. So where that is what the machine waits
 * for, it stays awake for a while. That pays where it comes out in four cases of five; otherwise it is sooner or later found
 * out, and costs a few looks. */
#define SOON_MAX 16u
#define SOON_ENOUGH 8u
#define LATE 4u

/* And where no processor is idle nobody sleeps long, and who stays awake may keep the one who would answer from running. So both
 * are measured: it stays awake where that saves a fifth of a wait, and does the other once in so many waits. That is a prime, so
 * that in waits of two kinds by turns either kind is tried: see docs/decisions/18. */
#define WAITS_PER_TRIAL 31u

static bool stays_awake(rs_sleeps *sleeps) {
    bool pays = sleeps->awake_ns <= sleeps->asleep_ns / 5 * 4;
    return (++sleeps->soon_waits % WAITS_PER_TRIAL == 0) != pays;
}

/* An average that has forgotten most of a wait when there were eight more. One that is far longer than the others, as where the
 * whole computer stood still, counts no more than twice as long. */
static void average(int64_t *average_ns, int64_t took_ns) {
    int64_t most_ns = 2 * *average_ns;
    if (most_ns == 0) *average_ns = took_ns;
    else *average_ns += ((took_ns < most_ns ? took_ns : most_ns) - *average_ns) / 8;
}

void rs_sleep(rs_machine *machine, int64_t deadline_ns) {
    RS_CHECK(machine->running == RS_NO_INDEX);
    rs_sleeps *sleeps = &machine->sleeps;
    int64_t limit_ns = machine->options.busy_poll_ns;
    int64_t began_ns = limit_ns > 0 && machine->backend->peek ? rs_now(machine) : 0;
    /* What comes at its time says nothing of what others do. */
    if (began_ns == 0 || deadline_ns - began_ns <= limit_ns) {
        sleep_now(machine, deadline_ns);
        return;
    }
    sleeps->began_ns = began_ns;
    sleeps->kind = sleeps->soon < SOON_ENOUGH ? RS_SLEEP_UNTRIED : stays_awake(sleeps) ? RS_SLEEP_AWAKE : RS_SLEEP_ASLEEP;
    if (sleeps->kind == RS_SLEEP_AWAKE) {
        machine->metrics.busy_polls++;
        if (look_until(machine, began_ns + limit_ns)) return;
        sleeps->kind = RS_SLEEP_IN_VAIN;
    }
    sleep_now(machine, deadline_ns);
}

/* A sleep takes longer by the time that it takes to be woken. */
static bool was_soon(const rs_machine *machine, int64_t took_ns) {
    switch (machine->sleeps.kind) {
    case RS_SLEEP_AWAKE: return true;
    case RS_SLEEP_IN_VAIN: return false;
    default: return took_ns <= 2 * machine->options.busy_poll_ns;
    }
}

void rs_note_sleep(rs_machine *machine) {
    rs_sleeps *sleeps = &machine->sleeps;
    if (RS_LIKELY(sleeps->began_ns == 0)) return;
    int64_t took_ns = rs_now(machine) - sleeps->began_ns;
    sleeps->began_ns = 0;
    if (was_soon(machine, took_ns)) sleeps->soon = sleeps->soon < SOON_MAX ? sleeps->soon + 1 : SOON_MAX;
    else sleeps->soon = sleeps->soon > LATE ? sleeps->soon - LATE : 0;
    if (sleeps->kind == RS_SLEEP_UNTRIED) return;
    average(sleeps->kind == RS_SLEEP_ASLEEP ? &sleeps->asleep_ns : &sleeps->awake_ns, took_ns);
}

void rs_share_lock(rs_machine *machine, const _Atomic bool *taken) { machine->sleeps.lock_taken = taken; }
bool rs_shares_lock(const rs_machine *machine) { return machine->sleeps.lock_taken != NULL; }
