#include "core/machine.h"

static void sleep_now(rs_machine *machine, int64_t deadline_ns) {
    RS_CHECK(!atomic_load(&machine->sleeping));
    machine->metrics.sleeps++;
    atomic_store(&machine->sleeping, true);
    /* A sender pushes first and looks at `sleeping` second; we do it the other way round, so one of us sees the other. */
    if (rs_inbox_empty(&machine->inbox)) machine->backend->wait(machine, deadline_ns);
    atomic_store(&machine->sleeping, false);
}

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Each look reads memory that others write to, which must not be all the time. */
#define RELAXES_PER_LOOK 8

static bool look_until(rs_machine *machine, int64_t until_ns) {
    RS_CHECK(!atomic_load(&machine->sleeping)); /* who sends something need not wake it */
    do {
        if (!rs_inbox_empty(&machine->inbox) || machine->backend->peek(machine)) return true;
        for (int i = 0; i < RELAXES_PER_LOOK; i++) relax();
    } while (rs_now(machine) < until_ns);
    return false;
}

/* To fall asleep and be woken takes as long as a server nearby needs for its answer. So where that is what the machine waits
 * for, it stays awake for a while. That pays where it comes out in four cases of five; otherwise it is sooner or later found
 * out, and costs a few looks. */
#define SOON_MAX 16u
#define SOON_ENOUGH 8u
#define LATE 4u

/* And where no processor is idle nobody sleeps long, and who stays awake may keep the one who would answer from running. So both
 * are measured: it stays awake where that saves a fifth of a wait, and does the other once in so many waits. */
#define WAITS_PER_TRIAL 32u

static bool stays_awake(rs_sleeps *sleeps) {
    if (sleeps->soon < SOON_ENOUGH) return false;
    bool pays = sleeps->asleep_ns == 0 || sleeps->awake_ns <= sleeps->asleep_ns / 5 * 4;
    return (++sleeps->soon_waits % WAITS_PER_TRIAL == 0) != pays;
}

/* An average that has forgotten most of a wait when there were eight more. */
static void note_wait(int64_t *average_ns, int64_t took_ns) {
    *average_ns = *average_ns == 0 ? took_ns : *average_ns + (took_ns - *average_ns) / 8;
}

void rs_sleep(rs_machine *machine, int64_t deadline_ns) {
    RS_CHECK(machine->running == RS_NO_INDEX);
    rs_sleeps *sleeps = &machine->sleeps;
    int64_t limit_ns = machine->options.busy_poll_ns;
    if (limit_ns == 0 || !machine->backend->peek) {
        sleep_now(machine, deadline_ns);
        return;
    }
    int64_t began_ns = rs_now(machine), until_ns = began_ns + limit_ns;
    bool awake = stays_awake(sleeps), came = false;
    if (awake) {
        machine->metrics.busy_polls++;
        came = look_until(machine, until_ns < deadline_ns ? until_ns : deadline_ns);
        limit_ns = came ? limit_ns : 0;
    } else {
        limit_ns *= 2; /* with the time that it takes to be woken */
    }
    if (!came) sleep_now(machine, deadline_ns);
    int64_t took_ns = rs_now(machine) - began_ns;
    if (took_ns > limit_ns) {
        sleeps->soon = sleeps->soon > LATE ? sleeps->soon - LATE : 0;
        return;
    }
    sleeps->soon = sleeps->soon < SOON_MAX ? sleeps->soon + 1 : SOON_MAX;
    note_wait(awake ? &sleeps->awake_ns : &sleeps->asleep_ns, took_ns);
}
