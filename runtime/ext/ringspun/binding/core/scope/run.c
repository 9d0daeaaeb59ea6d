/* run: the scopes of Ringspun.run, and to which of them a strand belongs. */
#include "inner.h"

rs_scope *rsb_run_here(rsb_machine *machine) {
    rs_scope *run = rs_scope_run_here(machine->engine);
    return run ? run : rsb_outermost_run(machine);
}

static bool is_nested(const rsb_machine *machine, const rs_scope *run) {
    return run != machine->outermost && run != &machine->outside;
}

VALUE rsb_supervisor_of_run(const rsb_machine *machine, const rs_scope *run) {
    if (RS_LIKELY(!is_nested(machine, run))) return Qnil;
    const rsb_scope *scope = (const rsb_scope *)run;
    return scope->nested ? scope->self : Qnil; /* not: of the outermost run of the parent process, where its root has forked */
}

bool rsb_is_run(VALUE scope) { return !NIL_P(scope) && rsb_scope_data(scope)->nested; }

VALUE rsb_run_on_error(VALUE scope) { return rsb_is_run(scope) ? rsb_scope_data(scope)->on_error : Qnil; }

/* The scope of the outermost Ringspun.run, whose `on_error:` is the machine's; nil: it is ending. */
static VALUE machine_adopt(VALUE self, VALUE scope_object) {
    rsb_machine *machine = rsb_machine_of(self);
    machine->outermost = NIL_P(scope_object) ? &machine->outside : &rsb_scope_data(scope_object)->engine;
    machine->root_error = Qnil;
    if (!NIL_P(scope_object)) rs_scope_make_run(machine->outermost);
    return Qnil;
}

/* The scope of a Ringspun.run inside another one. Without an `on_error:` of its own it has the one of the run around it. */
static VALUE scope_become_run(VALUE self, VALUE on_error) {
    rsb_machine *machine;
    rsb_scope *scope = rsb_scope_get_open(self, &machine);
    rs_scope *around = rsb_run_here(machine);
    if (NIL_P(on_error) && is_nested(machine, around)) on_error = ((rsb_scope *)around)->on_error;
    scope->on_error = on_error;
    scope->nested = true;
    rs_scope_make_run(&scope->engine);
    return Qnil;
}

void rsb_init_run(void) {
    rb_define_private_method(rsb_cMachine, "adopt", machine_adopt, 1);
    rb_define_private_method(rsb_cScope, "become_run", scope_become_run, 1);
}
