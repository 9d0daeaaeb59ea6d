/* start: begins the runs of concurrent procs.
 *
 * Runs that begin later are collected in a batch: as long as no other strand becomes ready, one strand at the end of the run
 * queue stands for all runs started in a row. It runs them one after the other. A run that waits keeps the strand, and another
 * strand, at the head of the run queue, takes the rest. So runs begin in the order of the run queue, and a run that does not wait
 * needs no strand of its own and no switch.
 */
#include "evaluation.h"

#include <stdlib.h>
#include <string.h>

rsb_start rsb_start_of(rsb_machine *machine, VALUE proc, int argc, const VALUE *argv, VALUE block, bool keywords) {
    rsb_notice_features(machine);
    rsb_start start = {.proc = proc, .block = block, .storage = rsb_fiber_storage_if_any(), .spawned_at = Qnil,
                       .keywords = keywords};
    if (RS_UNLIKELY(argc > 0)) start.arguments = rb_ary_new_from_values(argc, argv);
    if (RS_UNLIKELY(machine->locate)) start.spawned_at = rb_funcall(machine->self, rb_intern("place_of_call"), 0);
    return start;
}

/* --- batches --- */

#define STARTS_FIRST 16u

typedef struct {
    rs_links all;               /* batches with runs that have not begun, the newest first */
    rsb_batch *spare;
} machine_batches;

static rsb_part part;

static inline machine_batches *batches_of(const rsb_machine *machine) { return rsb_part_data(machine, &part); }

/* Makes a spare batch with room for at least one start, so that take_batch cannot fail. */
static void have_spare_batch(machine_batches *batches) {
    if (RS_UNLIKELY(!batches->spare)) batches->spare = rsb_alloc(sizeof(rsb_batch));
    rsb_batch *batch = batches->spare;
    if (RS_LIKELY(batch->capacity > 0)) return;
    batch->starts = rsb_alloc(sizeof(rsb_start) * STARTS_FIRST);
    batch->capacity = STARTS_FIRST;
}

static rsb_batch *take_batch(machine_batches *batches) {
    rsb_batch *batch = batches->spare;
    RS_ASSERT(batch->len == 0 && batch->capacity > 0);
    batches->spare = NULL;
    rs_links_prepend(&batches->all, &batch->link);
    return batch;
}

static void free_batch(rsb_batch *batch) {
    free(batch->starts);
    free(batch);
}

#define SPARE_STARTS_MAX 4096u

static void end_batch(rsb_machine *machine, rsb_batch *batch) {
    machine_batches *batches = batches_of(machine);
    rs_links_remove(&batches->all, &batch->link);
    if (batches->spare || batch->capacity > SPARE_STARTS_MAX) {
        free_batch(batch);
        return;
    }
    batch->scope = NULL;
    batch->strand = RS_NO_ID;
    batch->at = batch->len = 0;
    batches->spare = batch;
}

static void batches_mark(rsb_machine *machine) {
    RS_EACH_LINKED(&batches_of(machine)->all, rsb_batch, link, batch) {
        for (uint32_t i = batch->at; i < batch->len; i++) {
            const rsb_start *start = &batch->starts[i];
            rb_gc_mark(start->proc);
            rb_gc_mark(start->evaluation);
            rb_gc_mark(start->arguments);
            rb_gc_mark(start->block);
            rb_gc_mark(start->storage);
            rb_gc_mark(start->spawned_at);
        }
    }
}

static void batches_free(rsb_machine *machine) {
    machine_batches *batches = batches_of(machine);
    RS_EACH_LINKED(&batches->all, rsb_batch, link, batch) {
        rs_links_remove(&batches->all, &batch->link);
        free_batch(batch);
    }
    if (batches->spare) free_batch(batches->spare);
    batches->spare = NULL;
}

/* In a forked child the strands that would begin these runs do not exist. */
static void batches_forked(rsb_machine *machine, rsb_strand *survivor) {
    survivor->batch = NULL;
    batches_free(machine);
}

static void add(rsb_batch *batch, const rsb_start *start) {
    if (batch->len == batch->capacity) {
        batch->starts = rsb_realloc(batch->starts, sizeof(rsb_start) * 2 * batch->capacity);
        batch->capacity *= 2;
    }
    batch->starts[batch->len++] = *start;
}

