/* evaluation: Ringspun::Evaluation, the handle to a run of a concurrent proc: awaiting, concluding and resuming it.
 *
 * An evaluation is made when somebody asks for it. That of a call on the caller's own stack is then in a local variable of
 * ConcurrentProc#__call or #__call_with, where `current` finds it; that of any other run is the strand's.
 */
#include "procs.h"

#include <mruby/error.h>
#include <mruby/version.h>

/* A method of bytecode that calls a concurrent proc on its caller's own stack. */
typedef struct {
    struct RProc *method;
    int local;                  /* its local variable with the evaluation */
} rsm_call;

/* What it keeps for each machine. */
typedef struct {
    struct RClass *class;
    rsm_call plain_call, call_with_arguments;
    struct RProc *await_with_options;
    mrb_sym class_name, proc_name; /* to look one up takes longer than a wait */
} evaluation_data;

static void find_names(mrb_state *mrb, rsm_machine *machine);
static void find_methods(mrb_state *mrb, rsm_machine *machine);
static rsm_part evaluation_part = {.data_size = sizeof(evaluation_data), .made = find_names, .opened = find_methods};

static evaluation_data *data_of(const rsm_machine *machine) { return rsm_part_data(machine, &evaluation_part); }

/* What Ringspun::Evaluation points to. */
typedef struct {
    rs_evaluation engine;
    rs_id strand;               /* that runs it; RS_NO_ID: none, or none any more */
    uint64_t machine;           /* its number */
    bool cancelled;             /* by conclude_to */
} rsm_evaluation;

/* Its proc, its result and the error that ends it are variables of its object. */
#define CANCELS mrb_intern_lit(mrb, "cancels")

static void evaluation_free(mrb_state *mrb, void *data) {
    rs_evaluation_free(&((rsm_evaluation *)data)->engine);
    mrb_free(mrb, data);
}

static const struct mrb_data_type evaluation_type = {"Ringspun::Evaluation", evaluation_free};

static rsm_evaluation *get(mrb_state *mrb, mrb_value self) { return mrb_data_get_ptr(mrb, self, &evaluation_type); }

/* Strands of another machine stand still, and this one may have others by their ids. */
static rsm_evaluation *get_here(mrb_state *mrb, const rsm_machine *machine, mrb_value self) {
    rsm_evaluation *evaluation = get(mrb, self);
    if (RS_LIKELY(evaluation->machine == machine->number) || rs_is_concluded(&evaluation->engine)) return evaluation;
    mrb_raise(mrb, rsm_class(mrb, "UsageError"), "the evaluation belongs to another machine, which stands still");
    return NULL;
}

/* A proc that was allocated without `new`, or by an initialize without super, has none. */
static struct RClass *class_for(mrb_state *mrb, rsm_machine *machine, mrb_value proc) {
    mrb_value class = mrb_iv_get(mrb, proc, data_of(machine)->class_name);
    if (RS_UNLIKELY(!mrb_class_p(class))) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "initialize of a ConcurrentProc has not run");
    return mrb_class_ptr(class);
}

static mrb_value make(mrb_state *mrb, rsm_machine *machine, mrb_value proc, rs_evaluation_state state, rs_id strand) {
    const evaluation_data *data = data_of(machine);
    struct RClass *class = mrb_nil_p(proc) ? data->class : class_for(mrb, machine, proc);
    rsm_evaluation *evaluation = mrb_malloc(mrb, sizeof(*evaluation));
    *evaluation = (rsm_evaluation){.strand = strand, .machine = machine->number};
    rs_evaluation_init(&evaluation->engine, state);
    mrb_value self = mrb_obj_value(mrb_data_object_alloc(mrb, class, evaluation, &evaluation_type));
    if (!mrb_nil_p(proc)) mrb_iv_set(mrb, self, data->proc_name, proc);
    if (class != data->class) mrb_funcall_id(mrb, self, mrb_intern_lit(mrb, "initialize"), 0);
    return self;
}

/* --- the present one --- */

