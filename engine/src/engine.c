#include "ringspun/engine.h"
#include "core/machine.h"
#include "kernel/processor.h"
#include "rooms.h"

#include <errno.h>
#include <stdlib.h>

/* In the order of the rooms. Channels come before selectors: what they give back when a machine ends may be for a watch. */
static const rs_part *const parts[] = {
    &rs_ops_part, &rs_descriptors_part, &rs_pool_part, &rs_accept_queues_part, &rs_channel_waiters_part, &rs_selectors_part,
    &rs_mutexes_part, &rs_write_queues_part, &rs_batches_part, NULL,
};

/* About as long as it takes to fall asleep and be woken where processors sleep too. */
#define BUSY_POLL_NS 50000

/* On the only processor nobody could do what the machine looks for. */
static int64_t busy_poll_default(void) { return rs_has_one_processor() ? 0 : BUSY_POLL_NS; }

rs_options rs_default_options(void) {
    return (rs_options){.strands_max = 1u << 20, .workers_max = 4, .ring_entries = 256, .sqpoll_cpu = -1,
                        .busy_poll_ns = busy_poll_default()};
}

void rs_metrics_each(const rs_machine *machine, rs_each_metric each, void *context) {
    const rs_metrics *metrics = &machine->metrics;
    each(context, "strands_live", rs_strands_live(&machine->strands));
    each(context, "strands_spawned", metrics->strands_spawned);
    each(context, "run_queue", machine->strands.run_len);
    each(context, "run_queue_max", metrics->run_queue_max);
    each(context, "timers", machine->timers.len - rs_timer_is_set(&machine->reminder));
    each(context, "stream_buffers", rs_pool_in(machine)->lent);
    each(context, "timers_fired", metrics->timers_fired);
    each(context, "resumes", metrics->resumes);
    each(context, "wakes", metrics->wakes);
    each(context, "wakes_dropped", metrics->wakes_dropped);
    each(context, "cancels", metrics->cancels);
    each(context, "ops_in_flight", machine->in_flight);
    each(context, "ops_inline", metrics->ops_inline);
    each(context, "ops_started", metrics->ops_started);
    each(context, "ops_offloaded", metrics->ops_offloaded);
    each(context, "look_ups_waiting", machine->look_ups_waiting);
    each(context, "file_writes_inline", metrics->file_writes_inline);
    each(context, "bytes_spliced", metrics->bytes_spliced);
    each(context, "polls", metrics->polls);
    each(context, "busy_polls", metrics->busy_polls);
    each(context, "sleeps", metrics->sleeps);
    each(context, "messages", metrics->messages);
    each(context, "system_calls", metrics->system_calls);
}

/* All in one block, behind the machine what its rooms keep. */
typedef struct {
    rs_machine machine;
    rs_rooms rooms;
} block;

#define AT(room) const size_t rs_##room##_at = offsetof(block, rooms.room)
AT(ops);
AT(descriptors);
AT(pool);
AT(accept_queues);
AT(channel_waiters);
AT(selectors);
AT(write_queues);
AT(batches);

rs_machine *rs_machine_new(void) {
    block *all = rs_try_alloc(sizeof(*all));
    return all ? &all->machine : NULL;
}

int rs_machine_open(rs_machine *machine, const rs_backend *backend, const rs_options *options) {
    *machine = (rs_machine){.parts = parts, .backend = backend, .options = *options};
    ((block *)machine)->rooms = (rs_rooms){0};
    int error = rs_machine_start(machine);
    if (error) {
        rs_trace_close(&machine->trace);
        machine->parts = NULL; /* rs_machine_was_opened */
    }
    return error;
}

bool rs_machine_was_opened(const rs_machine *machine) { return machine->parts != NULL; }

void rs_machine_free(rs_machine *machine) {
    rs_trace_close(&machine->trace);
    free(machine);
}

size_t rs_machine_bytes(const rs_machine *machine) {
    if (!rs_machine_was_opened(machine)) return sizeof(block);
    size_t trace = machine->trace.ring ? sizeof(rs_trace_event) * RS_TRACE_RING : 0;
    return sizeof(block) + trace + rs_slab_bytes(&machine->strands.slab) + rs_slab_bytes(&rs_ops_in(machine)->slab);
}
