/* switch: the only file that switches fibers, by what Fiber#transfer does.
 *
 * mruby has no C function for it. All contexts run in the same call of mrb_vm_exec: a method that changes mrb->c, and says so in the
 * callinfo that it returns to, returns into another fiber (fiber_switch in mruby-fiber; "return from context modifying method" in
 * vm.c). So a fiber can only be left by the last act of a method that bytecode has called, and never from inside a function in C
 * that has called bytecode.
 *
 * A generator that waits is left like any other fiber, and its `prev` stays: it goes on later as if nothing had been.
 */
#include "binding.h"

#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/version.h>
#include <string.h>

#if MRUBY_RELEASE_MAJOR == 3 && MRUBY_RELEASE_MINOR >= 3
#define RETURNS_ELSEWHERE(ci) ((ci)->u.target_class = NULL)
#elif MRUBY_RELEASE_MAJOR == 4
#define RETURNS_ELSEWHERE(ci) ((ci)->u.keep_context = NULL)
#else
#error "mruby-ringspun knows how mruby 3.3 and 4 switch fibers, and no other"
#endif

static struct mrb_context *context_of(mrb_value fiber) { return ((struct RFiber *)mrb_ptr(fiber))->cxt; }

/* --- the boundary --- */

/* CINFO_SKIP in vm.c: bytecode that C has called, by mrb_funcall or mrb_yield. */
enum { CALLED_BY_C = 1 };

/* The host's own call of a program is no boundary: whoever runs inside it, only the root can return from it. */
static bool is_call_of_host(const mrb_state *mrb, const struct mrb_context *context, const mrb_callinfo *ci) {
    return context == mrb->root_c && ci == context->cibase + 1 && ci->cci == CALLED_BY_C;
}

/* A frame that C has called (all that is not CINFO_NONE in vm.c). */
static const mrb_callinfo *frame_called_by_c(const mrb_state *mrb, const struct mrb_context *context) {
    for (const mrb_callinfo *ci = context->ci; ci > context->cibase; ci--) {
        if (RS_UNLIKELY(ci->cci > 0) && !is_call_of_host(mrb, context, ci)) return ci;
    }
    return NULL;
}

static const char *what_instead(const char *called) {
    static const struct { const char *called, *instead; } all[] = {
        {"to_s", "call it by name before"}, {"inspect", "call it by name before"}, {"to_a", "call it by name before"},
        {"==", "use find or any? with a block"}, {"eql?", "use find or any? with a block"}, {"<=>", "use sort_by"},
        {"hash", "use a key of another class"}, {"a Hash's block", "use fetch with a block"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].called, called) == 0) return all[i].instead;
    }
    return "wait before or after";
}

static bool is_block(const mrb_callinfo *ci) {
    return ci->proc && !MRB_PROC_CFUNC_P(ci->proc) && !MRB_PROC_SCOPE_P(ci->proc);
}

/* Below the frame that was called is the function's own, unless an instruction has called it. */
static mrb_noreturn void refuse(mrb_state *mrb, const mrb_callinfo *ci) {
    bool by_method = !ci[-1].proc || MRB_PROC_CFUNC_P(ci[-1].proc);
    const char *caller = by_method && ci[-1].mid ? mrb_sym_name(mrb, ci[-1].mid) : "mruby";
    const char *block = by_method ? "a block" : "a Hash's block"; /* whose frame has the name of the method around it */
    const char *called = is_block(ci) || !ci->mid ? block : mrb_sym_name(mrb, ci->mid);
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "cannot wait inside %s, called from C by %s: no fiber can leave a function in C; %s",
               called, caller, what_instead(called));
}

const struct mrb_context *rsm_first_context(mrb_state *mrb) {
    rsm_machine *machine = rsm_machine_of(mrb);
    const rs_strand *running = rs_running(&machine->engine);
    if (rs_is_root(&machine->engine, running)) return machine->root_context;
    return context_of(rsm_kept(running->user, RSM_KEPT_FIBER));
}

