/* workers: the pool of worker fibers that have run a strand and wait for another. The machine owns it, and an Array of its object keeps
 * the fibers alive. It keeps as many as strands have lately needed at once, and never fewer than RSM_WORKERS_KEPT: one that was not
 * needed during a whole period is left to the collector.
 */
#ifndef RINGSPUN_MRUBY_WORKERS_H
#define RINGSPUN_MRUBY_WORKERS_H

#include "supported.h"

#include "ringspun/engine.h"

#include <mruby/array.h>

typedef struct rsm_period rsm_period;

/* Fibers without a strand. */
typedef struct {
    mrb_value fibers;           /* Array */
    mrb_int unneeded;           /* during this period, at least */
    rsm_period *period;         /* NULL: none has begun, or it is over */
} rsm_workers;

/* An empty pool, which the object keeps alive. */
void rsm_workers_init(mrb_state *mrb, rsm_workers *workers, mrb_value object);

static inline mrb_int rsm_workers_len(const rsm_workers *workers) { return RARRAY_LEN(workers->fibers); }

/* nil: there is none. */
static inline mrb_value rsm_workers_take(mrb_state *mrb, rsm_workers *workers) {
    mrb_value fiber = mrb_ary_pop(mrb, workers->fibers);
    if (rsm_workers_len(workers) < workers->unneeded) workers->unneeded = rsm_workers_len(workers);
    return fiber;
}

/* What an Array holds of mruby's own making (MRB_ARY_LENGTH_MAX), or less. Those above are left to the collector. */
#define RSM_WORKERS_MAX 65536

static inline void rsm_workers_put(mrb_state *mrb, rsm_workers *workers, mrb_value fiber) {
    if (RS_LIKELY(rsm_workers_len(workers) < RSM_WORKERS_MAX)) mrb_ary_push(mrb, workers->fibers, fiber);
}

/* A pool of fewer is not worth shrinking. */
#define RSM_WORKERS_KEPT 128

/* Leaves to the collector what was not needed, if there was a collection. */
void rsm_workers_period_is_over(mrb_state *mrb, rsm_workers *workers);
static inline void rsm_workers_shrink(mrb_state *mrb, rsm_workers *workers) {
    if (RS_LIKELY(workers->period || rsm_workers_len(workers) <= RSM_WORKERS_KEPT)) return;
    rsm_workers_period_is_over(mrb, workers);
}

/* The machine is gone. */
void rsm_workers_close(rsm_workers *workers);

#endif
