/* gem: begins and ends the gem in a state. */
#include "core/core.h"
#include "io/io.h"
#include "procs/procs.h"
#include "sync/sync.h"

/* The rooms in their order: each knows only those before it. */
void mrb_mruby_ringspun_gem_init(mrb_state *mrb) {
    struct RClass *module = mrb_define_module(mrb, "Ringspun"), *machine = rsm_init_machine(mrb, module);
    rsm_init_errors(mrb, module);
    rsm_init_scope(mrb, module, machine);
    rsm_init_strand(mrb, module, machine);
    rsm_init_wait(mrb, module, machine);
    rsm_init_simulation(mrb, module);
    rsm_init_stream(mrb, module, machine);
    rsm_init_open(mrb, module, machine);
    rsm_init_bytes(mrb, module, machine);
    rsm_init_readiness(mrb, module, machine);
    rsm_init_socket(mrb, module, machine);
    rsm_init_objects(mrb, module, machine);
    rsm_init_sync(mrb, module);
    rsm_init_queue(mrb, module);
    rsm_init_evaluation(mrb, module, machine);
    rsm_init_start(mrb, module, machine);
    rsm_machine_make_current(mrb, rsm_machine_new(mrb));
}

void mrb_mruby_ringspun_gem_final(mrb_state *mrb) { rsm_close_machines(mrb); }
