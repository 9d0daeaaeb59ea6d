/* scope: Ringspun::Scope: strands that end before their block does, and deadlines. The steps of Machine#scope in mrblib. */
#include "scope.h"

#include <mruby/error.h>
#include <mruby/gc.h>

/* What it keeps for each machine. */
typedef struct {
    uint32_t scopes;            /* objects that point to the machine */
} scope_data;

static void outlive_all(rsm_machine *machine);
static rsm_part scope_part = {.data_size = sizeof(scope_data), .ends = outlive_all};

static scope_data *data_of(const rsm_machine *machine) { return rsm_part_data(machine, &scope_part); }

/* On the machine that is the current one. */
static bool is_open(mrb_state *mrb, const rsm_scope *scope) {
    return scope->machine == rsm_machine_of(mrb) && !scope->engine.closed;
}

static void forget_children(rsm_machine *machine, const rsm_scope *scope) {
    RS_EACH_STRAND(rs_strands_of(machine->engine), strand) {
        rsm_strand *child = rs_strand_user(strand);
        if (!child->has_work && child->scope == scope) child->scope = NULL;
    }
}

static void leave_machine(rsm_scope *scope) {
    rsm_machine *machine = scope->machine;
    data_of(machine)->scopes--;
    scope->machine = NULL;
}

/* It is still open where a generator was dropped in the middle of it. */
static void scope_free(mrb_state *mrb, void *data) {
    rsm_scope *scope = data;
    if (scope->machine) {
        if (scope->children > 0) forget_children(scope->machine, scope);
        rs_scope_close(scope->machine->engine, &scope->engine);
        leave_machine(scope);
    }
    mrb_free(mrb, scope);
}

static const struct mrb_data_type scope_type = {"Ringspun::Scope", scope_free};

static int outlive(mrb_state *mrb, struct RBasic *object, void *machine) {
    struct RData *data = (struct RData *)object;
    if (object->tt != MRB_TT_DATA || data->type != &scope_type) return MRB_EACH_OBJ_OK;
    rsm_scope *scope = data->data;
    if (scope->machine == machine) scope->machine = NULL;
    return MRB_EACH_OBJ_OK;
}

/* The machine ends before its heap: no scope belongs to it any more. */
static void outlive_all(rsm_machine *machine) {
    if (data_of(machine)->scopes > 0) mrb_objspace_each_objects(machine->mrb, outlive, machine);
}

static rsm_scope *get(mrb_state *mrb, mrb_value self) { return mrb_data_get_ptr(mrb, self, &scope_type); }

rsm_scope *rsm_open_scope(mrb_state *mrb, mrb_value self) {
    rsm_scope *scope = get(mrb, self);
    if (is_open(mrb, scope)) return scope;
    mrb_raise(mrb, rsm_class(mrb, "ClosedError"), "this scope has ended; strands and deadlines belong inside its block");
    return NULL;
}

static mrb_value machine_open_scope(mrb_state *mrb, mrb_value self) {
    mrb_value deadline;
    mrb_bool shield, is_limit;
    mrb_get_args(mrb, "obb", &deadline, &shield, &is_limit);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_check_boundary(mrb); /* for its end waits */
    int64_t deadline_ns = rsm_deadline(mrb, machine, deadline, is_limit ? "timeout" : "deadline");
    rsm_scope *scope = mrb_calloc(mrb, 1, sizeof(*scope));
    scope->object = mrb_data_object_alloc(mrb, rsm_class(mrb, "Scope"), scope, &scope_type);
    if (!rs_reserve_timer(machine->engine)) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    rs_scope_open(machine->engine, &scope->engine, deadline_ns, shield);
    scope->machine = machine;
    data_of(machine)->scopes++;
    mrb_value object = mrb_obj_value(scope->object);
    /* The engine knows the generator that it is in by its address, which no other may have for so long. */
    if (mrb->c->prev) mrb_iv_set(mrb, object, mrb_intern_lit(mrb, "generator"), mrb_obj_value(mrb->c->fib));
    return object;
}

/* The scope of a run: Machine#spin puts strands into it. */
static mrb_value scope_adopt(mrb_state *mrb, mrb_value self) {
    rs_scope_make_run(&get(mrb, self)->engine);
    return self;
}

