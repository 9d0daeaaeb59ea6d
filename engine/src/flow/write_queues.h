/* write queues: those of a machine. */
#ifndef RINGSPUN_WRITE_QUEUES_H
#define RINGSPUN_WRITE_QUEUES_H

#include "core/part.h"
#include "ringspun/flow/write_queue.h"

typedef struct rs_write_queues { rs_links all; } rs_write_queues;

extern const rs_part rs_write_queues_part;

#endif
