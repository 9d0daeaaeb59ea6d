/* start: how runs of concurrent procs begin and end, beside calls on the caller's own stack (ConcurrentProc#call in mrblib).
 *
 * Runs that begin later are in batches of the engine's (procs/batch.h). What a start needs is in an Array of the strand that has the
 * batch, for the collector sees no memory of ours: so a start is its place in the batch, and no more.
 */
#include "procs.h"

#include <mruby/error.h>
#include <mruby/hash.h>

/* What it keeps for each machine. */
typedef struct {
    rsm_strand *spare;          /* memory for runs, linked by their memos */
    mrb_sym block_name;
} start_data;

static void find_names(mrb_state *mrb, rsm_machine *machine);
static void spare_those_that_run(rsm_machine *machine);
static void free_spare(mrb_state *mrb, rsm_machine *machine);
static rsm_part start_part = {.data_size = sizeof(start_data), .made = find_names, .ends = spare_those_that_run,
                              .free = free_spare};

static start_data *data_of(const rsm_machine *machine) { return rsm_part_data(machine, &start_part); }

static void find_names(mrb_state *mrb, rsm_machine *machine) { data_of(machine)->block_name = mrb_intern_lit(mrb, "@block"); }

/* Of a strand that has ended. */
static rsm_strand **next_spare(rsm_strand *strand) { return RSM_MEMO(rsm_strand *, strand); }

static rsm_strand *new_strand(mrb_state *mrb, rsm_machine *machine) {
    start_data *data = data_of(machine);
    rsm_strand *strand = data->spare;
    if (RS_LIKELY(strand != NULL)) data->spare = *next_spare(strand);
    else strand = mrb_malloc(mrb, sizeof(*strand));
    *strand = (rsm_strand){.raises = mrb_nil_value(), .has_work = true};
    return strand;
}

/* Its memory is for the next, and goes with the machine. */
static void spare(rsm_machine *machine, rsm_strand *strand) {
    start_data *data = data_of(machine);
    *next_spare(strand) = data->spare;
    data->spare = strand;
}

/* What keeps their memory otherwise is their end. */
static void spare_those_that_run(rsm_machine *machine) {
    RS_EACH_STRAND(rs_strands_of(machine->engine), engine) {
        rsm_strand *strand = rs_strand_user(engine);
        if (strand->has_work) spare(machine, strand);
    }
}

static void free_spare(mrb_state *mrb, rsm_machine *machine) {
    start_data *data = data_of(machine);
    for (rsm_strand *strand; (strand = data->spare) != NULL;) {
        data->spare = *next_spare(strand);
        mrb_free(mrb, strand);
    }
}

static mrb_noreturn void no_room(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    spare(machine, strand);
    rsm_fail_strand_limit(mrb, machine);
}

/* --- beginning --- */

/* A Start of mrblib, which hands over what the running method was given. */
static mrb_value start_with(mrb_state *mrb, rsm_machine *machine, mrb_value block, const mrb_value *arguments, mrb_int count,
                            mrb_value options, mrb_value given) {
    if (count == 0 && mrb_hash_empty_p(mrb, options) && mrb_nil_p(given)) return block;
    struct RClass *class = mrb_class_get_under(mrb, rsm_class(mrb, "ConcurrentProc"), "Start");
    mrb_value start = mrb_obj_value(mrb_obj_alloc(mrb, MRB_TT_OBJECT, class));
    mrb_iv_set(mrb, start, data_of(machine)->block_name, block);
    mrb_iv_set(mrb, start, mrb_intern_lit(mrb, "@arguments"), mrb_ary_new_from_values(mrb, count, arguments));
    mrb_iv_set(mrb, start, mrb_intern_lit(mrb, "@options"), options);
    mrb_iv_set(mrb, start, mrb_intern_lit(mrb, "@given"), given);
    return start;
}