/* Where they are: behind `self`, their parameters and their block, for which mruby 4 has one more after keywords. */
#if MRUBY_RELEASE_MAJOR == 3
enum { LOCAL_OF_PLAIN = 2, LOCAL_BEHIND_ARGUMENTS = 4 };
#else
enum { LOCAL_OF_PLAIN = 2, LOCAL_BEHIND_ARGUMENTS = 5 };
#endif

static void find_names(mrb_state *mrb, rsm_machine *machine) {
    evaluation_data *data = data_of(machine);
    data->class = rsm_class(mrb, "Evaluation");
    data->class_name = mrb_intern_lit(mrb, "@evaluation_class");
    data->proc_name = mrb_intern_lit(mrb, "proc");
}

static void find_methods(mrb_state *mrb, rsm_machine *machine) {
    evaluation_data *data = data_of(machine);
    data->plain_call = (rsm_call){rsm_method_of(mrb, "ConcurrentProc", "__call"), LOCAL_OF_PLAIN};
    data->call_with_arguments = (rsm_call){rsm_method_of(mrb, "ConcurrentProc", "__call_with"), LOCAL_BEHIND_ARGUMENTS};
    data->await_with_options = rsm_method_of(mrb, "Evaluation", "__await_result");
}

/* Goes on in one of the two, in the same frame: with arguments it takes twice as long. */
static mrb_value proc_call(mrb_state *mrb, mrb_value self) {
    const evaluation_data *data = data_of(rsm_machine_of(mrb));
    bool plain = rsm_is_plain(mrb) && !mrb_block_given_p(mrb);
    return mrb_exec_irep(mrb, self, plain ? data->plain_call.method : data->call_with_arguments.method);
}

/* A simulation began there: below are calls of the machine before. */
static bool is_outside(const rsm_machine *machine, const struct mrb_context *context, const mrb_callinfo *call) {
    return context == machine->outer_context && call - context->cibase <= machine->outer_depth;
}

/* The innermost call on the stack, of those that the running strand is in: where it has its evaluation, or NULL. */
static mrb_value *innermost_call(const rsm_machine *machine, struct mrb_context **context, mrb_callinfo **call) {
    const evaluation_data *data = data_of(machine);
    const rsm_call *calls[] = {&data->plain_call, &data->call_with_arguments};
    for (*context = machine->mrb->c; *context; *context = (*context)->prev) {
        for (*call = (*context)->ci; *call >= (*context)->cibase; (*call)--) {
            if (RS_UNLIKELY(is_outside(machine, *context, *call))) return NULL;
            const struct RProc *proc = (*call)->proc;
            if (!proc || MRB_PROC_CFUNC_P(proc)) continue;
            for (int i = 0; i < 2; i++) {
                if (proc->body.irep == calls[i]->method->body.irep) return &(*call)->stack[calls[i]->local];
            }
        }
    }
    return NULL;
}

static mrb_value of_call(mrb_state *mrb, rsm_machine *machine, rs_id strand) {
    struct mrb_context *context;
    mrb_callinfo *call;
    mrb_value *evaluation = innermost_call(machine, &context, &call);
    if (!evaluation || !mrb_nil_p(*evaluation)) return evaluation ? *evaluation : mrb_undef_value();
    mrb_value self = make(mrb, machine, call->stack[0], RS_EVALUATION_RUNS, strand);
    *innermost_call(machine, &context, &call) = self; /* its initialize may have made the stacks grow */
    if (context->fib) mrb_write_barrier(mrb, (struct RBasic *)context->fib);
    return self;
}

mrb_value rsm_evaluation_of(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    mrb_value self = rsm_kept(strand, RSM_KEPT_EVALUATION);
    if (!mrb_nil_p(self)) return self;
    mrb_value proc = strand->has_work ? rsm_kept(strand, RSM_KEPT_OBJECT) : mrb_nil_value();
    self = make(mrb, machine, proc, strand->has_work ? RS_EVALUATION_RUNS : RS_EVALUATION_OF_STRAND, strand->id);
    rsm_keep(mrb, machine, strand, RSM_KEPT_EVALUATION, self);
    return self;
}

static mrb_value current(mrb_state *mrb, mrb_value class) {
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_strand *strand = rsm_running(machine);
    mrb_value self = of_call(mrb, machine, strand->id);
    return mrb_undef_p(self) ? rsm_evaluation_of(mrb, machine, strand) : self;
}

