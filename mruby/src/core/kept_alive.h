/* kept_alive: what keeps mruby's objects alive for a strand, while it waits and until it ends.
 *
 * The collector sees neither the engine's memory nor a rsm_strand. It sees the object of the machine, which has a row of values
 * (values.h) with RSM_KEPT places for each strand. There are the strand's handle and its fiber, and the fiber's stack has the rest:
 * `self` and the arguments of the method that waits, which the epilogue finds there (mrb->c->ci->stack).
 *
 * Beside that: errors that a strand is still to raise are in an Array that is registered with the collector (`raises`, raise.c). An op
 * keeps no object: what the kernel reads or writes meanwhile is memory of its own (engine/ops/op.h). Items of a queue are in a row of
 * that queue, also on the way to a strand (sync/queue.c). Fibers without a strand are the pool's (workers.h).
 *
 * The strand owns its places from the moment that the engine has given it a name (rsm_strand_named) until it ends (rsm_forget_kept).
 */
#ifndef RINGSPUN_MRUBY_KEPT_ALIVE_H
#define RINGSPUN_MRUBY_KEPT_ALIVE_H

#include "machine.h"

typedef enum {
    RSM_KEPT_OBJECT,            /* its handle; or the concurrent proc that it runs */
    RSM_KEPT_FIBER,             /* and before it begins, its block */
    RSM_KEPT_EVALUATION,        /* of what it runs; nil: nobody has asked for it */
    RSM_KEPT_VALUE,             /* with which it is resumed */
    RSM_KEPT_STARTS,            /* Array: what the work of its batch needs, several values for each */
    RSM_KEPT
} rsm_kept_for;

/* The strands of a page of the row, so that no strand's values lie in two. */
_Static_assert(RSM_PAGE % RSM_KEPT == 0, "a page holds the values of whole strands");

/* Room for those of one more strand, so that rsm_keep raises nothing. */
static inline void rsm_reserve_kept(mrb_state *mrb, rsm_machine *machine) {
    uint32_t count = rs_strands_names(rs_strands_of(machine->engine));
    if (RS_UNLIKELY((int64_t)RSM_KEPT * count >= machine->kept.len)) rsm_values_add_page(mrb, &machine->kept);
}

/* The engine has given it that name. */
static inline void rsm_strand_named(rsm_machine *machine, rsm_strand *strand, rs_id id) {
    strand->id = id;
    strand->kept = rsm_values_place(&machine->kept, (mrb_int)RSM_KEPT * rs_id_index(id));
}

static inline mrb_value rsm_kept(const rsm_strand *strand, rsm_kept_for what) { return strand->kept[what]; }

static inline void rsm_keep(mrb_state *mrb, rsm_machine *machine, const rsm_strand *strand, rsm_kept_for what, mrb_value value) {
    strand->kept[what] = value;
    mrb_value page = rsm_values_page(&machine->kept, (mrb_int)RSM_KEPT * rs_id_index(strand->id));
    mrb_field_write_barrier_value(mrb, mrb_basic_ptr(page), value);
}

static inline void rsm_forget_kept(const rsm_strand *strand) {
    for (int what = 0; what < RSM_KEPT; what++) strand->kept[what] = mrb_nil_value();
}

/* What Evaluation#resume! was given. */
static inline mrb_value rsm_take_resume_value(mrb_state *mrb, rsm_machine *machine, const rsm_strand *strand) {
    mrb_value value = rsm_kept(strand, RSM_KEPT_VALUE);
    rsm_keep(mrb, machine, strand, RSM_KEPT_VALUE, mrb_nil_value());
    return value;
}

#endif
