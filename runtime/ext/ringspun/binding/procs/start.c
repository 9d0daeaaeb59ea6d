/* start: begins the runs of concurrent procs, those that begin later in batches (engine/procs/batch.h). */
#include "evaluation.h"

rsb_start rsb_start_of(rsb_machine *machine, VALUE proc, int argc, const VALUE *argv, VALUE block, bool keywords) {
    rsb_notice_features(machine);
    rsb_start start = {.proc = proc, .block = block, .storage = rsb_fiber_storage_if_any(), .spawned_at = Qnil,
                       .keywords = keywords};
    if (RS_UNLIKELY(argc > 0)) start.arguments = rb_ary_new_from_values(argc, argv);
    if (RS_UNLIKELY(machine->locate)) start.spawned_at = rb_funcall(machine->self, rb_intern("place_of_call"), 0);
    return start;
}

/* --- batches, and strands for them --- */

static void mark_start(const void *data) {
    const rsb_start *start = data;
    rb_gc_mark(start->proc);
    rb_gc_mark(start->evaluation);
    rb_gc_mark(start->arguments);
    rb_gc_mark(start->block);
    rb_gc_mark(start->storage);
    rb_gc_mark(start->spawned_at);
}

static void starts_mark(rsb_machine *machine) { rs_batches_each(machine->engine, mark_start); }

/* The program has seldom seen the handle of a strand that was made for starts, so the next strand reuses it. The last spare
 * handle is left for hand_over. */
static VALUE take_handle(rsb_machine *machine) {
    return machine->spare_len > 1 ? machine->spare[--machine->spare_len] : rsb_strand_handle(machine);
}

/* Called before a run, so that hand_over has a handle and allocates nothing in the middle of a wait. */
static void have_spare(rsb_machine *machine) {
    if (RS_LIKELY(machine->spare_len > 0)) return;
    VALUE handle = rsb_strand_handle(machine);
    machine->spare[machine->spare_len++] = handle;
}

static rsb_strand *give_handle(rs_strand *engine) {
    rsb_strand *strand = rs_strand_user(engine);
    strand->id = rs_strand_id(engine);
    return strand;
}

static void reserve_batch(rsb_machine *machine) {
    if (RS_LIKELY(rs_batch_reserve(machine->engine, sizeof(rsb_start)))) return;
    rsb_collect_for(sizeof(rs_batch));
    if (!rs_batch_reserve(machine->engine, sizeof(rsb_start))) rsb_fail_memory();
}

static rs_batch *new_batch(rsb_machine *machine, rs_scope *scope, VALUE supervisor) {
    reserve_batch(machine);
    VALUE handle = take_handle(machine);
    rs_strand *engine = rs_batch_spawn(machine->engine, scope, rsb_strand_data(handle));
    if (RS_UNLIKELY(!engine)) rsb_fail_strand_limit(machine);
    give_handle(engine)->supervisor = supervisor;
    RB_GC_GUARD(handle);
    return rs_strand_batch(engine);
}

static void add(rs_batch *batch, const rsb_start *start) {
    rsb_start *room = rs_batch_add(batch);
    if (RS_UNLIKELY(!room)) {
        rsb_collect_for(2 * rs_batch_bytes(batch));
        room = rs_batch_add(batch);
        if (!room) rsb_fail_memory();
    }
    *room = *start;
}

void rsb_start_later(rsb_machine *machine, const rsb_start *start) {
    rs_scope *run = rsb_run_here(machine);
    rs_batch *batch = rs_batch_open(machine->engine, run);
    add(batch ? batch : new_batch(machine, run, Qnil), start);
}

void rsb_start_in_scope(rsb_machine *machine, rs_scope *scope, VALUE supervisor, const rsb_start *start) {
    rs_batch *batch = new_batch(machine, scope, supervisor);
    add(batch, start);
    rs_batch_close(batch);
}

typedef rs_strand *hand_over_function(rs_machine *machine, rs_strand *strand, void *user);

static void hand_over(rsb_machine *machine, rs_strand *strand, hand_over_function *function) {
    rsb_strand *user = machine->spare_len > 0 ? rsb_strand_data(machine->spare[machine->spare_len - 1]) : NULL;
    rs_strand *other = function(machine->engine, strand, user);
    if (!other) return;
    machine->spare_len--;
    give_handle(other);
}

static void batch_hand_over(rsb_machine *machine, rs_strand *strand) { hand_over(machine, strand, rs_batch_hand_over); }

/* --- running one --- */

typedef struct {
    const rsb_start *start;
    rsb_frame *frame;
} run_call;

/* Procs of this class are called by their method #traced_call, which logs; 0: none. */
static VALUE traced_class;

static bool is_traced(VALUE proc) { return RS_UNLIKELY(traced_class != 0) && rb_obj_is_kind_of(proc, traced_class); }