/* --- concluding --- */

static mrb_value result_of(mrb_state *mrb, const rsm_machine *machine, mrb_value self) {
    return mrb_iv_get(mrb, self, machine->result_name);
}

/* Whoever has concluded it waits no longer, nor is anything raised for it. */
static void left(mrb_state *mrb, rsm_machine *machine, mrb_value self) {
    rsm_evaluation *evaluation = get(mrb, self);
    mrb_value cancels = evaluation->cancelled ? mrb_iv_get(mrb, self, CANCELS) : mrb_nil_value();
    if (!mrb_nil_p(cancels)) rsm_undeliver(mrb, machine, rsm_running(machine), cancels);
    evaluation->strand = RS_NO_ID;
    rs_evaluation_unwound(machine->engine, &evaluation->engine);
}

mrb_value rsm_evaluation_ended(mrb_state *mrb, rsm_machine *machine, mrb_value self, mrb_value result) {
    rsm_evaluation *evaluation = get(mrb, self);
    if (!rs_is_concluded(&evaluation->engine)) {
        rsm_force_variable(mrb, self, machine->result_name, result);
        rs_evaluation_conclude(machine->engine, &evaluation->engine, 0);
    }
    left(mrb, machine, self);
    return result_of(mrb, machine, self);
}

bool rsm_is_concluded(mrb_state *mrb, mrb_value self) { return rs_is_concluded(&get(mrb, self)->engine); }

mrb_value rsm_raise_or_return(mrb_state *mrb, mrb_value result) {
    if (RS_UNLIKELY(mrb_exception_p(result))) rsm_raise_result(mrb, rsm_machine_of(mrb), result);
    return result;
}

static mrb_value after_unwound(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return rsm_raise_or_return(mrb, result_of(mrb, machine, mrb->c->ci->stack[1]));
}

/* Whoever has concluded a call goes on before its caller. */
static mrb_value let_others_go_on(mrb_state *mrb, rsm_machine *machine) {
    rsm_strand *me = rsm_running(machine);
    rsm_raise_wake(mrb, machine, rs_refusal(machine->engine, 0));
    rs_yield(machine->engine);
    return rsm_park(mrb, machine, me, after_unwound);
}

/* ConcurrentProc#__result(evaluation, result): a call has ended like that; nobody has asked for its evaluation if it is nil. */
static mrb_value proc_result(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    mrb_value evaluation = arguments[0], result = arguments[1];
    if (RS_LIKELY(mrb_nil_p(evaluation))) return rsm_raise_or_return(mrb, result);
    rsm_machine *machine = rsm_machine_of(mrb);
    bool unwinds = get(mrb, evaluation)->engine.unwinds;
    result = rsm_evaluation_ended(mrb, machine, evaluation, result);
    return unwinds ? let_others_go_on(mrb, machine) : rsm_raise_or_return(mrb, result);
}

/* Evaluation#__leave(result): the same without raising it. */
static mrb_value evaluation_leave(mrb_state *mrb, mrb_value self) {
    mrb_value result = mrb_get_arg1(mrb);
    return rsm_evaluation_ended(mrb, rsm_machine_of(mrb), self, result);
}

static mrb_value evaluation_concluded_p(mrb_state *mrb, mrb_value self) { return mrb_bool_value(rsm_is_concluded(mrb, self)); }

/* Evaluation#__concluded_by?(error): whether that is what conclude_to has sent. */
static mrb_value evaluation_concluded_by_p(mrb_state *mrb, mrb_value self) {
    mrb_value error = mrb_get_arg1(mrb);
    return mrb_bool_value(mrb_obj_eq(mrb, error, mrb_iv_get(mrb, self, CANCELS)));
}

static mrb_value after_unwinding(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return mrb_nil_value();
}

static void refuse_that_of_strand(mrb_state *mrb, const rsm_evaluation *evaluation, const char *why) {
    if (RS_LIKELY(evaluation->engine.state != RS_EVALUATION_OF_STRAND)) return;
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "this is the evaluation of a strand and of no concurrent proc: %s", why);
}

