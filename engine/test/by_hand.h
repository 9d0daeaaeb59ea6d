/* by_hand: a machine in which the test itself plays every strand, on a simulated kernel, mostly without faults. Include after
 * test.h. */
#ifndef RINGSPUN_BY_HAND_H
#define RINGSPUN_BY_HAND_H

#include "driver.h"

#include <stdlib.h>

static const rs_sim_faults no_faults;
static rs_machine *machine;
static uint64_t root_ticket;

/* A machine whose root waits, so that the test can be any other strand. */
static inline void begin_with(const rs_sim_faults *faults) {
    machine = rs_machine_new();
    rs_options options = rs_default_options();
    options.faults = faults;
    RS_ASSERT(rs_machine_open(machine, &rs_backend_sim, &options) == 0);
    root_ticket = rs_park_begin(machine, RS_WAIT_SUSPEND, RS_PARK_SHIELDED, RS_NEVER);
}

static inline void begin(void) { begin_with(&no_faults); }

static inline rs_scope *root_scope(void) { return &rs_strand_at(&machine->strands, 0)->own; }

static inline rs_strand *spawn_into(rs_scope *scope) { return rs_spawn(machine, scope, NULL); }
static inline rs_strand *spawn(void) { return spawn_into(root_scope()); }

/* The strand that runs from here on; NULL: none is ready. */
static inline rs_strand *next(void) {
    rs_decision decision = rs_next(machine);
    return decision.verdict == RS_RUN ? decision.strand : NULL;
}

/* The same, after as much virtual time as it takes. */
static inline rs_strand *next_ever(void) {
    for (;;) {
        rs_decision decision = rs_next(machine);
        if (decision.verdict == RS_RUN) return decision.strand;
        if (decision.verdict == RS_DEADLOCK) return NULL;
        rs_sleep(machine, decision.deadline_ns);
    }
}

static inline uint64_t park(uint32_t flags, int64_t deadline_ns) {
    return rs_park_begin(machine, RS_WAIT_SUSPEND, flags, deadline_ns);
}

static inline rs_wake_kind park_end(void) { return rs_park_end(machine, NULL); }

static inline void end(void) {
    CHECK(rs_wake(machine, rs_id_make(0, 1), root_ticket, RS_WAKE_VALUE, 0));
    CHECK(next_ever() == rs_strand_at(&machine->strands, 0));
    CHECK_EQUAL(1, rs_strands_live(&machine->strands));
    CHECK_EQUAL(0, machine->timers.len);
    rs_machine_close(machine);
    rs_machine_free(machine);
}

#endif