RSB_APART static VALUE call_traced(const rsb_start *start) {
    VALUE arguments = start->arguments ? start->arguments : rb_ary_new();
    return rb_funcall_with_block_kw(start->proc, rb_intern("traced_call"), (int)RARRAY_LEN(arguments), RARRAY_CONST_PTR(arguments),
                                    start->block, start->keywords ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS);
}

static VALUE call_proc(VALUE argument) {
    const rsb_start *start = ((run_call *)argument)->start;
    if (RS_UNLIKELY(start->storage && !NIL_P(start->storage))) rsb_fiber_set_storage(start->storage);
    if (is_traced(start->proc)) return call_traced(start);
    if (RS_LIKELY(!start->arguments)) return rb_proc_call_with_block(start->proc, 0, NULL, start->block);
    return rb_proc_call_with_block_kw(start->proc, (int)RARRAY_LEN(start->arguments), RARRAY_CONST_PTR(start->arguments),
                                      start->block, start->keywords ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS);
}

static VALUE terminated(void) {
    return rb_exc_new_cstr(rsb_eTerminated, "the evaluation was cancelled, with its scope or its strand, before it had a result");
}

typedef struct {
    VALUE value;
    VALUE error;                /* 0: none */
    bool killed;
} outcome;

/* The error that ends a forked child whose first strand runs this. The error handlers have had a rescueable one, so the child
 * only ends with status 1. */
static VALUE child_error(VALUE error) {
    if (!rsb_is_rescueable(error)) return error;
    VALUE status = INT2FIX(1);
    return rb_class_new_instance(1, &status, rb_eSystemExit);
}

/* True if the caller, which waits for the answer, will raise the error. */
static bool is_raised_by_caller(const rsb_frame *frame) {
    return frame->answer && !rsb_is_concluded(frame->evaluation);
}

/* Tells the handlers. What ends more than a handler goes where an exit of the run itself goes. */
static void handle(rsb_machine *machine, rsb_strand *strand, rsb_frame *frame, outcome *end, int *state) {
    int left = rsb_trigger_error(frame->proc, end->error);
    if (RS_LIKELY(!left)) return;
    VALUE info = rb_errinfo();
    if (!rsb_is_exception(info)) {
        *state = left;
        end->killed = rsb_end_killed(strand);
        return;
    }
    rb_set_errinfo(Qnil);
    if (is_raised_by_caller(frame)) end->error = info;
    else rsb_raise_in_root(machine, info);
}

static outcome fail(rsb_machine *machine, rsb_strand *strand, rsb_frame *frame, int *state) {
    VALUE info = rb_errinfo();
    outcome end = {.value = Qnil};
    if (!rsb_is_exception(info)) {
        end.killed = rsb_end_killed(strand);
        end.error = terminated();
    } else if (rb_obj_is_kind_of(info, rsb_eCancelled)) {
        rb_set_errinfo(Qnil);
        strand->cancelled = !rsb_is_concluded(frame->evaluation);
        end.error = terminated();
    } else {
        rb_set_errinfo(Qnil);
        end.error = info;
        if (!NIL_P(strand->supervisor)) strand->error = info;
        else if (rsb_is_rescueable(info)) handle(machine, strand, frame, &end, state);
        else if (!is_raised_by_caller(frame)) rsb_raise_in_root(machine, info);
        if (RS_UNLIKELY(strand->id == rs_root_id(machine->engine))) machine->child_error = child_error(end.error);
    }
    rsb_conclude(machine, frame->evaluation, end.error);
    return end;
}

/* Takes one exception raised for the strand: only this run of the batch ends with it. */
static VALUE take_interrupt(rsb_machine *machine, rsb_strand *strand) {
    if (NIL_P(strand->raises) || RARRAY_LEN(strand->raises) == 0) return terminated();
    rs_take_interrupt(rs_running(machine->engine));
    return rb_ary_shift(strand->raises);
}

static outcome run(rsb_machine *machine, rsb_strand *strand, const rsb_start *start, rsb_start_answer *answer, int *state) {
    rsb_frame frame;
    rsb_frame_open(machine, &frame, strand->home, start->proc, start->evaluation);
    frame.answer = answer;
    outcome end = {.value = Qnil};
    rs_wake_kind refusal = rs_refusal(machine->engine, 0);
    if (RS_UNLIKELY(refusal != RS_WAKE_VALUE)) {
        if (refusal == RS_WAKE_INTERRUPT) end.error = take_interrupt(machine, strand);
        else end.error = terminated(), strand->cancelled = true;
        rsb_conclude(machine, frame.evaluation, end.error);
    } else {
        run_call call = {start, &frame};
        end.value = rb_protect(call_proc, (VALUE)&call, state);
        rsb_notice_fork(machine);
        if (RS_LIKELY(!*state)) rsb_conclude(machine, frame.evaluation, end.value);
        else end = fail(machine, strand, &frame, state);
    }
    if (frame.answer) {
        frame.answer->ended = true;
        frame.answer->failed = end.error != 0;
        frame.answer->value = end.error ? end.error : end.value;
        if (RS_UNLIKELY(frame.evaluation != 0)) {
            frame.answer->value = rsb_evaluation_data(frame.evaluation)->engine.result;
            frame.answer->failed = false; /* the caller raises the value if it is an exception */
        }
    }
    rsb_frame_close(machine, &frame);
    return end;
}

