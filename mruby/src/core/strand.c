/* strand: Ringspun::Strand, and how a strand begins, ends and is joined. */
#include "scope.h"

#include <mruby/error.h>

static const struct mrb_data_type strand_type = {"Ringspun::Strand", mrb_free};

static rsm_strand *get(mrb_state *mrb, mrb_value handle) { return mrb_data_get_ptr(mrb, handle, &strand_type); }

/* NULL: it has ended, or is another machine's. */
static rs_strand *find(const rsm_machine *machine, const rsm_strand *strand) {
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), strand->id);
    return engine && rs_strand_user(engine) == strand ? engine : NULL;
}

/* --- beginning --- */

void rsm_fail_strand_limit(mrb_state *mrb, const rsm_machine *machine) {
    bool full = rs_strands_live(rs_strands_of(machine->engine)) >= rs_options_of(machine->engine)->strands_max;
    if (!full) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    mrb_raise(mrb, rsm_class(mrb, "LimitError"), "no room for one more strand");
}

/* A strand that runs the block in that scope, NULL: in the run's; its handle. */
static mrb_value spin(mrb_state *mrb, rsm_machine *machine, rsm_scope *scope, mrb_value block) {
    rsm_reserve_kept(mrb, machine);
    rsm_strand *strand = mrb_calloc(mrb, 1, sizeof(*strand));
    struct RData *data = mrb_data_object_alloc(mrb, machine->strand_class, strand, &strand_type);
    mrb_value handle = mrb_obj_value(data);
    rs_strand *engine = rs_spawn(machine->engine, scope ? &scope->engine : rsm_run_scope(machine), strand);
    if (!engine) rsm_fail_strand_limit(mrb, machine);
    rsm_strand_named(machine, strand, rs_strand_id(engine));
    strand->scope = scope;
    if (scope) scope->children++;
    strand->raises = mrb_nil_value();
    rs_strand_awaits_turn(engine);
    rsm_keep(mrb, machine, strand, RSM_KEPT_FIBER, block);
    rsm_keep(mrb, machine, strand, RSM_KEPT_OBJECT, handle);
    return handle;
}

static mrb_value machine_spin(mrb_state *mrb, mrb_value self) {
    mrb_value block = rsm_block_arg(mrb, "spin");
    rsm_machine *machine = rsm_machine_of(mrb);
    return spin(mrb, machine, NULL, block);
}

static mrb_value scope_spin(mrb_state *mrb, mrb_value self) {
    mrb_value block = rsm_block_arg(mrb, "spin");
    return spin(mrb, rsm_machine_of(mrb), rsm_open_scope(mrb, self), block);
}

/* --- ending --- */

static rsm_outcome outcome_of(mrb_state *mrb, const rsm_machine *machine, mrb_value error) {
    if (mrb_nil_p(error)) return RSM_DONE;
    return mrb_obj_is_kind_of(mrb, error, machine->cancelled_class) ? RSM_CANCELLED : RSM_FAILED;
}

/* A worker without a strand keeps no block, no value and no error of the last one: nothing but itself. */
static void clear_stack(mrb_state *mrb) {
    mrb_value *end = mrb->c->ci->stack + mrb->c->ci->n + 1;
    for (mrb_value *slot = mrb->c->stbase + 1; slot < end; slot++) *slot = mrb_nil_value();
}

static void keep_outcome(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, mrb_value value, mrb_value error) {
    mrb_value handle = rsm_kept(strand, RSM_KEPT_OBJECT);
    strand->outcome = (uint8_t)outcome_of(mrb, machine, error);
    mrb_value result = strand->outcome == RSM_FAILED ? error : value;
    if (!mrb_nil_p(result)) rsm_force_variable(mrb, handle, machine->result_name, result);
}

static void forget_interrupts(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    while (mrb_array_p(strand->raises)) rsm_undeliver(mrb, machine, strand, mrb_ary_ref(mrb, strand->raises, 0));
}