/* Evaluation#__conclude_to(result): of one that is not concluded. Returns when it has unwound. */
static mrb_value evaluation_conclude_to(mrb_state *mrb, mrb_value self) {
    mrb_value result = mrb_get_arg1(mrb);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_evaluation *evaluation = get_here(mrb, machine, self);
    refuse_that_of_strand(mrb, evaluation, "use Machine#terminate to end a strand");
    rs_strand *running = rs_running(machine->engine), *strand = rs_strand_find(rs_strands_of(machine->engine), evaluation->strand);
    bool unwinds = evaluation->engine.state == RS_EVALUATION_RUNS && strand && strand != running;
    if (unwinds) rsm_check_boundary(mrb);
    rsm_force_variable(mrb, self, machine->result_name, result);
    rs_evaluation_conclude_to(machine->engine, &evaluation->engine, 0, unwinds);
    if (!unwinds) return mrb_nil_value();
    mrb_value error = rsm_error(mrb, "Cancelled", "cancelled: its evaluation was concluded");
    rsm_force_variable(mrb, self, CANCELS, error);
    evaluation->cancelled = true;
    rsm_deliver(mrb, machine, strand, error, true);
    if (rs_park_begin(machine->engine, RS_WAIT_EVALUATION, 0, RS_NEVER) == 0) { /* no rs_await_begin: a resume may not end it */
        rsm_raise_wake(mrb, machine, rs_refused(machine->engine));
    }
    rs_list_append(machine->engine, &evaluation->engine.unwinders, running, 0);
    return rsm_park(mrb, machine, rs_strand_user(running), after_unwinding);
}

/* --- waiting --- */

/* The arguments of a wait with a limit are on the stack: `within`, and then what is returned when it has passed. */
static mrb_value when_passed(mrb_state *mrb) { return mrb->c->ci->stack[2]; }

static bool ended_by_resume(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind) {
    rs_await_outcome outcome = rs_await_end(machine->engine, kind);
    if (RS_UNLIKELY(outcome == RS_AWAIT_RAISES)) rsm_raise_wake(mrb, machine, kind);
    return outcome == RS_AWAIT_RESUMED;
}

static mrb_value after_await(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    if (ended_by_resume(mrb, machine, kind)) return rsm_take_resume_value(mrb, machine, strand);
    mrb_value self = mrb->c->ci->stack[0];
    return RS_LIKELY(rsm_is_concluded(mrb, self)) ? result_of(mrb, machine, self) : when_passed(mrb);
}

static mrb_value await(mrb_state *mrb, rsm_machine *machine, rs_list *list, mrb_value within, rsm_epilogue epilogue) {
    rsm_check_boundary(mrb);
    rsm_strand *me = rsm_running(machine);
    int64_t deadline_ns = rsm_deadline(mrb, machine, within, "within");
    if (rs_await_begin(machine->engine, list, deadline_ns) == 0) rsm_raise_wake(mrb, machine, rs_refused(machine->engine));
    return rsm_park(mrb, machine, me, epilogue);
}

/* Evaluation#__raise_or_return(result) */
static mrb_value evaluation_raise_or_return(mrb_state *mrb, mrb_value self) {
    return rsm_raise_or_return(mrb, mrb_get_arg1(mrb));
}

/* One that is concluded, or that the running strand may wait for. */
static rsm_evaluation *get_to_await(mrb_state *mrb, const rsm_machine *machine, mrb_value self) {
    rsm_evaluation *evaluation = get_here(mrb, machine, self);
    if (rs_is_concluded(&evaluation->engine)) return evaluation;
    refuse_that_of_strand(mrb, evaluation, "it has no result");
    if (evaluation->strand != rs_strand_id(rs_running(machine->engine))) return evaluation;
    mrb_raise(mrb, rsm_class(mrb, "UsageError"), "an evaluation cannot wait for its own result, nor for that of one that called it");
}

/* Evaluation#__await(within, passed): its result, the argument of resume!, or `passed`. */
static mrb_value evaluation_await(mrb_state *mrb, mrb_value self) {
    mrb_value within = mrb_get_argv(mrb)[0];
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_evaluation *evaluation = get_to_await(mrb, machine, self);
    if (rs_is_concluded(&evaluation->engine)) return result_of(mrb, machine, self);
    return await(mrb, machine, &evaluation->engine.waiters, within, after_await);
}

