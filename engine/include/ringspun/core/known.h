/* known: what a driver may know of its machine, beside what it has asked for. Owned by the machine's thread, but for rs_look_at_turn.
 * For the driver: the engine reads the machine itself.
 */
#ifndef RINGSPUN_KNOWN_H
#define RINGSPUN_KNOWN_H

#include "ringspun/core/machine.h"
#include "ringspun/core/trace_event.h"

/* Of rs_machine_drive. */
void *rs_user_of(const rs_machine *machine);

/* Of rs_machine_open. */
const struct rs_backend *rs_backend_of(const rs_machine *machine);
const rs_options *rs_options_of(const rs_machine *machine);

/* Why the backend did not open, or what it lost, where it knows more than an errno; else it is empty. */
const char *rs_refusal_text(const rs_machine *machine);

const rs_strands *rs_strands_of(const rs_machine *machine);
rs_id rs_root_id(const rs_machine *machine);

/* Between two strands: all wait, or the next one has not been chosen. */
bool rs_none_runs(const rs_machine *machine);
bool rs_is_running(const rs_machine *machine, const rs_strand *strand);

/* A strand runs, and its program has control: it has not been switched to for the end of a wait. */
bool rs_program_runs(const rs_machine *machine);

/* Of the last rs_park_begin, or what begins with one, that has answered that the strand must not wait. */
rs_wake_kind rs_refused(const rs_machine *machine);

/* Counts up with each turn. */
uint64_t rs_turn_number(const rs_machine *machine);

/* None runs, and none can before something comes from outside of the machine. */
bool rs_is_idle(const rs_machine *machine);

/* Somebody can run, or something is due before that time: it must not sleep until then. */
bool rs_has_work(const rs_machine *machine, int64_t deadline_ns);
/* When the next timer is due; RS_NEVER. */
int64_t rs_next_timer(const rs_machine *machine);

/* Ops that the backend, or a worker, has; wakers that have not woken (rs_expect_waker); and work of threads that will still come back
 * to the machine. */
uint32_t rs_ops_in_flight(const rs_machine *machine);
uint32_t rs_wakers(const rs_machine *machine);
uint32_t rs_work_outside(const rs_machine *machine);

/* Those that other threads have sent and the machine has not dealt with, for a collector. */
void rs_messages_each(const rs_machine *machine, void (*visit)(const rs_message *message));

/* 0 without rs_options.trace. The last events, oldest first. */
uint64_t rs_trace_hash(const rs_machine *machine);
void rs_trace_each(const rs_machine *machine, void (*visit)(void *context, const rs_trace_event *event), void *context);

/* The turn that a strand has, as another thread sees it. The index is RS_NO_INDEX between two turns. */
typedef struct {
    uint32_t strand;
    uint32_t live;              /* strands */
    uint64_t number;
    uint64_t spawned;           /* strands, ever: where that has not changed, the index still means the same one, or it has ended */
} rs_turn_seen;

rs_turn_seen rs_look_at_turn(const rs_machine *machine);

/* The strand of that turn; NULL: it has ended, or may have. On the machine's thread. */
rs_strand *rs_strand_of_turn(const rs_machine *machine, const rs_turn_seen *seen);

#endif
