/* boundary: where a strand cannot wait: inside a function in C that has called bytecode, for no fiber can leave that (switch.c); and
 * in a fiber that is not the strand's.
 */
#include "core.h"

#include <mruby/error.h>
#include <string.h>

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
    rsm_strand *running = rsm_running(machine);
    if (running == &machine->root) return machine->root_context;
    return rsm_context_of(rsm_kept(running, RSM_KEPT_FIBER));
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