const void *rsm_outer_stack(const void *context) {
    const struct mrb_context *outer = ((const struct mrb_context *)context)->prev;
    return outer && outer->prev ? outer : NULL;
}

const void *rsm_stack(rs_machine *engine) {
    const struct mrb_context *context = ((rsm_machine *)engine->user)->mrb->c;
    return context->prev ? context : NULL;
}

void rsm_check_boundary(mrb_state *mrb) {
    for (const struct mrb_context *context = mrb->c;; context = context->prev) {
        const mrb_callinfo *called = frame_called_by_c(mrb, context);
        if (RS_UNLIKELY(called != NULL)) refuse(mrb, called);
        if (RS_UNLIKELY(context->vmexec)) {
            mrb_raise(mrb, rsm_class(mrb, "UsageError"), "cannot wait inside a fiber that a function in C has resumed");
        }
        if (context->prev) continue;
        if (RS_LIKELY(context == rsm_first_context(mrb))) return;
        mrb_raise(mrb, rsm_class(mrb, "UsageError"), "cannot wait in this fiber, to which Fiber#transfer has led: use Fiber#resume");
    }
}

/* --- switching --- */

/* To Fiber#resume and Fiber#transfer, who waits is a fiber that has resumed another: they refuse it. */
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
    struct mrb_context *context = context_of(fiber);
    context->cibase->n = 1;
    switch_to(mrb, context);
    return machine->self;
}

static mrb_value begin(mrb_state *mrb, rsm_machine *machine, rs_strand *engine) {
    rsm_strand *strand = engine->user;
    mrb_value block = strand->runs_proc ? rsm_first_run(mrb, machine, strand) : rsm_kept(strand, RSM_KEPT_FIBER);
    mrb_value fiber = rsm_workers_take(mrb, &machine->workers);
    bool is_new = mrb_nil_p(fiber);
    if (is_new) fiber = mrb_fiber_new(mrb, mrb_proc_ptr(worker_body(mrb)));
    strand->context = context_of(fiber);
    if (is_new) strand->context->stbase[1] = block; /* which nobody keeps alive any more */
    rsm_keep(mrb, machine, strand, RSM_KEPT_FIBER, fiber);
    rs_strand_began(engine);
    if (is_new) return begin_new(mrb, machine, fiber);
    switch_to(mrb, strand->context);
    return block;
}

static mrb_value go_on(mrb_state *mrb, rsm_machine *machine, rs_strand *next) {
    rsm_strand *strand = next->user;
    if (RS_UNLIKELY(!strand->context)) return begin(mrb, machine, next);
    switch_to(mrb, strand->context);
    int64_t result = 0;
    rs_wake_kind kind = rs_park_end(&machine->engine, &result);
    return strand->epilogue(mrb, machine, strand, kind, result);
}

static void idle(mrb_state *mrb, rsm_machine *machine, rs_decision decision) {
    rsm_workers_shrink(mrb, machine);
    if (decision.verdict == RS_SLEEP) rs_sleep(&machine->engine, decision.deadline_ns);
    else if (!rs_break_deadlock(&machine->engine)) rs_sleep(&machine->engine, RS_NEVER);
}

mrb_value rsm_next(mrb_state *mrb, rsm_machine *machine) {
    for (;;) {
        rs_decision decision = rs_next(&machine->engine);
        if (RS_LIKELY(decision.verdict == RS_RUN)) return go_on(mrb, machine, decision.strand);
        idle(mrb, machine, decision);
    }
}

mrb_value rsm_park(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rsm_epilogue epilogue) {
    strand->context = mrb->c;
    strand->epilogue = epilogue;
    if (RS_UNLIKELY(strand->has_batch)) rsm_hand_over(mrb, machine, strand);
    return rsm_next(mrb, machine);
}

mrb_value rsm_run_first(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_strand *first, rsm_epilogue epilogue) {
    strand->context = mrb->c;
    strand->epilogue = epilogue;
    return begin(mrb, machine, first);
}