/* --- strands for them --- */

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

static bool batch_run(rsb_machine *machine, rsb_strand *strand, int *state);
static void batch_fail(rsb_machine *machine, rsb_strand *strand, VALUE error);
static void batch_hand_over(rsb_machine *machine, rsb_strand *strand);

static const rsb_work starts = {.run = batch_run, .fail = batch_fail, .hand_over = batch_hand_over};

static void give_work(rs_strand *engine, rsb_strand *strand, rsb_batch *batch) {
    strand->id = rs_strand_id(engine);
    strand->work = &starts;
    strand->batch = batch;
    rs_strand_awaits_turn(engine);
    if (batch) batch->strand = strand->id;
}

/* The batch whose strand is the last in the run queue: a run started now would come right after it anyway. */
static rsb_batch *open_batch(rsb_machine *machine) {
    rsb_batch *batch = RS_LINKED(batches_of(machine)->all.first, rsb_batch, link);
    if (!batch || batch->at > 0 || batch->scope != machine->spin_scope) return NULL;
    const rs_strand *last = rs_run_last(&machine->engine.strands);
    return last && rs_strand_id(last) == batch->strand && last->state == RS_STRAND_NEW ? batch : NULL;
}

static rsb_batch *new_batch(rsb_machine *machine, rs_scope *scope, VALUE supervisor) {
    have_spare_batch(batches_of(machine));
    VALUE handle = take_handle(machine);
    rsb_strand *strand = rsb_strand_data(handle);
    rs_strand *engine = rs_spawn(&machine->engine, scope, strand);
    if (RS_UNLIKELY(!engine)) rsb_fail_strand_limit(machine);
    rsb_batch *batch = take_batch(batches_of(machine));
    batch->scope = scope;
    give_work(engine, strand, batch);
    strand->supervisor = supervisor;
    RB_GC_GUARD(handle);
    return batch;
}

void rsb_start_later(rsb_machine *machine, const rsb_start *start) {
    rsb_batch *batch = open_batch(machine);
    add(batch ? batch : new_batch(machine, machine->spin_scope, Qnil), start);
}

void rsb_start_in_scope(rsb_machine *machine, rs_scope *scope, VALUE supervisor, const rsb_start *start) {
    rsb_batch *batch = new_batch(machine, scope, supervisor);
    add(batch, start);
    batch->scope = NULL; /* open_batch adds no other run to it */
}

typedef rs_strand *spawn_function(rs_machine *machine, rs_scope *scope, void *user);

static void hand_over(rsb_machine *machine, rsb_strand *strand, spawn_function *spawn) {
    rsb_batch *batch = strand->batch;
    RS_ASSERT(batch->at <= batch->len);
    if (batch->at == batch->len) {
        strand->batch = NULL;
        end_batch(machine, batch); /* and not only when the last run has ended its wait */
        return;
    }
    if (machine->spare_len == 0) return;
    rsb_strand *other = rsb_strand_data(machine->spare[machine->spare_len - 1]);
    rs_strand *engine = spawn(&machine->engine, batch->scope, other);
    if (!engine) return; /* no more strands: this one runs the rest after its wait */
    machine->spare_len--;
    give_work(engine, other, batch);
    strand->batch = NULL;
}

static void batch_hand_over(rsb_machine *machine, rsb_strand *strand) { hand_over(machine, strand, rs_spawn_next); }

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

static outcome fail(rsb_machine *machine, rsb_strand *strand, rsb_frame *frame, int state) {
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
        else if (rsb_is_rescueable(info)) rsb_trigger_error(frame->proc, info);
        else if (!is_raised_by_caller(frame)) rsb_raise_in_root(machine, info);
        if (RS_UNLIKELY(strand->id == machine->engine.root)) machine->child_error = child_error(info);
    }
    rsb_conclude(machine, frame->evaluation, end.error);
    return end;
}

/* Takes one exception raised for the strand: only this run of the batch ends with it. */
static VALUE take_interrupt(rsb_machine *machine, rsb_strand *strand) {
    if (NIL_P(strand->raises) || RARRAY_LEN(strand->raises) == 0) return terminated();
    rs_take_interrupt(rs_running(&machine->engine));
    return rb_ary_shift(strand->raises);
}