static bool batch_run(rsb_machine *machine, rsb_strand *strand, int *state) {
    rsb_strand_runs *runs = rsb_runs_of(strand);
    if (runs->answer) {
        rsb_start_answer *answer = runs->answer;
        rsb_start start = *answer->start;
        runs->answer = NULL;
        return run(machine, strand, &start, answer, state).killed;
    }
    rs_strand *me = rs_running(machine->engine);
    for (const rsb_start *next; (next = rs_batch_next(machine->engine, me));) {
        rsb_start start = *next;
        if (RS_UNLIKELY(rsb_is_concluded(start.evaluation))) continue; /* from outside, before it began */
        have_spare(machine);
        strand->spawned_at = start.spawned_at;
        bool killed = run(machine, strand, &start, NULL, state).killed;
        if (RS_UNLIKELY(killed || strand->used_fiber || !rsb_fiber_reset(machine, strand->home, true))) strand->used_fiber = true;
        /* A run that has computed for long ends the turn: strands whose timers are due go before the next run. */
        bool turn_over = rs_batch_turn_is_over(machine->engine, me);
        if (RS_LIKELY(!strand->used_fiber && !strand->shown && !runs->frames && !turn_over)) continue;
        if (rs_strand_batch(me)) hand_over(machine, me, turn_over ? rs_batch_hand_over_in_place : rs_batch_hand_over);
        if (!rs_strand_batch(me) || killed) return killed;
    }
    return false;
}

static void batch_fail(rsb_machine *machine, rs_strand *strand, VALUE error) {
    for (const rsb_start *next; (next = rs_batch_next(machine->engine, strand));) {
        rsb_start start = *next;
        if (rsb_is_concluded(start.evaluation)) continue;
        /* There is no stack that could end with the thread: only an exception goes on. */
        if (RS_UNLIKELY(rsb_trigger_error(start.proc, error))) {
            VALUE info = rb_errinfo();
            rb_set_errinfo(Qnil);
            if (rsb_is_exception(info)) rsb_raise_in_root(machine, info);
        }
        rsb_conclude(machine, start.evaluation, error);
    }
}

bool rsb_start_now(rsb_machine *machine, const rsb_start *start, VALUE *value, bool *failed) {
    rsb_start_answer answer = {.start = start};
    rs_strand *me = rs_running(machine->engine);
    VALUE handle = take_handle(machine);
    rsb_strand *strand = rsb_strand_data(handle);
    rs_strand *engine = rs_spawn_first(machine->engine, rsb_run_here(machine), strand);
    if (RS_UNLIKELY(!engine)) rsb_fail_strand_limit(machine);
    rs_strand_awaits_turn(engine);
    give_handle(engine);
    rsb_runs_of(strand)->answer = &answer;
    strand->spawned_at = start->spawned_at;
    rsb_run_first(machine, me, engine);
    if (RS_LIKELY(answer.ended)) {
        /* A kill of the thread ended the run, so the kill is raised and not the run's outcome. */
        if (RS_UNLIKELY(((rsb_strand *)rs_strand_user(me))->kill_pending)) rsb_raise_wake(machine, RS_WAKE_INTERRUPT);
        *value = answer.value;
        *failed = answer.failed;
        return true;
    }
    rsb_frame *frame = rsb_runs_of(strand)->frames;
    if (RS_UNLIKELY(!frame)) { /* there was no stack for it, so it has not run */
        *value = strand->error;
        *failed = true;
        return true;
    }
    while (frame->answer != &answer) frame = frame->outer;
    frame->answer = NULL;
    *value = rsb_evaluation_of_frame(machine, frame);
    RB_GC_GUARD(handle);
    return false;
}

static VALUE proc_set_trace(VALUE class, VALUE traced) {
    traced_class = RTEST(traced) ? traced : 0;
    return traced;
}

static rsb_part part = {.mark = starts_mark};

void rsb_init_start(void) {
    rsb_register_part(&part);
    rsb_without_block = (rsb_work){.run = batch_run, .fail = batch_fail, .hand_over = batch_hand_over};
    rb_gc_register_address(&traced_class);
    rb_define_private_method(rb_singleton_class(rsb_cConcurrentProc), "trace=", proc_set_trace, 1);
}
