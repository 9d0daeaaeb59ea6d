/* engine: all rooms, for whoever drives a machine: the only header that a driver includes, and that knows which rooms there are.
 *
 * Opening a machine gives it its parts, in the order of the rooms: what a part relies on comes before it.
 */
#ifndef RINGSPUN_ENGINE_H
#define RINGSPUN_ENGINE_H

#include "ringspun/backend/backends.h"
#include "ringspun/backend/sim/sim.h"
#include "ringspun/core/deadlock.h"
#include "ringspun/core/scope_end.h"
#include "ringspun/flow/accept_queue.h"
#include "ringspun/flow/barrier.h"
#include "ringspun/flow/branches.h"
#include "ringspun/flow/channel.h"
#include "ringspun/flow/mutex.h"
#include "ringspun/flow/queue.h"
#include "ringspun/flow/select.h"
#include "ringspun/flow/semaphore.h"
#include "ringspun/flow/write_queue.h"
#include "ringspun/kernel/descriptor_kinds.h"
#include "ringspun/kernel/platform.h"
#include "ringspun/kernel/resolve.h"
#include "ringspun/kernel/splice.h"
#include "ringspun/ops/op_life.h"
#include "ringspun/ops/platform.h"
#include "ringspun/procs/await.h"
#include "ringspun/procs/batch.h"
#include "ringspun/procs/evaluation.h"

/* What the rooms keep for a machine. The driver keeps it for as long as the machine, and in one place like that. */
typedef struct {
    rs_ops ops;
    rs_descriptors descriptors;
    rs_pool pool;
    rs_accept_queues accept_queues;
    rs_channel_waiters channel_waiters;
    rs_selectors selectors;
    rs_write_queues write_queues;
    rs_batches batches;
} rs_rooms;

rs_options rs_default_options(void);

/* Counters of the machine since it was opened, and present numbers, under the names that users know. */
typedef void (*rs_each_metric)(void *context, const char *name, uint64_t value);
void rs_metrics_each(const rs_machine *machine, rs_each_metric each, void *context);

/* A machine whose root strand (index 0) is running; 0 or -errno. */
int rs_machine_open(rs_machine *machine, rs_rooms *rooms, const rs_backend *backend, const rs_options *options);

#endif
