#include "ringspun/core/deadlock.h"

#include "core/machine.h"

bool rs_somebody_waits(const rs_machine *machine, rs_wait_kind wait) {
    RS_CHECK(wait > RS_WAIT_NONE && wait < RS_WAIT_KINDS);
    RS_EACH_STRAND(&machine->strands, strand) {
        if (strand->state == RS_STRAND_PARKED && strand->wait == wait) return true;
    }
    return false;
}

static void cancel_all_but_root(rs_machine *machine) {
    RS_EACH_STRAND(&machine->strands, strand) {
        if (strand->state != RS_STRAND_PARKED || rs_is_root(machine, strand)) continue;
        rs_break_park(machine, strand, RS_WAKE_CANCEL);
    }
}

/* The steps are those of take_step: 0 reports, 1 cancels all but the root, 2 interrupts the root, again and again. */
#define LAST_STEP 2

/* Where a strand has run since the last step, that step was not in vain, even if an op that it cancelled ended only later. */
static void begin_unless_the_same(rs_machine *machine) {
    RS_CHECK(machine->deadlock_steps <= LAST_STEP);
    if (machine->deadlock_resumes != machine->metrics.resumes) machine->deadlock_steps = 0;
    machine->deadlock_resumes = machine->metrics.resumes;
}

static void take_step(rs_machine *machine, rs_strand *root) {
    RS_CHECK(root->state == RS_STRAND_PARKED);
    switch (machine->deadlock_steps) {
    case 0:
        if (machine->driver.on_deadlock) machine->driver.on_deadlock(machine, root);
        break;
    case 1: cancel_all_but_root(machine); break;
    default: rs_break_park(machine, root, RS_WAKE_INTERRUPT);
    }
}

bool rs_break_deadlock(rs_machine *machine) {
    RS_CHECK(machine->running == RS_NO_INDEX && machine->strands.run_len == 0);
    if (machine->driver.others_may_wake && machine->driver.others_may_wake(machine)) return false;
    if (!rs_inbox_empty(&machine->inbox)) return true; /* the last of them may have left something */
    rs_strand *root = rs_root(machine);
    RS_CHECK(root != NULL);
    begin_unless_the_same(machine);
    take_step(machine, root);
    if (machine->deadlock_steps < LAST_STEP) machine->deadlock_steps++;
    return true;
}
