/* engine: all rooms, for whoever drives a machine: the only header that a driver includes, and that knows which rooms there are.
 *
 * Opening a machine gives it its parts, in the order of the rooms: what a part relies on comes before it.
 */
#ifndef RINGSPUN_ENGINE_H
#define RINGSPUN_ENGINE_H

#include "ringspun/backend/backends.h"
#include "ringspun/backend/sim/sim.h"
#include "ringspun/core/deadlock.h"
#include "ringspun/core/known.h"
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
#include "ringspun/kernel/resolve.h"
#include "ringspun/kernel/splice.h"
#include "ringspun/ops/op_life.h"
#include "ringspun/procs/await.h"
#include "ringspun/procs/batch.h"
#include "ringspun/procs/evaluation.h"

rs_options rs_default_options(void);

/* Counters of the machine since it was opened, and present numbers, under the names that users know. */
typedef void (*rs_each_metric)(void *context, const char *name, uint64_t value);
void rs_metrics_each(const rs_machine *machine, rs_each_metric each, void *context);

/* Memory for a machine that is not open; NULL: there is none. */
rs_machine *rs_machine_new(void);

/* Its root strand (index 0) is running; 0, RS_NO_MEMORY, or -errno: then rs_refusal_text may say more, and another backend may be
 * tried. */
int rs_machine_open(rs_machine *machine, const rs_backend *backend, const rs_options *options);

/* It is open, or has been. Of one that is not, a driver asks this and rs_machine_bytes alone. */
bool rs_machine_was_opened(const rs_machine *machine);

/* After rs_machine_close, when nobody asks the machine anything any more; or of one that is not open. */
void rs_machine_free(rs_machine *machine);

/* Its memory. */
size_t rs_machine_bytes(const rs_machine *machine);

#endif