static mrb_value after_plain_await(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    if (ended_by_resume(mrb, machine, kind)) return rsm_raise_or_return(mrb, rsm_take_resume_value(mrb, machine, strand));
    return rsm_raise_or_return(mrb, result_of(mrb, machine, mrb->c->ci->stack[0]));
}

/* Evaluation#await_result. With a block or a limit it goes on in mrblib, in the same frame: arguments by name make a Hash for each
 * call. */
static mrb_value evaluation_await_result(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    bool plain = rsm_is_plain(mrb) && !mrb_block_given_p(mrb);
    if (!plain) return mrb_exec_irep(mrb, self, data_of(machine)->await_with_options);
    rsm_evaluation *evaluation = get_to_await(mrb, machine, self);
    if (rs_is_concluded(&evaluation->engine)) return rsm_raise_or_return(mrb, result_of(mrb, machine, self));
    return await(mrb, machine, &evaluation->engine.waiters, mrb_nil_value(), after_plain_await);
}

static mrb_value after_await_resume(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    return ended_by_resume(mrb, machine, kind) ? rsm_take_resume_value(mrb, machine, strand) : when_passed(mrb);
}

/* Machine#__await_resume(within, passed) */
static mrb_value machine_await_resume(mrb_state *mrb, mrb_value self) {
    mrb_value within = mrb_get_argv(mrb)[0];
    return await(mrb, rsm_machine_of(mrb), NULL, within, after_await_resume);
}

/* Its strand, also when it is concluded already and goes on. A call has that of its caller, which says nothing of it then. */
static rs_id strand_of(mrb_state *mrb, rsm_machine *machine, mrb_value self, const rsm_evaluation *evaluation) {
    rs_strand *strand = rs_strand_find(rs_strands_of(machine->engine), evaluation->strand);
    if (!strand) return RS_NO_ID;
    if (!rs_is_concluded(&evaluation->engine)) return evaluation->strand;
    return mrb_obj_eq(mrb, rsm_kept(rs_strand_user(strand), RSM_KEPT_EVALUATION), self) ? evaluation->strand : RS_NO_ID;
}

/* Evaluation#__resume(value): nil, or why not. */
static mrb_value evaluation_resume(mrb_state *mrb, mrb_value self) {
    mrb_value value = mrb_get_arg1(mrb);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_evaluation *evaluation = get_here(mrb, machine, self);
    rs_id id = strand_of(mrb, machine, self, evaluation);
    switch (rs_resume(machine->engine, id)) {
    case RS_NOT_WAITING: return mrb_str_new_lit(mrb, "not waiting");
    case RS_ENDED_ALREADY: return mrb_str_new_lit(mrb, "already scheduled");
    case RS_RESUMED: break;
    }
    rsm_keep(mrb, machine, rs_strand_user(rs_strand_find(rs_strands_of(machine->engine), id)), RSM_KEPT_VALUE, value);
    return mrb_nil_value();
}

static mrb_value evaluation_waiting_p(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_evaluation *evaluation = get_here(mrb, machine, self);
    return mrb_bool_value(rs_may_resume(machine->engine, strand_of(mrb, machine, self, evaluation)) == RS_RESUMED);
}

static mrb_value evaluation_proc(mrb_state *mrb, mrb_value self) { return mrb_iv_get(mrb, self, data_of(rsm_machine_of(mrb))->proc_name); }

/* --- runs that begin later --- */

mrb_value rsm_evaluation_to_start(mrb_state *mrb, rsm_machine *machine, mrb_value proc) {
    return make(mrb, machine, proc, RS_EVALUATION_STARTS, RS_NO_ID);
}

void rsm_evaluation_begin(mrb_state *mrb, mrb_value self, rs_id strand) {
    rsm_evaluation *evaluation = get(mrb, self);
    rs_evaluation_begin(&evaluation->engine);
    evaluation->strand = strand;
}

/* --- the first of several --- */

typedef struct {
    rs_selector selector;
    mrb_int count;
    rs_watch watches[];
} fastest;

