#include "engine.h"
#include "kernel/processor.h"

/* In the order of the rooms. Channels come before selectors: what they give back when a machine ends may be for a watch. */
static const rs_part *const parts[] = {
    &rs_ops_part, &rs_descriptors_part, &rs_pool_part, &rs_accept_queues_part, &rs_channel_waiters_part, &rs_selectors_part,
    &rs_write_queues_part, NULL,
};

/* About as long as it takes to fall asleep and be woken where processors sleep too. */
#define BUSY_POLL_NS 50000

/* On the only processor nobody could do what the machine looks for. */
static int64_t busy_poll_default(void) { return rs_has_one_processor() ? 0 : BUSY_POLL_NS; }

rs_options rs_default_options(void) {
    return (rs_options){.strands_max = 1u << 20, .workers_max = 4, .ring_entries = 256, .sqpoll_cpu = -1,
                        .busy_poll_ns = busy_poll_default()};
}

int rs_machine_open(rs_machine *machine, rs_rooms *rooms, const rs_backend *backend, const rs_options *options) {
    *rooms = (rs_rooms){0};
    *machine = (rs_machine){
        .parts = parts, .backend = backend, .options = *options, .ops = &rooms->ops, .descriptors = &rooms->descriptors,
        .pool = &rooms->pool, .accept_queues = &rooms->accept_queues, .channel_waiters = &rooms->channel_waiters,
        .selectors = &rooms->selectors, .write_queues = &rooms->write_queues};
    return rs_machine_start(machine);
}