/* What the run calls: the proc's block, or with arguments a Start. */
static mrb_value block_of(mrb_state *mrb, rsm_machine *machine, mrb_value self) {
    mrb_value block = mrb_iv_get(mrb, self, data_of(machine)->block_name);
    if (RS_LIKELY(rsm_is_plain(mrb) && !mrb_block_given_p(mrb))) return block;
    const mrb_value *arguments;
    mrb_int count;
    mrb_value given, options;
    mrb_get_args(mrb, "*:&", &arguments, &count, &(mrb_kwargs){.rest = &options}, &given);
    return start_with(mrb, machine, block, arguments, count, options, given);
}

enum { START_PROC, START_BLOCK, START_EVALUATION, START_VALUES };

/* Of one batch, for their values are in one Array of mruby's, which holds 131,072. */
#define STARTS_MAX 32768u

static rsm_strand *new_batch(mrb_state *mrb, rsm_machine *machine, rs_scope *scope) {
    if (!rs_batch_reserve(machine->engine, 1)) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    rsm_reserve_kept(mrb, machine);
    mrb_value starts = mrb_ary_new(mrb);
    rsm_strand *strand = new_strand(mrb, machine);
    rs_strand *engine = rs_batch_spawn(machine->engine, scope, strand);
    if (!engine) no_room(mrb, machine, strand);
    rsm_strand_named(machine, strand, rs_strand_id(engine));
    strand->has_batch = true;
    rsm_keep(mrb, machine, strand, RSM_KEPT_STARTS, starts);
    return strand;
}

static rs_strand *engine_of(rsm_machine *machine, const rsm_strand *strand) {
    return rs_strand_find(rs_strands_of(machine->engine), strand->id);
}

static void start(mrb_state *mrb, rsm_machine *machine, mrb_value self, mrb_value block, mrb_value evaluation) {
    mrb_value values[START_VALUES] = {[START_PROC] = self, [START_BLOCK] = block, [START_EVALUATION] = evaluation};
    rs_scope *scope = rsm_run_scope(machine);
    rs_batch *batch = rs_batch_open(machine->engine, scope);
    if (RS_UNLIKELY(batch && batch->len == STARTS_MAX)) batch = NULL;
    rs_strand *begins = batch ? rs_strand_find(rs_strands_of(machine->engine), batch->strand) : NULL;
    rsm_strand *strand = batch ? rs_strand_user(begins) : new_batch(mrb, machine, scope);
    mrb_value starts = rsm_kept(strand, RSM_KEPT_STARTS);
    for (int i = 0; i < START_VALUES; i++) mrb_ary_push(mrb, starts, values[i]);
    if (!batch) batch = rs_strand_batch(engine_of(machine, strand));
    if (!rs_batch_add(batch)) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
}

/* Begins a run after the strands that are ready have had their turn, and returns its evaluation. */
static mrb_value proc_call_detached(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    mrb_value evaluation = rsm_evaluation_to_start(mrb, machine, self);
    start(mrb, machine, self, block_of(mrb, machine, self), evaluation);
    return evaluation;
}

/* The same without an evaluation: errors reach the error handlers alone. */
static mrb_value proc_call_and_forget(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    start(mrb, machine, self, block_of(mrb, machine, self), mrb_nil_value());
    return mrb_nil_value();
}

/* Runs the block with the arguments in a strand of its own, after those that are ready; returns the Evaluation at once. In C, for in
 * Ruby a method that hands its arguments on makes an Array and a Hash for each call. */
static mrb_value kernel_concurrently(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    const mrb_value *arguments = NULL;
    mrb_int count = 0;
    mrb_value block, options = mrb_nil_value();
    if (rsm_is_plain(mrb)) mrb_get_args(mrb, "&", &block);
    else mrb_get_args(mrb, "*:&", &arguments, &count, &(mrb_kwargs){.rest = &options}, &block);
    mrb_value class = mrb_obj_value(rsm_class(mrb, "ConcurrentProc"));
    mrb_value proc = mrb_funcall_with_block(mrb, class, mrb_intern_lit(mrb, "new"), 0, NULL, block);
    mrb_value evaluation = rsm_evaluation_to_start(mrb, machine, proc);
    if (!mrb_nil_p(options)) block = start_with(mrb, machine, block, arguments, count, options, mrb_nil_value());
    start(mrb, machine, proc, block, evaluation);
    return evaluation;
}

