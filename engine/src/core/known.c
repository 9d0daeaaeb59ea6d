#include "ringspun/core/known.h"
#include "core/machine.h"

void *rs_user_of(const rs_machine *machine) { return machine->user; }
const rs_backend *rs_backend_of(const rs_machine *machine) { return machine->backend; }
const rs_options *rs_options_of(const rs_machine *machine) { return &machine->options; }
const char *rs_refusal_text(const rs_machine *machine) { return machine->refusal_text; }

const rs_strands *rs_strands_of(const rs_machine *machine) { return &machine->strands; }
rs_id rs_root_id(const rs_machine *machine) { return machine->root; }

bool rs_none_runs(const rs_machine *machine) { return machine->running == RS_NO_INDEX; }
bool rs_is_running(const rs_machine *machine, const rs_strand *strand) { return machine->running == strand->index; }

bool rs_program_runs(const rs_machine *machine) {
    return machine->running != RS_NO_INDEX && machine->runs->wait == RS_WAIT_NONE;
}

rs_wake_kind rs_refused(const rs_machine *machine) { return machine->refusal; }
uint64_t rs_turn_number(const rs_machine *machine) { return machine->metrics.resumes; }
bool rs_is_idle(const rs_machine *machine) { return machine->running == RS_NO_INDEX && machine->strands.run_len == 0; }

bool rs_has_work(const rs_machine *machine, int64_t deadline_ns) {
    bool due = rs_timers_earliest(&machine->timers) < deadline_ns;
    return due || machine->strands.run_len > 0 || machine->attention || rs_has_gathered(machine);
}

int64_t rs_next_timer(const rs_machine *machine) { return rs_timers_earliest(&machine->timers); }

uint32_t rs_ops_in_flight(const rs_machine *machine) { return machine->in_flight; }
uint32_t rs_wakers(const rs_machine *machine) { return machine->wakers; }
uint32_t rs_work_outside(const rs_machine *machine) { return machine->outside; }

void rs_messages_each(const rs_machine *machine, void (*visit)(const rs_message *message)) {
    for (const rs_message *message = atomic_load(&machine->inbox.head); message; message = message->next) visit(message);
    for (const rs_message *message = machine->taken; message; message = message->next) visit(message);
}

uint64_t rs_trace_hash(const rs_machine *machine) { return machine->trace.hash; }

void rs_trace_each(const rs_machine *machine, void (*visit)(void *context, const rs_trace_event *event), void *context) {
    const rs_trace *trace = &machine->trace;
    uint64_t first = trace->count > RS_TRACE_RING ? trace->count - RS_TRACE_RING : 0;
    for (uint64_t i = first; i < trace->count; i++) visit(context, &trace->ring[i % RS_TRACE_RING]);
}

#define PEEK(number) __atomic_load_n(&(number), __ATOMIC_ACQUIRE)

rs_turn_seen rs_look_at_turn(const rs_machine *machine) {
    uint32_t strand = PEEK(machine->running); /* first: a turn is counted before it begins */
    uint64_t number = PEEK(machine->metrics.resumes);
    uint64_t spawned = PEEK(machine->metrics.strands_spawned);
    return (rs_turn_seen){.strand = strand, .live = rs_strands_live_once(&machine->strands), .number = number, .spawned = spawned};
}

rs_strand *rs_strand_of_turn(const rs_machine *machine, const rs_turn_seen *seen) {
    if (machine->metrics.strands_spawned != seen->spawned) return NULL;
    rs_strand *strand = rs_strand_at(&machine->strands, seen->strand);
    return strand->state == RS_STRAND_FREE ? NULL : strand;
}
