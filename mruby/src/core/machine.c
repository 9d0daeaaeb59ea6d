/* machine: Ringspun::Machine, one an mrb_state: how it is found, opened and closed. */
#include "core.h"

#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/string.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The state that this thread has asked for last, and its current machine. A state may be closed on another thread, and a new one
 * be at its address; so a change of any state's current machine makes all of these void. */
static _Atomic uint64_t changes;
static _Thread_local struct {
    mrb_state *mrb;
    rsm_machine *machine;
    uint64_t changes;
} last;

/* --- opening --- */

static void machine_free(mrb_state *mrb, void *data) {
    rsm_machine *machine = data;
    rsm_workers_close(&machine->workers);
    RSM_EACH_PART(free, mrb, machine);
    rs_machine_free(machine->engine);
    mrb_free(mrb, machine);
}

static const struct mrb_data_type machine_type = {"Ringspun::Machine", machine_free};

/* Names what the first few wait for. */
static void on_deadlock(rs_machine *engine, rs_strand *root) {
    rsm_machine *machine = rs_user_of(engine);
    mrb_state *mrb = machine->mrb;
    mrb_value text = mrb_str_new_lit(mrb, "all strands wait, and nothing will wake any of them:");
    int left = 10;
    RS_EACH_STRAND(rs_strands_of(engine), strand) {
        mrb_str_cat_cstr(mrb, text, strand == root ? " the root for " : " another for ");
        mrb_str_cat_cstr(mrb, text, rs_wait_name(rs_strand_wait(strand)));
        mrb_str_cat_cstr(mrb, text, ";");
        if (--left == 0) break;
    }
    rsm_deliver(mrb, machine, root, mrb_exc_new_str(mrb, rsm_class(mrb, "DeadlockError"), text), false);
}

/* Programs have stacks of their own inside a strand, in generators. */
static const void *outer_stack(const void *context) {
    const struct mrb_context *outer = ((const struct mrb_context *)context)->prev;
    return outer && outer->prev ? outer : NULL;
}

static const void *stack(rs_machine *engine) {
    const struct mrb_context *context = ((rsm_machine *)rs_user_of(engine))->mrb->c;
    return context->prev ? context : NULL;
}

static const rs_driver driver = {.on_deadlock = on_deadlock, .stack = stack, .outer_stack = outer_stack};

static void drive(rsm_machine *machine) {
    RSM_EACH_PART(opened, machine->mrb, machine);
    machine->root.raises = mrb_nil_value();
    rs_machine_drive(machine->engine, &driver, machine, &machine->root);
    rsm_strand_named(machine, &machine->root, rs_root_id(machine->engine));
    machine->thread = pthread_self();
    machine->open = true;
}

/* 0 or -errno. */
static int try_to_open(mrb_state *mrb, rsm_machine *machine, const rs_backend *backend, const rs_options *options) {
    int error = rs_machine_open(machine->engine, backend, options);
    if (error == RS_NO_MEMORY) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    return error;
}

void rsm_machine_open(mrb_state *mrb, rsm_machine *machine, const rs_backend *backend, const rs_options *options) {
    int error = try_to_open(mrb, machine, backend, options);
    if (error) {
        mrb_raisef(mrb, rsm_class(mrb, "UnsupportedError"), "a machine on %s cannot be opened: %s %s", rs_backend_name(backend),
                   strerror(-error), rs_refusal_text(machine->engine));
    }
    drive(machine);
}

static const rs_backend *const backends[] = {&rs_backend_uring, &rs_backend_epoll, &rs_backend_sim};

static const rs_backend *backend_of(mrb_state *mrb, const char *name) {
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        if (strcmp(name, rs_backend_name(backends[i])) == 0) return backends[i];
    }
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "RINGSPUN_BACKEND: expected uring, epoll or sim, got %s", name);
}

/* Without a wish: io_uring, or epoll where that is forbidden. */
static void open_engine(mrb_state *mrb, rsm_machine *machine) {
    const char *name = getenv("RINGSPUN_BACKEND");
    const rs_options options = rs_default_options();
    if (name) {
        rsm_machine_open(mrb, machine, backend_of(mrb, name), &options);
    } else if (try_to_open(mrb, machine, &rs_backend_uring, &options) == 0) {
        drive(machine);
    } else {
        rsm_machine_open(mrb, machine, &rs_backend_epoll, &options);
    }
}

/* --- finding --- */

#define CURRENT mrb_intern_lit(mrb, "machine")

static rsm_machine *current(mrb_state *mrb) {
    return mrb_data_get_ptr(mrb, mrb_iv_get(mrb, mrb_obj_value(mrb_module_get(mrb, "Ringspun")), CURRENT), &machine_type);
}

void rsm_machine_make_current(mrb_state *mrb, rsm_machine *machine) {
    mrb_iv_set(mrb, mrb_obj_value(mrb_module_get(mrb, "Ringspun")), CURRENT, machine->self);
    atomic_fetch_add(&changes, 1);
}

/* A ring answers the thread that has opened it, and no other; it may be closed by any. */
static bool answers_here(const rsm_machine *machine) {
    return rs_backend_of(machine->engine) != &rs_backend_uring || pthread_equal(machine->thread, pthread_self());
}

