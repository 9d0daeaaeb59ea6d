/* object: what locks and queues have in common. They are made once and never copied, and belong to the machine that uses them first. */
#include "sync.h"

#include <mruby/error.h>

bool rsm_bind(mrb_state *mrb, mrb_value self, rsm_machine **owner) {
    rsm_machine *machine = rsm_machine_of(mrb);
    if (RS_LIKELY(*owner == machine)) return false;
    if (*owner && (*owner)->open) {
        mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "this %C is used by another machine", mrb_obj_class(mrb, self));
    }
    rsm_force_variable(mrb, self, mrb_intern_lit(mrb, "machine"), machine->self);
    *owner = machine;
    return true;
}

void rsm_refuse_again(mrb_state *mrb, mrb_value self) {
    if (DATA_PTR(self)) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "it is made already; make a new one for another size");
}

static mrb_value refuse_copy(mrb_state *mrb, mrb_value self) {
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "a %C cannot be copied: strands wait in the original", mrb_obj_class(mrb, self));
}

int64_t rsm_wait_arguments(mrb_state *mrb, rsm_machine *machine, mrb_int required, mrb_int most, bool *non_block) {
    *non_block = false;
    if (RS_LIKELY(mrb->c->ci->n == required && mrb->c->ci->nk == 0)) return RS_NEVER;
    const mrb_value *arguments;
    mrb_int count;
    mrb_sym name = mrb_intern_lit(mrb, "timeout");
    mrb_value seconds;
    const mrb_kwargs options = {1, 0, &name, &seconds, NULL};
    mrb_get_args(mrb, "*:", &arguments, &count, &options);
    if (count < required || count > most) mrb_argnum_error(mrb, count, (int)required, (int)most);
    *non_block = count > required && mrb_test(arguments[required]);
    if (mrb_undef_p(seconds) || mrb_nil_p(seconds)) return RS_NEVER;
    if (*non_block) mrb_raise(mrb, E_ARGUMENT_ERROR, "either non_block or a timeout: without a wait there is none");
    return rsm_deadline(mrb, machine, seconds, "timeout");
}

struct RClass *rsm_define_data(mrb_state *mrb, struct RClass *module, const char *name, struct RClass *super) {
    struct RClass *class = mrb_define_class_under(mrb, module, name, super);
    MRB_SET_INSTANCE_TT(class, MRB_TT_DATA);
    mrb_define_method(mrb, class, "initialize_copy", refuse_copy, MRB_ARGS_REQ(1));
    return class;
}
