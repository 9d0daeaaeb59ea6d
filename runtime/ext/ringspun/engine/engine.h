/* engine: all rooms, for whoever drives a machine: the only header that a driver includes, and that knows which rooms there are.
 *
 * Opening a machine gives it its parts, in the order of the rooms: what a part relies on comes before it.
 */
#ifndef RINGSPUN_ENGINE_H
#define RINGSPUN_ENGINE_H

#include "backend/backends.h"
#include "backend/sim/sim.h"
#include "core/deadlock.h"
#include "core/scope_end.h"
#include "flow/accept_queue.h"
#include "flow/barrier.h"
#include "flow/branches.h"
#include "flow/channel.h"
#include "flow/mutex.h"
#include "flow/queue.h"
#include "flow/select.h"
#include "flow/semaphore.h"
#include "flow/write_queue.h"
#include "kernel/descriptor_kinds.h"
#include "kernel/platform.h"
#include "kernel/resolve.h"
#include "kernel/splice.h"
#include "ops/op_life.h"
#include "ops/platform.h"
#include "procs/await.h"
#include "procs/batch.h"
#include "procs/evaluation.h"

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