static outcome run(rsb_machine *machine, rsb_strand *strand, const rsb_start *start, rsb_start_answer *answer, int *state) {
    rsb_frame frame;
    rsb_frame_open(machine, &frame, strand->home, start->proc, start->evaluation);
    frame.answer = answer;
    outcome end = {.value = Qnil};
    rs_wake_kind refusal = rs_refusal(&machine->engine, 0);
    if (RS_UNLIKELY(refusal != RS_WAKE_VALUE)) {
        if (refusal == RS_WAKE_INTERRUPT) end.error = take_interrupt(machine, strand);
        else end.error = terminated(), strand->cancelled = true;
        rsb_conclude(machine, frame.evaluation, end.error);
    } else {
        run_call call = {start, &frame};
        end.value = rb_protect(call_proc, (VALUE)&call, state);
        rsb_notice_fork(machine);
        if (RS_LIKELY(!*state)) rsb_conclude(machine, frame.evaluation, end.value);
        else end = fail(machine, strand, &frame, *state);
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
    if (strand->answer) {
        rsb_start start = *strand->answer->start;
        rsb_start_answer *answer = strand->answer;
        strand->answer = NULL;
        return run(machine, strand, &start, answer, state).killed;
    }
    while (strand->batch && strand->batch->at < strand->batch->len) {
        rsb_batch *batch = strand->batch;
        rsb_start start = batch->starts[batch->at++];
        if (RS_UNLIKELY(rsb_is_concluded(start.evaluation))) continue; /* from outside, before it began */
        have_spare(machine);
        strand->spawned_at = start.spawned_at;
        bool killed = run(machine, strand, &start, NULL, state).killed;
        if (RS_UNLIKELY(killed || strand->used_fiber || !rsb_fiber_reset(machine, strand->home, true))) strand->used_fiber = true;
        /* A run that has computed for long ends the turn: strands whose timers are due go before the next run. */
        bool turn_over = strand->batch && batch->at < batch->len && rs_turn_is_long(&machine->engine);
        if (RS_LIKELY(!strand->used_fiber && !strand->shown && !strand->frames && !turn_over)) continue;
        if (strand->batch) hand_over(machine, strand, turn_over ? rs_spawn_in_place : rs_spawn_next);
        if (!strand->batch || killed) return killed;
    }
    if (strand->batch) end_batch(machine, strand->batch);
    strand->batch = NULL;
    return false;
}

static void batch_fail(rsb_machine *machine, rsb_strand *strand, VALUE error) {
    rsb_batch *batch = strand->batch;
    while (batch->at < batch->len) {
        rsb_start start = batch->starts[batch->at++];
        if (rsb_is_concluded(start.evaluation)) continue;
        rsb_trigger_error(start.proc, error);
        rsb_conclude(machine, start.evaluation, error);
    }
    strand->batch = NULL;
    end_batch(machine, batch);
}

bool rsb_start_now(rsb_machine *machine, const rsb_start *start, VALUE *value, bool *failed) {
    rsb_start_answer answer = {.start = start};
    rs_strand *me = rs_running(&machine->engine);
    VALUE handle = take_handle(machine);
    rsb_strand *strand = rsb_strand_data(handle);
    rs_strand *engine = rs_spawn_first(&machine->engine, machine->spin_scope, strand);
    if (RS_UNLIKELY(!engine)) rsb_fail_strand_limit(machine);
    give_work(engine, strand, NULL);
    strand->answer = &answer;
    strand->spawned_at = start->spawned_at;
    rsb_run_first(machine, me, engine);
    if (RS_LIKELY(answer.ended)) {
        *value = answer.value;
        *failed = answer.failed;
        return true;
    }
    rsb_frame *frame = strand->frames;
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

static rsb_part part = {.data_size = sizeof(machine_batches), .mark = batches_mark, .forked = batches_forked, .free = batches_free};

void rsb_init_start(void) {
    rsb_register_part(&part);
    rsb_init_scope_concurrently();
    rb_gc_register_address(&traced_class);
    rb_define_private_method(rb_singleton_class(rsb_cConcurrentProc), "trace=", proc_set_trace, 1);
}
