/* machine: what a machine consists of. For the engine and its tests; who drives a machine asks by functions
 * (ringspun/core/machine.h), and has no header in which this is. */
#ifndef RINGSPUN_ENGINE_MACHINE_H
#define RINGSPUN_ENGINE_MACHINE_H

#include "core/backend.h"
#include "core/inbox.h"
#include "core/part.h"
#include "core/sleeps.h"
#include "core/strands.h"
#include "core/tick_end.h"
#include "core/timers.h"
#include "core/trace.h"
#include "ringspun/core/gathered.h"
#include "ringspun/core/machine.h"

typedef struct {
    uint64_t strands_spawned, resumes, polls, busy_polls, sleeps, wakes, wakes_dropped, ops_started, ops_inline, ops_offloaded,
        cancels, timers_fired, messages, wake_ups, file_writes_inline, bytes_spliced, system_calls, run_queue_max;
} rs_metrics;

/* rs_machine_run_in_whole_ticks. */
typedef struct {
    bool begins;                /* those woken from outside run, before it is settled who else runs in this tick */
    bool was_idle;              /* nobody else was ready when it began, and no timer due */
    uint64_t resumes;           /* metrics.resumes when it began */
    uint64_t timers;            /* timers of this order and later are the next tick's */
    int64_t now_ns;             /* those up to this time are due */
} rs_tick;

struct rs_machine {
    rs_strands strands;
    rs_timers timers;
    uint32_t scopes_open;       /* beside those of the strands themselves */
    rs_timer reminder;          /* the driver's: a machine that has no other timer does not wait for it */
    const rs_part *const *parts; /* up to a NULL */
    const rs_part *on_message[RS_MESSAGE_KINDS]; /* of these, who takes a message of that kind; NULL: core, or the driver */
    const rs_part *ends_wait[RS_WAIT_KINDS];     /* and who ends a wait of that kind; NULL: it is over at once */
    uint32_t in_flight;         /* ops that the backend, or a worker, has */
    uint32_t unawaited;         /* of these, those that wake nobody unless a part says so (rs_part.may_wake) */
    rs_links gathered;          /* for the backend, until the next look */
    rs_links tick_ends;         /* rs_tick_end: what is called before those are handed over */
    rs_inbox inbox;
    rs_message *taken;          /* out of the inbox and not yet dealt with: their payloads are still ours to keep alive */
    const rs_backend *backend;
    void *backend_state;
    rs_id root;                 /* its first strand; in a forked child the one that has come along */
    uint32_t running;           /* index of the strand that runs, RS_NO_INDEX between two */
    rs_strand *runs;            /* its slot; meaningful only while one runs */
    rs_wake_kind refusal;
    uint64_t last_ticket;
    rs_turn turn;               /* of the strand that runs */
    uint32_t resumes_since_poll;
    int64_t coarse_ns;          /* when the present turn began, by the coarse clock, if a look may wake anybody */
    int64_t polled_at_ns;       /* when its present poll began: ops that have completed by then win over times that are due by then */
    int64_t backend_deadline_ns; /* when the backend itself next has something to do; RS_NEVER */
    uint64_t deadlock_resumes;  /* metrics.resumes at the last step of rs_break_deadlock */
    rs_sleeps sleeps;
    uint8_t deadlock_steps;     /* of rs_break_deadlock, taken against the present deadlock without effect */
    bool attention;             /* poll before the next resume */
    rs_tick tick;               /* the present one, in whole ticks */
    bool wakes_first;           /* who becomes ready goes ahead of the others */
    _Atomic bool sleeping;
    uint32_t wakers;            /* handed out to other threads, each to be woken once */
    _Atomic uint32_t outside;   /* work that will come back through the inbox: workers' ops; workers that were left count it down */
    _Atomic uint32_t look_ups_waiting; /* of names, for a thread */
    rs_options options;
    rs_metrics metrics;
    rs_trace trace;
    char refusal_text[160];     /* why the backend did not open, where it knows more than an errno */
    rs_driver driver;
    void *user;                 /* the driver's */
    bool notes_parks;           /* strands note when they park */
    int64_t (*clock)(struct rs_machine *machine);
};

/* For rs_machine_open, when a zeroed machine has its parts and what they keep, its backend and options: it has a root strand
 * (index 0), which runs; 0 or -errno. */
int rs_machine_start(rs_machine *machine);

/* rs_running for the engine itself. */
static inline rs_strand *rs_runs(const rs_machine *machine) {
    RS_ASSERT(machine->running != RS_NO_INDEX);
    RS_CHECK(machine->runs->index == machine->running);
    return machine->runs;
}

/* The running strand has parked, or yields: with its next op the next turn begins. */
static inline void rs_turn_end(rs_turn *turn) {
    turn->ops = 0;
    turn->over = false;
}

static inline void rs_trace_if(rs_machine *machine, rs_trace_kind kind, uint64_t subject, int64_t detail) {
    if (RS_UNLIKELY(machine->trace.enabled)) {
        rs_trace_record(&machine->trace, rs_now(machine), kind, subject, detail);
    }
}

static inline void rs_gather(rs_machine *machine, rs_gathered *gathered) {
    if (gathered->listed) return;
    RS_CHECK(gathered->flush != NULL);
    gathered->listed = true;
    rs_links_prepend(&machine->gathered, &gathered->link);
}

/* Something is to be done before the next look. */
static inline bool rs_has_gathered(const rs_machine *machine) {
    return !rs_links_empty(&machine->gathered) || !rs_links_empty(&machine->tick_ends);
}

static inline void rs_ungather(rs_machine *machine, rs_gathered *gathered) {
    if (!gathered->listed) return;
    RS_CHECK(gathered->flush != NULL);
    gathered->listed = false;
    rs_links_remove(&machine->gathered, &gathered->link);
}

#endif
