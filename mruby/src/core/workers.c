/* A period ends with a collection, for the memory of a fiber is not free before. mruby says of none that it has run; but it frees an
 * object of ours that nobody has, and we make another when strands end or the machine has nothing to do.
 */
#include "workers.h"

#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/internal.h>
#include <mruby/variable.h>
#include <string.h>

/* What that object points to. */
struct rsm_period {
    rsm_workers *workers;       /* NULL: they are closed */
};

/* The collector frees it, and may free the machine in the same sweep: nothing is done here but to say so. */
static void period_free(mrb_state *mrb, void *data) {
    rsm_period *period = data;
    if (period && period->workers) period->workers->period = NULL;
    mrb_free(mrb, period);
}

static const struct mrb_data_type period_type = {"Ringspun, a period of the pool of workers", period_free};

void rsm_workers_init(mrb_state *mrb, rsm_workers *workers, mrb_value object) {
    workers->fibers = mrb_ary_new(mrb);
    mrb_iv_set(mrb, object, mrb_intern_lit(mrb, "workers"), workers->fibers);
}

static void begin_period(mrb_state *mrb, rsm_workers *workers) {
    int arena = mrb_gc_arena_save(mrb);
    struct RData *object = mrb_data_object_alloc(mrb, mrb->object_class, NULL, &period_type);
    workers->period = mrb_malloc(mrb, sizeof(*workers->period));
    workers->period->workers = workers;
    object->data = workers->period;
    workers->unneeded = rsm_workers_len(workers);
    mrb_gc_arena_restore(mrb, arena);
}

static void drop(rsm_workers *workers, mrb_int count) {
    mrb_int left = rsm_workers_len(workers) - count;
    mrb_value *fibers = RARRAY_PTR(workers->fibers);
    if (count > 0) memmove(fibers, fibers + count, sizeof(*fibers) * (size_t)left);
    ARY_SET_LEN(mrb_ary_ptr(workers->fibers), left);
}

void rsm_workers_period_is_over(mrb_state *mrb, rsm_workers *workers) {
    mrb_int above = rsm_workers_len(workers) - RSM_WORKERS_KEPT;
    drop(workers, workers->unneeded < above ? workers->unneeded : above);
    begin_period(mrb, workers);
}

void rsm_workers_close(rsm_workers *workers) {
    if (workers->period) workers->period->workers = NULL;
    workers->period = NULL;
}
