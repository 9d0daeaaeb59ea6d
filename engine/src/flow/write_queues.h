/* write queues: those of a machine. */
#ifndef RINGSPUN_WRITE_QUEUES_H
#define RINGSPUN_WRITE_QUEUES_H

#include "core/machine.h"
#include "ringspun/flow/write_queue.h"

typedef struct rs_write_queues { rs_links all; } rs_write_queues;

extern const rs_part rs_write_queues_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_write_queues_at;

static inline rs_write_queues *rs_write_queues_in(const rs_machine *machine) {
    return (rs_write_queues *)((char *)machine + rs_write_queues_at);
}

#endif