/* The running strand has ended, with that value or that error. Its fiber waits for its next strand, whose block this returns. */
static mrb_value strand_ended(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    mrb_value value = arguments[0], error = arguments[1];
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_strand *strand = rsm_running(machine);
    if (RS_UNLIKELY(strand == &machine->root)) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "the root strand ends with its program");
    if (strand->has_work) rsm_the_work->ended(mrb, machine, strand, value, error);
    else keep_outcome(mrb, machine, strand, value, error);
    forget_interrupts(mrb, machine, strand);
    if (strand->has_batch) {
        mrb_value block = rsm_the_work->next(mrb, machine, strand);
        if (RS_LIKELY(!mrb_nil_p(block))) return block;
    }
    rsm_workers_put(mrb, &machine->workers, rsm_kept(strand, RSM_KEPT_FIBER));
    rsm_workers_shrink(mrb, &machine->workers);
    rsm_forget_kept(strand);
    rs_finish(machine->engine);
    if (strand->has_work) rsm_the_work->gone(machine, strand);
    else if (strand->scope) rsm_scope_child_ended(mrb, machine, strand->scope, strand, error);
    clear_stack(mrb);
    return rsm_next(mrb, machine);
}

/* --- joining --- */

/* The one joined is an argument of the waiting method, and lives as long as that call. */
static mrb_value outcome(mrb_state *mrb, rsm_machine *machine, const rsm_strand *strand, mrb_value handle) {
    mrb_value result = mrb_iv_get(mrb, handle, machine->result_name);
    if (strand->outcome == RSM_FAILED) rsm_raise_result(mrb, machine, result);
    if (strand->outcome == RSM_CANCELLED) {
        rsm_raise_result(mrb, machine, rsm_error(mrb, "TerminatedError", "the strand was terminated or cancelled before it had a value"));
    }
    return result;
}

static mrb_value after_join(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return outcome(mrb, machine, *RSM_MEMO(const rsm_strand *, strand), mrb->c->ci->stack[0]);
}

static mrb_value strand_await(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    const rsm_strand *strand = get(mrb, self);
    rsm_strand *me = rsm_running(machine);
    if (strand->outcome != RSM_LIVES) return outcome(mrb, machine, strand, self);
    if (strand == me) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "a strand cannot wait for its own end");
    rsm_check_boundary(mrb);
    rs_strand *engine = find(machine, strand), *running = rs_running(machine->engine);
    if (!engine) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "the strand belongs to another machine");
    if (rs_park_begin(machine->engine, RS_WAIT_JOIN, 0, RS_NEVER) == 0) rsm_raise_wake(mrb, machine, rs_refused(machine->engine));
    rs_list_append(machine->engine, rs_strand_joiners(engine), running, 0);
    *RSM_MEMO(const rsm_strand *, me) = strand;
    return rsm_park(mrb, machine, me, after_join);
}

/* Machine#__running: the handle of the running strand; of another kind than Strand in the root and in a run of a concurrent proc. */
static mrb_value machine_running(mrb_state *mrb, mrb_value self) {
    return rsm_kept(rsm_running(rsm_machine_of(mrb)), RSM_KEPT_OBJECT);
}

static mrb_value machine_terminate(mrb_state *mrb, mrb_value self) {
    mrb_value handle;
    mrb_get_args(mrb, "o", &handle);
    rsm_machine *machine = rsm_machine_of(mrb);
    if (RS_UNLIKELY(!mrb_obj_is_kind_of(mrb, handle, machine->strand_class))) {
        mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "terminate: expected a Strand, got %!v", handle);
    }
    rs_strand *engine = find(machine, get(mrb, handle));
    if (engine) rs_scope_cancel(machine->engine, rs_strand_own(engine), RS_CANCELLED_BY_CALL);
    return mrb_nil_value();
}

static mrb_value strand_done_p(mrb_state *mrb, mrb_value self) {
    return mrb_bool_value(get(mrb, self)->outcome != RSM_LIVES);
}

void rsm_init_strand(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    struct RClass *strand = mrb_define_class_under(mrb, module, "Strand", mrb->object_class);
    MRB_SET_INSTANCE_TT(strand, MRB_TT_DATA);
    mrb_undef_class_method(mrb, strand, "new");
    mrb_define_method(mrb, strand, "await", strand_await, MRB_ARGS_NONE());
    mrb_define_method(mrb, strand, "done?", strand_done_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, mrb_class_get_under(mrb, module, "Scope"), "spin", scope_spin, MRB_ARGS_BLOCK());
    mrb_define_method(mrb, machine, "spin", machine_spin, MRB_ARGS_BLOCK());
    mrb_define_method(mrb, machine, "terminate", machine_terminate, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, machine, "__running", machine_running, MRB_ARGS_NONE());
    mrb_define_method(mrb, machine, "__ended", strand_ended, MRB_ARGS_REQ(2));
}
