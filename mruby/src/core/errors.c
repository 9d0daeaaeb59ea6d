/* errors: the classes of errors; and how a class or method of ours is found. */
#include "core.h"

#include <mruby/error.h>
#include <mruby/string.h>
#include <stdio.h>
#include <string.h>

struct RClass *rsm_class(mrb_state *mrb, const char *name) {
    return mrb_class_get_under(mrb, mrb_module_get(mrb, "Ringspun"), name);
}

struct RProc *rsm_method_of(mrb_state *mrb, const char *class_name, const char *name) {
    struct RClass *class = rsm_class(mrb, class_name);
    mrb_method_t method = mrb_method_search_vm(mrb, &class, mrb_intern_cstr(mrb, name));
    return (struct RProc *)MRB_METHOD_PROC(method);
}

mrb_value rsm_error(mrb_state *mrb, const char *class, const char *message) {
    return mrb_exc_new_str(mrb, rsm_class(mrb, class), mrb_str_new_static(mrb, message, strlen(message)));
}

static mrb_value error_errno(mrb_state *mrb, mrb_value self) { return mrb_iv_get(mrb, self, mrb_intern_lit(mrb, "errno")); }

/* The class of that name that a gem of mruby's brings, or one of ours. */
static void adopt_error(mrb_state *mrb, struct RClass *module, struct RClass *error, const char *name) {
    if (mrb_class_defined(mrb, name)) {
        mrb_define_const(mrb, module, name, mrb_obj_value(mrb_class_get(mrb, name)));
        return;
    }
    struct RClass *ours = mrb_define_class_under(mrb, module, name, error);
    mrb_define_method(mrb, ours, "errno", error_errno, MRB_ARGS_NONE());
}

static mrb_value module_warn(mrb_state *mrb, mrb_value self) {
    mrb_value text = mrb_get_arg1(mrb);
    fprintf(stderr, "ringspun: %.*s\n", (int)RSTRING_LEN(text), RSTRING_PTR(text));
    return mrb_nil_value();
}

void rsm_init_errors(mrb_state *mrb, struct RClass *module) {
    struct RClass *error = mrb_define_class_under(mrb, module, "Error", mrb->eStandardError_class);
    static const char *const names[] = {"UsageError", "TimeoutError", "ClosedError", "DeadlockError", "LimitError",
                                        "TerminatedError", "UnsupportedError", "EndOfStreamError"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) mrb_define_class_under(mrb, module, names[i], error);
    mrb_define_module_function(mrb, module, "__warn", module_warn, MRB_ARGS_REQ(1));
    adopt_error(mrb, module, error, "SystemCallError");
    adopt_error(mrb, module, error, "SocketError");
    mrb_define_class_under(mrb, module, "Cancelled", mrb->eException_class);
}