static void check_thread(mrb_state *mrb, const rsm_machine *machine) {
    if (answers_here(machine)) return;
    mrb_raise(mrb, rsm_class(mrb, "UsageError"), "this mrb_state's machine was opened on another thread, to which its io_uring belongs; "
              "RINGSPUN_BACKEND=epoll lets a state go from thread to thread");
}

static rsm_machine *find(mrb_state *mrb) {
    rsm_machine *machine = current(mrb);
    if (!machine->open) open_engine(mrb, machine);
    check_thread(mrb, machine);
    return machine;
}

rsm_machine *rsm_machine_of(mrb_state *mrb) {
    uint64_t now = atomic_load_explicit(&changes, memory_order_relaxed);
    if (RS_LIKELY(last.mrb == mrb && last.changes == now)) return last.machine;
    last.machine = find(mrb);
    last.mrb = mrb;
    last.changes = now;
    return last.machine;
}

static rsm_machine *outside(mrb_state *mrb, const rsm_machine *machine) {
    mrb_value outer = mrb_iv_get(mrb, machine->self, mrb_intern_lit(mrb, "outer"));
    return mrb_nil_p(outer) ? NULL : mrb_data_get_ptr(mrb, outer, &machine_type);
}

rsm_machine *rsm_machine_of_system(mrb_state *mrb) {
    rsm_machine *machine = current(mrb);
    while (machine && machine->open && rs_is_simulated(machine->engine)) machine = outside(mrb, machine);
    return machine && machine->open && answers_here(machine) ? machine : NULL;
}

/* --- making and closing --- */

rsm_machine *rsm_machine_new(mrb_state *mrb) {
    static _Atomic uint64_t made;
    rsm_machine *machine = mrb_calloc(mrb, 1, rsm_machine_bytes);
    machine->mrb = mrb;
    machine->engine = rs_machine_new();
    if (!machine->engine) {
        mrb_free(mrb, machine);
        mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    }
    machine->number = atomic_fetch_add(&made, 1);
    machine->root_context = mrb->root_c;
    machine->self = mrb_obj_value(mrb_data_object_alloc(mrb, rsm_class(mrb, "Machine"), machine, &machine_type));
    rsm_values_init(mrb, &machine->kept, machine->self, mrb_intern_lit(mrb, "kept"));
    rsm_values_add_page(mrb, &machine->kept);
    rsm_workers_init(mrb, &machine->workers, machine->self);
    machine->strand_class = rsm_class(mrb, "Strand");
    machine->cancelled_class = rsm_class(mrb, "Cancelled");
    machine->terminated_class = rsm_class(mrb, "TerminatedError");
    machine->result_name = mrb_intern_lit(mrb, "result");
    RSM_EACH_PART(made, mrb, machine);
    return machine;
}

/* Strands that wait end with their fibers, which nobody runs any more. */
void rsm_machine_close(rsm_machine *machine) {
    if (!machine->open) return;
    RSM_EACH_PART(ends, machine);
    rs_machine_leave(machine->engine);
    rs_machine_close(machine->engine);
    RSM_EACH_PART(closed, machine);
    machine->open = false;
}

/* The state may end in a simulation, with machines that stand still meanwhile. */
void rsm_close_machines(mrb_state *mrb) {
    atomic_fetch_add(&changes, 1);
    for (rsm_machine *machine = current(mrb); machine; machine = outside(mrb, machine)) rsm_machine_close(machine);
}

/* --- methods --- */

static mrb_value module_machine(mrb_state *mrb, mrb_value self) { return rsm_machine_of(mrb)->self; }

static mrb_value machine_backend(mrb_state *mrb, mrb_value self) {
    return mrb_symbol_value(mrb_intern_cstr(mrb, rs_backend_name(rs_backend_of(rsm_machine_of(mrb)->engine))));
}

static mrb_value machine_now(mrb_state *mrb, mrb_value self) {
    return mrb_float_value(mrb, (mrb_float)rs_now(rsm_machine_of(mrb)->engine) / 1e9);
}

typedef struct {
    mrb_state *mrb;
    mrb_value hash;
} metrics_of;

static void put_metric(void *context, const char *name, uint64_t value) {
    metrics_of *metrics = context;
    mrb_state *mrb = metrics->mrb;
    mrb_hash_set(mrb, metrics->hash, mrb_symbol_value(mrb_intern_cstr(mrb, name)), rsm_integer(mrb, value));
}

static mrb_value machine_metrics(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    metrics_of metrics = {mrb, mrb_hash_new(mrb)};
    rs_metrics_each(machine->engine, put_metric, &metrics);
    put_metric(&metrics, "idle_fibers", (uint64_t)rsm_workers_len(&machine->workers));
    return metrics.hash;
}

struct RClass *rsm_init_machine(mrb_state *mrb, struct RClass *module) {
    struct RClass *class = mrb_define_class_under(mrb, module, "Machine", mrb->object_class);
    MRB_SET_INSTANCE_TT(class, MRB_TT_DATA);
    mrb_undef_class_method(mrb, class, "new");
    mrb_define_module_function(mrb, module, "machine", module_machine, MRB_ARGS_NONE());
    mrb_define_method(mrb, class, "backend", machine_backend, MRB_ARGS_NONE());
    mrb_define_method(mrb, class, "now", machine_now, MRB_ARGS_NONE());
    mrb_define_method(mrb, class, "metrics", machine_metrics, MRB_ARGS_NONE());
    return class;
}