/* The memo of a strand that waits for its callee's first wait or end. */
typedef struct {
    rsm_strand *callee;         /* NULL: it has ended */
    rs_turn turn;               /* the strand's own, meanwhile */
} call_memo;

_Static_assert(sizeof(call_memo) <= RSM_MEMO_SIZE, "it fits into a strand");

static mrb_value after_first_wait(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    const call_memo *memo = RSM_MEMO(call_memo, strand);
    rs_turn_go_on(machine->engine, &memo->turn);
    rsm_strand *callee = memo->callee;
    if (callee) callee->caller = NULL;
    rsm_raise_wake(mrb, machine, kind);
    if (callee) return rsm_evaluation_of(mrb, machine, callee);
    return rsm_raise_or_return(mrb, rsm_take_resume_value(mrb, machine, strand));
}

/* Runs the proc now; returns its result, or its evaluation as soon as it waits. */
static mrb_value proc_call_nonblock(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    mrb_value block = block_of(mrb, machine, self);
    rsm_check_boundary(mrb);
    rsm_raise_wake(mrb, machine, rs_refusal(machine->engine, 0));
    rsm_reserve_kept(mrb, machine);
    rsm_strand *me = rsm_running(machine), *strand = new_strand(mrb, machine);
    rs_strand *engine = rs_spawn_first(machine->engine, rsm_run_scope(machine), strand);
    if (!engine) no_room(mrb, machine, strand);
    rsm_strand_named(machine, strand, rs_strand_id(engine));
    rs_strand_awaits_turn(engine);
    rsm_keep(mrb, machine, strand, RSM_KEPT_OBJECT, self);
    rsm_keep(mrb, machine, strand, RSM_KEPT_FIBER, block);
    strand->caller = me;
    *RSM_MEMO(call_memo, me) = (call_memo){.callee = strand, .turn = rs_turn_pause(machine->engine)};
    return rsm_run_first(mrb, machine, me, engine, after_first_wait);
}

/* --- running --- */

static mrb_value nothing(mrb_state *mrb) {
    return mrb_const_get(mrb, mrb_obj_value(rsm_class(mrb, "ConcurrentProc")), mrb_intern_lit(mrb, "NOTHING"));
}

/* The strand runs that start from now on. Its block, unless it shall not begin. */
static mrb_value begin_start(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, const mrb_value *values) {
    mrb_value evaluation = values[START_EVALUATION], block = values[START_BLOCK];
    rsm_keep(mrb, machine, strand, RSM_KEPT_OBJECT, values[START_PROC]);
    rsm_keep(mrb, machine, strand, RSM_KEPT_EVALUATION, evaluation);
    strand->never_ran = rs_refusal(machine->engine, 0) != RS_WAKE_VALUE;
    if (!mrb_nil_p(evaluation)) rsm_evaluation_begin(mrb, evaluation, strand->id);
    return strand->never_ran ? nothing(mrb) : block;
}

/* Those that were concluded before they began are passed over. */
static mrb_value next_of_batch(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    rs_strand *engine = engine_of(machine, strand);
    while (rs_batch_next(machine->engine, engine)) {
        mrb_value starts = rsm_kept(strand, RSM_KEPT_STARTS);
        const mrb_value *values = RARRAY_PTR(starts) + START_VALUES * (rs_strand_batch(engine)->at - 1);
        mrb_value evaluation = values[START_EVALUATION];
        if (mrb_nil_p(evaluation) || !rsm_is_concluded(mrb, evaluation)) return begin_start(mrb, machine, strand, values);
    }
    strand->has_batch = false;
    return mrb_nil_value();
}

static mrb_value first_run(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    if (!strand->has_batch) return rsm_kept(strand, RSM_KEPT_FIBER);
    mrb_value block = next_of_batch(mrb, machine, strand);
    return mrb_nil_p(block) ? nothing(mrb) : block;
}

typedef rs_strand *hand_over_function(rs_machine *machine, rs_strand *strand, void *user);

