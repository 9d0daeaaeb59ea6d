/* switch: the only file that switches fibers, by what Fiber#transfer does.
 *
 * mruby has no C function for it. All contexts run in the same call of mrb_vm_exec: a method that changes mrb->c, and says so in the
 * callinfo that it returns to, returns into another fiber (fiber_switch in mruby-fiber; "return from context modifying method" in
 * vm.c). So a fiber can only be left by the last act of a method that bytecode has called, and never from inside a function in C
 * that has called bytecode.
 *
 * A generator that waits is left like any other fiber, and its `prev` stays: it goes on later as if nothing had been.
 */
#include "core.h"

#include <mruby/version.h>

#if MRUBY_RELEASE_MAJOR == 3 && MRUBY_RELEASE_MINOR >= 3
#define RETURNS_ELSEWHERE(ci) ((ci)->u.target_class = NULL)
#elif MRUBY_RELEASE_MAJOR == 4
#define RETURNS_ELSEWHERE(ci) ((ci)->u.keep_context = NULL)
#else
#error "mruby-ringspun knows how mruby 3.3 and 4 switch fibers, and no other"
#endif

/* Fiber#resume and Fiber#transfer take a strand that waits for a fiber that has resumed another, and refuse it. */
static void switch_to(mrb_state *mrb, struct mrb_context *to) {
    struct mrb_context *from = mrb->c;
    if (from == to) return;
    if (from->fib) mrb_write_barrier(mrb, (struct RBasic *)from->fib);
    from->status = MRB_FIBER_RESUMED;
    to->status = MRB_FIBER_RUNNING;
    mrb->c = to;
    RETURNS_ELSEWHERE(to->ci);
}

static mrb_value worker_body(mrb_state *mrb) {
    return mrb_const_get(mrb, mrb_obj_value(mrb_module_get(mrb, "Ringspun")), mrb_intern_lit(mrb, "WORKER"));
}

/* A fiber begins with its block as the argument of its body. Its second callinfo is the one that returns, to the same stack: what
 * the switch returns is `self` there (fiber_init_fiber and fiber_switch). */
static mrb_value begin_new(mrb_state *mrb, rsm_machine *machine, mrb_value fiber) {
    struct mrb_context *context = rsm_context_of(fiber);
    context->cibase->n = 1;
    switch_to(mrb, context);
    return machine->self;
}

static mrb_value begin(mrb_state *mrb, rsm_machine *machine, rs_strand *engine) {
    rsm_strand *strand = rs_strand_user(engine);
    mrb_value block = strand->has_work ? rsm_the_work->first(mrb, machine, strand) : rsm_kept(strand, RSM_KEPT_FIBER);
    mrb_value fiber = rsm_workers_take(mrb, &machine->workers);
    bool is_new = mrb_nil_p(fiber);
    if (is_new) fiber = mrb_fiber_new(mrb, mrb_proc_ptr(worker_body(mrb)));
    strand->context = rsm_context_of(fiber);
    if (is_new) strand->context->stbase[1] = block; /* which nobody keeps alive any more */
    rsm_keep(mrb, machine, strand, RSM_KEPT_FIBER, fiber);
    rs_strand_began(engine);
    if (is_new) return begin_new(mrb, machine, fiber);
    switch_to(mrb, strand->context);
    return block;
}

static mrb_value go_on(mrb_state *mrb, rsm_machine *machine, rs_strand *next) {
    rsm_strand *strand = rs_strand_user(next);
    if (RS_UNLIKELY(!strand->context)) return begin(mrb, machine, next);
    switch_to(mrb, strand->context);
    int64_t result = 0;
    rs_wake_kind kind = rs_park_end(machine->engine, &result);
    return strand->epilogue(mrb, machine, strand, kind, result);
}

static void idle(mrb_state *mrb, rsm_machine *machine, rs_decision decision) {
    rsm_workers_shrink(mrb, &machine->workers);
    if (decision.verdict == RS_SLEEP) rs_sleep(machine->engine, decision.deadline_ns);
    else if (!rs_break_deadlock(machine->engine)) rs_sleep(machine->engine, RS_NEVER);
}

mrb_value rsm_next(mrb_state *mrb, rsm_machine *machine) {
    for (;;) {
        rs_decision decision = rs_next(machine->engine);
        if (RS_LIKELY(decision.verdict == RS_RUN)) return go_on(mrb, machine, decision.strand);
        idle(mrb, machine, decision);
    }
}

mrb_value rsm_park(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rsm_epilogue epilogue) {
    strand->context = mrb->c;
    strand->epilogue = epilogue;
    if (RS_UNLIKELY(strand->has_batch)) rsm_the_work->hand_over(mrb, machine, strand);
    return rsm_next(mrb, machine);
}

mrb_value rsm_run_first(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_strand *first, rsm_epilogue epilogue) {
    strand->context = mrb->c;
    strand->epilogue = epilogue;
    return begin(mrb, machine, first);
}
