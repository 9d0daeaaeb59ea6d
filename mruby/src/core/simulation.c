/* simulation: machines on the simulated kernel, for Ringspun::Simulation in mrblib. Such a machine is the state's current one until
 * it ends; the strands of the one before stand still meanwhile. */
#include "core.h"

#include <mruby/hash.h>
#include <mruby/string.h>

static rsm_machine *get(mrb_state *mrb, mrb_value self) { return DATA_PTR(self); }

static mrb_value fault_names(mrb_state *mrb) {
    mrb_value names = mrb_ary_new(mrb);
    const char *name;
    for (size_t i = 0; (name = rs_sim_fault_name(i)); i++) mrb_ary_push(mrb, names, mrb_symbol_value(mrb_intern_cstr(mrb, name)));
    return names;
}

/* `given` has thousandths for each name. */
static rs_sim_faults faults_of(mrb_state *mrb, mrb_value given) {
    if (mrb_nil_p(given)) return rs_sim_faults_default();
    rs_sim_faults faults = rs_sim_faults_none();
    faults.delay_max_ns = 1000000;
    const char *name;
    for (size_t i = 0; (name = rs_sim_fault_name(i)); i++) {
        mrb_value per_mille = mrb_hash_get(mrb, given, mrb_symbol_value(mrb_intern_cstr(mrb, name)));
        if (mrb_fixnum_p(per_mille)) rs_sim_set_fault(&faults, name, (uint16_t)mrb_fixnum(per_mille));
    }
    return faults;
}

static mrb_value simulation_open(mrb_state *mrb, mrb_value self) {
    mrb_int seed;
    mrb_value given;
    mrb_get_args(mrb, "io", &seed, &given);
    rsm_machine *outer = rsm_machine_of(mrb), *machine = rsm_machine_new(mrb);
    rs_sim_faults faults = faults_of(mrb, given);
    rs_options options = rs_default_options();
    options.seed = (uint64_t)seed;
    options.trace = true;
    options.faults = &faults;
    machine->root_context = rsm_first_context(mrb);
    machine->outer_context = mrb->c;
    machine->outer_depth = mrb->c->ci - mrb->c->cibase;
    rsm_machine_open(mrb, machine, &rs_backend_sim, &options);
    mrb_iv_set(mrb, machine->self, mrb_intern_lit(mrb, "outer"), outer->self);
    rsm_machine_make_current(mrb, machine);
    return machine->self;
}

/* What is known of the run: [seconds, hash of the trace, open descriptors]. */
static mrb_value simulation_close(mrb_state *mrb, mrb_value self) {
    mrb_value object = mrb_get_arg1(mrb);
    rsm_machine *machine = get(mrb, object);
    rs_machine *engine = machine->engine;
    mrb_value known[] = {mrb_float_value(mrb, (mrb_float)rs_now(engine) / 1e9),
                         mrb_int_value(mrb, (mrb_int)(rs_trace_hash(engine) & MRB_INT_MAX)),
                         rsm_integer(mrb, rs_sim_open_descriptors(engine))};
    rsm_machine_close(machine);
    rsm_machine_make_current(mrb, get(mrb, mrb_iv_get(mrb, object, mrb_intern_lit(mrb, "outer"))));
    return mrb_ary_new_from_values(mrb, 3, known);
}

void rsm_init_simulation(mrb_state *mrb, struct RClass *module) {
    struct RClass *simulation = mrb_define_class_under(mrb, module, "Simulation", mrb->object_class);
    mrb_define_const(mrb, simulation, "FAULTS", fault_names(mrb));
    mrb_define_class_method(mrb, simulation, "__open", simulation_open, MRB_ARGS_REQ(2));
    mrb_define_class_method(mrb, simulation, "__close", simulation_close, MRB_ARGS_REQ(1));
}
