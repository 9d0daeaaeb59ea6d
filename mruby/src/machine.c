/* machine: Ringspun::Machine, one an mrb_state: how it is found, opened and closed. */
#include "binding.h"

#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef MRB_NO_FLOAT
#error "mruby-ringspun needs floats: times are seconds with a fraction"
#endif
#ifdef MRB_NO_BOXING
#error "mruby-ringspun keeps values in one word: build mruby with word boxing or NaN boxing"
#endif

/* The state that this thread has asked for last. A state may be closed on another thread, and a new one be at its address, so any
 * close makes all of these void. */
static _Atomic uint64_t closes;
static _Thread_local struct {
    mrb_state *mrb;
    rsm_machine *machine;
    uint64_t closes;
} last;

/* --- opening --- */

static void machine_free(mrb_state *mrb, void *data) { mrb_free(mrb, data); }
static const struct mrb_data_type machine_type = {"Ringspun::Machine", machine_free};

static void on_deadlock(rs_machine *engine, rs_strand *root) {
    rsm_machine *machine = engine->user;
    mrb_state *mrb = machine->mrb;
    machine->raises = mrb_exc_new_str(mrb, rsm_class(mrb, "DeadlockError"),
                                      mrb_str_new_lit(mrb, "all strands wait, and nothing will wake any of them"));
    mrb_gc_register(mrb, machine->raises);
    rs_interrupt(engine, root);
}

static const rs_driver driver = {.on_deadlock = on_deadlock};

static int open_with(rsm_machine *machine, const char *name) {
    rs_options options = rs_default_options();
    if (name && strcmp(name, "sim") == 0) return rs_machine_open(&machine->engine, &machine->rooms, &rs_backend_sim, &options);
    if (name && strcmp(name, "epoll") == 0) return rs_machine_open(&machine->engine, &machine->rooms, &rs_backend_epoll, &options);
    return rs_machine_open(&machine->engine, &machine->rooms, &rs_backend_uring, &options);
}

static void open_engine(mrb_state *mrb, rsm_machine *machine) {
    const char *name = getenv("RINGSPUN_BACKEND");
    int error = open_with(machine, name);
    if (error && !name) error = open_with(machine, "epoll");
    if (error) {
        mrb_raisef(mrb, rsm_class(mrb, "UnsupportedError"), "the machine cannot be opened: %s %s", strerror(-error),
                   machine->engine.refusal_text);
    }
    machine->root.id = machine->engine.root;
    rs_machine_drive(&machine->engine, &driver, machine, &machine->root);
    machine->spin_scope = &rs_running(&machine->engine)->own;
    machine->open = true;
}

/* --- finding --- */

static rsm_machine *get(mrb_state *mrb) {
    mrb_value module = mrb_obj_value(mrb_module_get(mrb, "Ringspun"));
    return mrb_data_get_ptr(mrb, mrb_iv_get(mrb, module, mrb_intern_lit(mrb, "machine")), &machine_type);
}

static rsm_machine *find(mrb_state *mrb) {
    rsm_machine *machine = get(mrb);
    if (machine->open) return machine;
    machine->worker_body = mrb_const_get(mrb, mrb_obj_value(mrb_module_get(mrb, "Ringspun")), mrb_intern_lit(mrb, "WORKER"));
    open_engine(mrb, machine);
    return machine;
}

rsm_machine *rsm_machine_of(mrb_state *mrb) {
    uint64_t now = atomic_load_explicit(&closes, memory_order_relaxed);
    if (RS_LIKELY(last.mrb == mrb && last.closes == now)) return last.machine;
    last.machine = find(mrb);
    last.mrb = mrb;
    last.closes = now;
    return last.machine;
}

/* --- methods --- */

static mrb_value module_machine(mrb_state *mrb, mrb_value self) { return rsm_machine_of(mrb)->self; }

static mrb_value machine_backend(mrb_state *mrb, mrb_value self) {
    return mrb_symbol_value(mrb_intern_cstr(mrb, rsm_machine_of(mrb)->engine.backend->name));
}

/* What strands of Machine#spin belong to; nil: to no scope but the root's own. */
static mrb_value machine_adopt(mrb_state *mrb, mrb_value self) {
    mrb_value scope;
    mrb_get_args(mrb, "o", &scope);
    rsm_machine *machine = rsm_machine_of(mrb);
    machine->spin_scope = mrb_nil_p(scope) ? &rs_root(&machine->engine)->own : &((rsm_scope *)DATA_PTR(scope))->engine;
    return scope;
}

/* --- the gem --- */

static mrb_value kept_array(mrb_state *mrb, mrb_value self, mrb_sym name) {
    mrb_value array = mrb_ary_new(mrb);
    mrb_iv_set(mrb, self, name, array);
    return array;
}

void mrb_mruby_ringspun_gem_init(mrb_state *mrb) {
    struct RClass *module = mrb_define_module(mrb, "Ringspun");
    struct RClass *class = mrb_define_class_under(mrb, module, "Machine", mrb->object_class);
    MRB_SET_INSTANCE_TT(class, MRB_TT_DATA);
    mrb_undef_class_method(mrb, class, "new");
    rsm_machine *machine = mrb_calloc(mrb, 1, sizeof(*machine));
    machine->mrb = mrb;
    machine->self = mrb_obj_value(mrb_data_object_alloc(mrb, class, machine, &machine_type));
    mrb_iv_set(mrb, mrb_obj_value(module), mrb_intern_lit(mrb, "machine"), machine->self);
    machine->kept = kept_array(mrb, machine->self, mrb_intern_lit(mrb, "kept"));
    machine->workers = kept_array(mrb, machine->self, mrb_intern_lit(mrb, "workers"));
    mrb_define_module_function(mrb, module, "machine", module_machine, MRB_ARGS_NONE());
    mrb_define_method(mrb, class, "backend", machine_backend, MRB_ARGS_NONE());
    mrb_define_method(mrb, class, "__adopt", machine_adopt, MRB_ARGS_REQ(1));
    rsm_init_errors(mrb, module);
    rsm_init_strand(mrb, module, class);
    rsm_init_scope(mrb, module, class);
    rsm_init_wait(mrb, module, class);
    rsm_init_io(mrb, module, class);
    machine->strand_class = rsm_class(mrb, "Strand");
    machine->cancelled_class = rsm_class(mrb, "Cancelled");
}

/* Strands that wait end with their fibers, which nobody runs any more. */
void mrb_mruby_ringspun_gem_final(mrb_state *mrb) {
    rsm_machine *machine = get(mrb);
    atomic_fetch_add(&closes, 1);
    if (!machine->open) return;
    rs_machine_leave(&machine->engine);
    rs_machine_close(&machine->engine);
    machine->open = false;
}