static void hand_over(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, hand_over_function *to) {
    rs_strand *engine = engine_of(machine, strand);
    rsm_reserve_kept(mrb, machine);
    rsm_strand *other = new_strand(mrb, machine);
    rs_strand *taker = to(machine->engine, engine, other);
    if (taker) {
        rsm_strand_named(machine, other, rs_strand_id(taker));
        other->has_batch = true;
        rsm_keep(mrb, machine, other, RSM_KEPT_STARTS, rsm_kept(strand, RSM_KEPT_STARTS));
    } else {
        spare(machine, other);
    }
    if (rs_strand_batch(engine)) return;
    strand->has_batch = false;
    rsm_keep(mrb, machine, strand, RSM_KEPT_STARTS, mrb_nil_value());
}

static void hand_over_rest(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    hand_over(mrb, machine, strand, rs_batch_hand_over);
}

/* A run that has computed for long ends the turn: strands whose timers are due go before the next run. */
static mrb_value next_run(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    if (rs_batch_turn_is_over(machine->engine, engine_of(machine, strand))) {
        hand_over(mrb, machine, strand, rs_batch_hand_over_in_place);
        if (!strand->has_batch) return mrb_nil_value();
    }
    return next_of_batch(mrb, machine, strand);
}

static void run_ended(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, mrb_value value, mrb_value error) {
    mrb_value result = mrb_nil_p(error) ? value : error, evaluation = rsm_kept(strand, RSM_KEPT_EVALUATION);
    if (strand->never_ran) result = rsm_error(mrb, "TerminatedError", "the evaluation was cancelled before it had a result");
    if (!mrb_nil_p(evaluation)) result = rsm_evaluation_ended(mrb, machine, evaluation, result);
    if (!strand->caller) return;
    rsm_keep(mrb, machine, strand->caller, RSM_KEPT_VALUE, result);
    RSM_MEMO(call_memo, strand->caller)->callee = NULL;
}

static const rsm_work runs = {.first = first_run, .next = next_run, .hand_over = hand_over_rest, .ended = run_ended, .gone = spare};

/* Machine#__proc: whose run this strand is, or nil. */
static mrb_value machine_proc(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_strand *strand = rsm_running(machine);
    return strand->has_work ? rsm_kept(strand, RSM_KEPT_OBJECT) : mrb_nil_value();
}

/* Machine#__raised_by_caller?: whether the caller of this run, which waits for it to wait or end, will raise its error. */
static mrb_value machine_raised_by_caller_p(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_strand *strand = rsm_running(machine);
    mrb_value evaluation = rsm_kept(strand, RSM_KEPT_EVALUATION);
    return mrb_bool_value(strand->has_work && strand->caller && (mrb_nil_p(evaluation) || !rsm_is_concluded(mrb, evaluation)));
}

/* Machine#__raise_in_root(error) */
static mrb_value machine_raise_in_root(mrb_state *mrb, mrb_value self) {
    mrb_value error = mrb_get_arg1(mrb);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_deliver(mrb, machine, rs_root(machine->engine), error, false);
    return mrb_nil_value();
}

void rsm_init_start(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    rsm_register_part(&start_part);
    rsm_register_work(&runs);
    struct RClass *kernel = mrb_define_module_under(mrb, module, "KernelMethods");
    mrb_define_method(mrb, kernel, "concurrently", kernel_concurrently, MRB_ARGS_ANY());
    struct RClass *proc = rsm_class(mrb, "ConcurrentProc");
    mrb_define_method(mrb, proc, "call_nonblock", proc_call_nonblock, MRB_ARGS_ANY());
    mrb_define_method(mrb, proc, "call_detached", proc_call_detached, MRB_ARGS_ANY());
    mrb_define_method(mrb, proc, "call_and_forget", proc_call_and_forget, MRB_ARGS_ANY());
    mrb_define_method(mrb, machine, "__proc", machine_proc, MRB_ARGS_NONE());
    mrb_define_method(mrb, machine, "__raised_by_caller?", machine_raised_by_caller_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, machine, "__raise_in_root", machine_raise_in_root, MRB_ARGS_REQ(1));
}
