/* errors: the classes of errors, and what ends a wait without a value. */
#include "binding.h"

#include <mruby/error.h>
#include <mruby/string.h>
#include <string.h>

struct RClass *rsm_class(mrb_state *mrb, const char *name) {
    return mrb_class_get_under(mrb, mrb_module_get(mrb, "Ringspun"), name);
}

static mrb_value new_error(mrb_state *mrb, const char *class, const char *message) {
    return mrb_exc_new_str(mrb, rsm_class(mrb, class), mrb_str_new_static(mrb, message, strlen(message)));
}

static mrb_value take_interrupt(mrb_state *mrb, rsm_machine *machine) {
    mrb_value error = machine->raises;
    rs_take_interrupt(rs_running(&machine->engine));
    mrb_gc_protect(mrb, error);
    mrb_gc_unregister(mrb, error);
    machine->raises = mrb_nil_value();
    return error;
}

mrb_value rsm_wake_error(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind) {
    switch (kind) {
    case RS_WAKE_VALUE: return mrb_nil_value();
    case RS_WAKE_TIMEOUT: return new_error(mrb, "TimeoutError", "timed out");
    case RS_WAKE_CANCEL: return new_error(mrb, "Cancelled", "cancelled: its scope was cancelled or its deadline passed");
    case RS_WAKE_INTERRUPT: return take_interrupt(mrb, machine);
    case RS_WAKE_NO_MEMORY: break;
    }
    return mrb_obj_value(mrb->nomem_err);
}

void rsm_raise_wake(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind) {
    if (RS_UNLIKELY(kind != RS_WAKE_VALUE)) mrb_exc_raise(mrb, rsm_wake_error(mrb, machine, kind));
}

void rsm_raise_errno(mrb_state *mrb, int64_t result, const char *what) {
    mrb_raisef(mrb, rsm_class(mrb, "SystemCallError"), "%s: %s", what, strerror((int)-result));
}

void rsm_init_errors(mrb_state *mrb, struct RClass *module) {
    struct RClass *error = mrb_define_class_under(mrb, module, "Error", mrb->eStandardError_class);
    static const char *const names[] = {"UsageError", "TimeoutError", "ClosedError", "DeadlockError", "LimitError",
                                        "TerminatedError", "UnsupportedError", "SystemCallError"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) mrb_define_class_under(mrb, module, names[i], error);
    mrb_define_class_under(mrb, module, "Cancelled", mrb->eException_class);
}