static const struct mrb_data_type fastest_type = {"Ringspun wait for the fastest", mrb_free};

static mrb_value after_fastest(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    mrb_value all = mrb->c->ci->stack[1];
    fastest *wait = mrb_data_get_ptr(mrb, mrb_ary_ref(mrb, all, RARRAY_LEN(all) - 1), &fastest_type);
    const rs_watch *first = rs_selector_next(&wait->selector);
    mrb_int at = first ? first - wait->watches : -1;
    rs_selector_close(&wait->selector);
    if (ended_by_resume(mrb, machine, kind)) return rsm_take_resume_value(mrb, machine, strand);
    return at < 0 ? mrb->c->ci->stack[3] : mrb_ary_ref(mrb, all, at);
}

/* Machine#__await_fastest(evaluations, within, passed): none of them is concluded. Adds its own to the array. */
static mrb_value machine_await_fastest(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    mrb_value all = arguments[0], within = arguments[1];
    rsm_machine *machine = rsm_machine_of(mrb);
    mrb_int count = RARRAY_LEN(all);
    rsm_check_boundary(mrb);
    rsm_deadline(mrb, machine, within, "within"); /* raises, before there is anything to undo; so do these */
    for (mrb_int i = 0; i < count; i++) {
        refuse_that_of_strand(mrb, get_here(mrb, machine, mrb_ary_ref(mrb, all, i)), "it has no result");
    }
    fastest *wait = mrb_calloc(mrb, 1, sizeof(*wait) + (size_t)count * sizeof(rs_watch));
    mrb_ary_push(mrb, all, mrb_obj_value(mrb_data_object_alloc(mrb, mrb->object_class, wait, &fastest_type)));
    rs_selector_open(machine->engine, &wait->selector);
    for (mrb_int i = 0; i < count; i++) {
        rs_source *source = rs_evaluation_source(&get(mrb, mrb_ary_ref(mrb, all, i))->engine);
        if (!source) {
            rs_selector_close(&wait->selector);
            mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
        }
        rs_watch_open(&wait->selector, &wait->watches[i], source);
        rs_watch_idle(&wait->watches[i]);
    }
    rsm_strand *me = rsm_running(machine);
    if (rs_await_begin(machine->engine, &wait->selector.waiters, rsm_deadline(mrb, machine, within, "within")) == 0) {
        rs_selector_close(&wait->selector);
        rsm_raise_wake(mrb, machine, rs_refused(machine->engine));
    }
    return rsm_park(mrb, machine, me, after_fastest);
}

void rsm_init_evaluation(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    rsm_register_part(&evaluation_part);
    struct RClass *evaluation = mrb_define_class_under(mrb, module, "Evaluation", mrb->object_class);
    struct RClass *proc = mrb_define_class_under(mrb, module, "ConcurrentProc", mrb->object_class);
    MRB_SET_INSTANCE_TT(evaluation, MRB_TT_DATA);
    mrb_undef_class_method(mrb, evaluation, "new");
    mrb_define_class_method(mrb, evaluation, "current", current, MRB_ARGS_NONE());
    mrb_define_method(mrb, evaluation, "concluded?", evaluation_concluded_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, evaluation, "waiting?", evaluation_waiting_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, evaluation, "proc", evaluation_proc, MRB_ARGS_NONE());
    mrb_define_method(mrb, evaluation, "__leave", evaluation_leave, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, evaluation, "__concluded_by?", evaluation_concluded_by_p, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, evaluation, "__conclude_to", evaluation_conclude_to, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, evaluation, "__await", evaluation_await, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, evaluation, "await_result", evaluation_await_result, MRB_ARGS_ANY());
    mrb_define_method(mrb, evaluation, "__raise_or_return", evaluation_raise_or_return, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, evaluation, "__resume", evaluation_resume, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, proc, "call", proc_call, MRB_ARGS_ANY());
    mrb_define_alias(mrb, proc, "[]", "call");
    mrb_define_method(mrb, proc, "__result", proc_result, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, machine, "__await_resume", machine_await_resume, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, machine, "__await_fastest", machine_await_fastest, MRB_ARGS_REQ(3));
}
