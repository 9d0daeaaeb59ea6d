/* rooms: what they keep for a machine. For engine.c, which opens machines, and for tests. */
#ifndef RINGSPUN_ROOMS_H
#define RINGSPUN_ROOMS_H

#include "flow/accept_queues.h"
#include "flow/channels.h"
#include "flow/mutexes.h"
#include "flow/pool.h"
#include "flow/selectors.h"
#include "flow/write_queues.h"
#include "ops/descriptors.h"
#include "ops/ops.h"
#include "procs/batches.h"

typedef struct rs_rooms {
    rs_ops ops;
    rs_descriptors descriptors;
    rs_pool pool;
    rs_accept_queues accept_queues;
    rs_channel_waiters channel_waiters;
    rs_selectors selectors;
    rs_write_queues write_queues;
    rs_batches batches;
} rs_rooms;

#endif