static void take_error(mrb_state *mrb, rsm_scope *scope, mrb_value error) {
    mrb_value self = mrb_obj_value(scope->object);
    mrb_sym name = mrb_intern_lit(mrb, "first_error");
    if (mrb_nil_p(mrb_iv_get(mrb, self, name))) rsm_force_variable(mrb, self, name, error);
}

void rsm_scope_child_ended(mrb_state *mrb, rsm_machine *machine, rsm_scope *scope, const rsm_strand *child, mrb_value error) {
    scope->children--;
    if (child->outcome == RSM_CANCELLED) scope->cut_children = true;
    if (child->outcome != RSM_FAILED || !is_open(mrb, scope)) return;
    take_error(mrb, scope, error);
    rs_scope_cancel(machine->engine, &scope->engine, RS_CANCELLED_BY_CALL);
}

static mrb_value scope_cancel(mrb_state *mrb, mrb_value self) {
    rsm_scope *scope = get(mrb, self);
    if (is_open(mrb, scope)) rs_scope_cancel(rsm_machine_of(mrb)->engine, &scope->engine, RS_CANCELLED_BY_CALL);
    return mrb_nil_value();
}

static mrb_value after_children(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    return rsm_wake_error(mrb, machine, kind);
}

/* Waits until no child lives; shielded: whatever happens. Returns the error that has ended the wait before, or nil. */
static mrb_value scope_wait(mrb_state *mrb, mrb_value self) {
    mrb_bool shielded;
    mrb_get_args(mrb, "b", &shielded);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_scope *scope = get(mrb, self);
    if (!is_open(mrb, scope) || scope->engine.live == 0) return mrb_nil_value();
    rsm_check_boundary(mrb);
    rs_strand *running = rs_running(machine->engine);
    if (rs_park_begin(machine->engine, RS_WAIT_SCOPE, shielded ? RS_PARK_SHIELDED : 0, RS_NEVER) == 0) {
        return rsm_wake_error(mrb, machine, rs_refused(machine->engine));
    }
    rs_list_append(machine->engine, &scope->engine.waiters, running, 0);
    return rsm_park(mrb, machine, rs_strand_user(running), after_children);
}

/* The scope ends. True: what has cancelled it comes from above, and is the caller's to hear of. */
static mrb_value scope_close(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_scope *scope = get(mrb, self);
    if (!is_open(mrb, scope)) return mrb_false_value();
    bool answers = rs_scope_answers(&scope->engine);
    rs_scope_close(machine->engine, &scope->engine);
    if (scope->children == 0) leave_machine(scope);
    return mrb_bool_value(!answers);
}

static mrb_value scope_timed_out_p(mrb_state *mrb, mrb_value self) {
    return mrb_bool_value(get(mrb, self)->engine.cause == RS_CANCELLED_BY_DEADLINE);
}

static mrb_value scope_cut_children_p(mrb_state *mrb, mrb_value self) { return mrb_bool_value(get(mrb, self)->cut_children); }

static mrb_value scope_cancelled_p(mrb_state *mrb, mrb_value self) {
    rsm_scope *scope = get(mrb, self);
    return mrb_bool_value(scope->engine.effective || scope->engine.cause != RS_NOT_CANCELLED);
}

static mrb_value scope_first_error(mrb_state *mrb, mrb_value self) {
    return mrb_iv_get(mrb, self, mrb_intern_lit(mrb, "first_error"));
}

void rsm_init_scope(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    rsm_register_part(&scope_part);
    struct RClass *scope = mrb_define_class_under(mrb, module, "Scope", mrb->object_class);
    MRB_SET_INSTANCE_TT(scope, MRB_TT_DATA);
    mrb_undef_class_method(mrb, scope, "new");
    mrb_define_method(mrb, machine, "__open_scope", machine_open_scope, MRB_ARGS_REQ(3));
    mrb_define_method(mrb, scope, "cancel", scope_cancel, MRB_ARGS_NONE());
    mrb_define_method(mrb, scope, "cancelled?", scope_cancelled_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, scope, "__adopt", scope_adopt, MRB_ARGS_NONE());
    mrb_define_method(mrb, scope, "__wait", scope_wait, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, scope, "__close", scope_close, MRB_ARGS_NONE());
    mrb_define_method(mrb, scope, "__timed_out?", scope_timed_out_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, scope, "__cut_children?", scope_cut_children_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, scope, "__first_error", scope_first_error, MRB_ARGS_NONE());
}
