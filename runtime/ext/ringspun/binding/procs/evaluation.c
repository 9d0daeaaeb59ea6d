/* evaluation: Ringspun::Evaluation, the handle to a run of a concurrent proc: awaiting, concluding and resuming it. */
#include "evaluation.h"
#include "binding/sync/sync.h"

VALUE rsb_cEvaluation, rsb_eEvaluation;
static ID option_names[2], id_timeout_error, id_error, id_misuse_report, id_error_read;

static void evaluation_mark(void *data) {
    rsb_evaluation *evaluation = data;
    rb_gc_mark(evaluation->machine);
    rb_gc_mark(evaluation->proc);
    rb_gc_mark(evaluation->strand);
    rb_gc_mark(evaluation->engine.result);
    rb_gc_mark(evaluation->data);
}

/* The struct is embedded in the object. */
static void evaluation_free(void *data) { rs_evaluation_free(&((rsb_evaluation *)data)->engine); }

/* Strands that wait for it have it on their stacks, so it does not move while they are in its lists. */
static const rb_data_type_t evaluation_type = {
    .wrap_struct_name = "Ringspun::Evaluation",
    .function = {.dmark = evaluation_mark, .dfree = evaluation_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_EMBEDDABLE,
};

bool rsb_is_evaluation(VALUE object) {
    return RB_TYPE_P(object, T_DATA) && RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object) == &evaluation_type;
}

rsb_evaluation *rsb_evaluation_get(VALUE object) {
    if (RS_UNLIKELY(!rsb_is_evaluation(object))) {
        rb_raise(rsb_eUsage, "expected a Ringspun::Evaluation, got %" PRIsVALUE, rb_obj_class(object));
    }
    return rsb_evaluation_data(object);
}

static bool is_of_strand(const rsb_evaluation *evaluation) { return evaluation->engine.state == RS_EVALUATION_OF_STRAND; }

/* A subclass of the program may have an initialize, which may also wait. */
static VALUE initialize(VALUE self) {
    if (RS_UNLIKELY(rb_obj_class(self) != rsb_cEvaluation)) rb_obj_call_init(self, 0, NULL);
    return self;
}

static VALUE make(rsb_machine *machine, VALUE proc, VALUE class, rs_evaluation_state state) {
    rsb_evaluation *evaluation;
    VALUE self = TypedData_Make_Struct(class, rsb_evaluation, &evaluation_type, evaluation);
    rs_evaluation_init(&evaluation->engine, state);
    evaluation->machine = machine->self;
    evaluation->proc = proc;
    evaluation->strand = evaluation->data = Qnil;
    evaluation->fork_count = machine->fork_count;
    return self;
}

VALUE rsb_evaluation_new(rsb_machine *machine, VALUE proc, VALUE class, rs_evaluation_state state) {
    return initialize(make(machine, proc, class, state));
}

VALUE rsb_evaluation_of_frame(rsb_machine *machine, rsb_frame *frame) {
    if (frame->evaluation) return frame->evaluation;
    VALUE object = make(machine, frame->proc, rsb_evaluation_class(frame->proc), RS_EVALUATION_RUNS);
    rsb_evaluation_data(object)->frame = frame;
    frame->evaluation = object;
    return initialize(object);
}

static VALUE evaluation_of_strand(rsb_machine *machine, rsb_strand *strand) {
    if (!strand->evaluation) {
        VALUE object = rsb_evaluation_new(machine, Qnil, rsb_cEvaluation, RS_EVALUATION_OF_STRAND);
        rsb_evaluation_get(object)->strand = strand->self;
        strand->shown = true;
        strand->evaluation = object;
    }
    return strand->evaluation;
}

static VALUE current(rsb_machine *machine) {
    rsb_strand *strand = rsb_running(machine);
    rsb_frame *frame = rsb_frame_here(machine);
    return frame ? rsb_evaluation_of_frame(machine, frame) : evaluation_of_strand(machine, strand);
}

/* The evaluation of the running concurrent proc. Outside of one, that of the strand, which can wait and be resumed, but has no
 * result.
 *
 * @return [Evaluation]
 * @since 0.1.0 */
static VALUE evaluation_current(VALUE class) { return current(rsb_current()); }

/* --- waiting --- */

void rsb_resumable(rsb_machine *machine) {
    rsb_raise_refusal(machine); /* the wait will not be refused now, so the next ticket is its ticket */
    rs_make_resumable(rs_running(&machine->engine), rs_next_ticket(&machine->engine));
}

static VALUE take_resume_value(rsb_machine *machine) {
    rsb_strand *strand = rsb_running(machine);
    VALUE value = strand->resume_value;
    strand->resume_value = Qnil;
    return value;
}

bool rsb_was_resumed(rsb_machine *machine, rs_wake_kind kind, VALUE *value) {
    *value = take_resume_value(machine);
    return rs_was_resumed(&machine->engine, kind);
}

/* A forked child has only the strand that has forked. */
static VALUE left_behind(void) {
    return rb_exc_new_cstr(rsb_eTerminated, "that evaluation runs in the parent process; it did not come along with the fork");
}

rsb_machine *rsb_evaluation_machine(rsb_evaluation *evaluation) {
    rsb_machine *machine = rsb_machine_of(evaluation->machine);
    if (RS_UNLIKELY(evaluation->fork_count != machine->fork_count)) {
        bool here = evaluation->frame && rsb_frame_is_of(evaluation->frame, rsb_running(machine));
        bool strand_here = is_of_strand(evaluation) && rsb_is_alive(rsb_strand_get(evaluation->strand));
        bool lost = !here && !strand_here && !rs_is_concluded(&evaluation->engine);
        rs_evaluation_forked(&evaluation->engine, lost, lost ? left_behind() : 0);
        evaluation->fork_count = machine->fork_count;
        if (!here) evaluation->frame = NULL;
    }
    return machine;
}

int64_t rsb_limit_end(rsb_machine *machine, const rsb_limit *limit) {
    if (NIL_P(limit->within)) return RS_NEVER;
    return rsb_deadline_after(machine, rsb_seconds_to_ns(limit->within, "within"));
}

static rsb_limit limit_of(int argc, const VALUE *argv) {
    VALUE given[2] = {Qundef, Qundef};
    if (RS_LIKELY(argc == 0)) return (rsb_limit){Qnil, Qundef};
    VALUE options = argv[argc - 1];
    if (argc != 1 || !RB_TYPE_P(options, T_HASH)) rb_raise(rsb_eUsage, "expected within: and timeout_result:, and nothing else");
    rsb_options(options, 2, option_names, given);
    return (rsb_limit){given[0] == Qundef ? Qnil : given[0], given[1]};
}

VALUE rsb_limit_passed(rsb_machine *machine, const rsb_limit *limit) {
    if (limit->timeout_result != Qundef) return limit->timeout_result;
    VALUE class = rb_const_get(rb_obj_class(current(machine)), id_timeout_error);
    rb_raise(class, "evaluation timed out after %" PRIsVALUE " second(s)", limit->within);
}

/* Waits until the strand is woken through the list, the limit has passed, or Evaluation#resume! is called. True: it was resumed,
 * with *value. False: the caller looks whether the result is there (RS_AWAIT_LOOK). Raises what interrupts the wait. */
static bool park(rsb_machine *machine, const rsb_limit *limit, rs_list *list, VALUE *value) {
    rs_wake_kind kind = rsb_await(machine, rsb_limit_end(machine, limit), list);
    *value = take_resume_value(machine);
    rs_await_outcome outcome = rs_await_end(&machine->engine, kind);
    if (RS_UNLIKELY(outcome == RS_AWAIT_RAISES)) rsb_raise_wake(machine, kind);
    return outcome == RS_AWAIT_RESUMED;
}

static VALUE await(rsb_machine *machine, rsb_evaluation *evaluation, const rsb_limit *limit) {
    VALUE value;
    if (rs_is_concluded(&evaluation->engine)) return evaluation->engine.result;
    if (is_of_strand(evaluation)) {
        rb_raise(rsb_eUsage, "this is the evaluation of a strand and of no concurrent proc: it has no result");
    }
    if (evaluation->frame) rsb_frame_follow(machine, evaluation->frame);
    if (RS_UNLIKELY(evaluation->frame && evaluation->frame->strand == rsb_running(machine))) {
        rb_raise(rsb_eUsage, "an evaluation cannot wait for its own result, nor for that of one that called it");
    }
    if (park(machine, limit, &evaluation->engine.waiters, &value)) return value;
    return RS_LIKELY(rs_is_concluded(&evaluation->engine)) ? evaluation->engine.result : rsb_limit_passed(machine, limit);
}

void rsb_evaluation_read(VALUE self) {
    if (RS_LIKELY(RBASIC_CLASS(self) == rsb_cEvaluation)) return;
    const rs_evaluation *engine = &rsb_evaluation_data(self)->engine;
    if (rs_is_concluded(engine) && rsb_is_exception(engine->result)) rb_check_funcall(self, id_error_read, 0, NULL);
}

VALUE rsb_result_of_run(VALUE object) {
    if (RS_LIKELY(!rsb_is_evaluation(object))) return object;
    rsb_evaluation *evaluation = rsb_evaluation_data(object);
    if (is_of_strand(evaluation)) return object;
    VALUE result = evaluation->engine.result;
    if (!rs_is_concluded(&evaluation->engine)) {
        result = await(rsb_evaluation_machine(evaluation), evaluation, &(rsb_limit){Qnil, Qundef});
    }
    rsb_evaluation_read(object);
    RB_GC_GUARD(object); /* pins it: `evaluation` points into it */
    return result;
}

typedef struct {
    rsb_machine *machine;
    rsb_evaluation *evaluation;
    rsb_limit limit;
} await_call;

static VALUE await_protected(VALUE argument) {
    await_call *call = (await_call *)argument;
    return await(call->machine, call->evaluation, &call->limit);
}

/* The block of await_result is given a timeout like any other error, but not what cancels or interrupts the caller. */
static VALUE await_or_timeout(await_call *call) {
    int state = 0;
    VALUE result = rb_protect(await_protected, (VALUE)call, &state);
    if (RS_LIKELY(!state)) return result;
    VALUE error = rb_errinfo();
    if (!rsb_is_exception(error) || !rb_obj_is_kind_of(error, rb_const_get(rsb_cEvaluation, id_timeout_error))) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    return error;
}

/* Waits until the evaluation is concluded, and returns its result; raises it if it is an exception. Any number of strands may
 * call this, any number of times.
 *
 * May switch strands.
 *
 * @param within [Numeric, nil] seconds; nil: no limit
 * @param timeout_result [Object] the result when the time is up; without it a TimeoutError is raised
 * @yieldparam result [Object, Exception] the result, or the error; the block's value replaces it
 * @return [Object]
 * @raise [Evaluation::TimeoutError] when the time is up
 * @raise [Exception] what the concurrent proc raised
 * @since 0.1.0
 */
static VALUE evaluation_await_result(int argc, VALUE *argv, VALUE self) {
    await_call call = {.evaluation = rsb_evaluation_get(self), .limit = limit_of(argc, argv)};
    /* A result that is known needs no machine: it may be closed by now, or another thread's. */
    if (RS_LIKELY(!rs_is_concluded(&call.evaluation->engine))) call.machine = rsb_evaluation_machine(call.evaluation);
    VALUE result = RS_LIKELY(!rb_block_given_p()) ? await(call.machine, call.evaluation, &call.limit) : await_or_timeout(&call);
    rsb_evaluation_read(self);
    RB_GC_GUARD(self); /* pins it: call.evaluation points into it */
    return rsb_raise_or_return(RS_LIKELY(!rb_block_given_p()) ? result : rb_yield(result));
}

/* Parks the calling evaluation until {Evaluation#resume!} is called for it.
 *
 * May switch strands.
 *
 * @param within [Numeric, nil] seconds; nil: no limit
 * @param timeout_result [Object] what is returned when the time is up; without it a TimeoutError is raised
 * @return [Object] the argument of {Evaluation#resume!}
 * @raise [Evaluation::TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE module_await_resume(int argc, VALUE *argv, VALUE module) {
    rsb_limit limit = limit_of(argc, argv);
    VALUE value = Qnil;
    rsb_machine *machine = rsb_current();
    return park(machine, &limit, NULL, &value) ? value : rsb_limit_passed(machine, &limit);
}

static inline VALUE wait_a_turn(rsb_machine *machine) {
    VALUE value;
    rsb_yield_resumable(machine);
    return RS_UNLIKELY(rsb_was_resumed(machine, RS_WAKE_VALUE, &value)) ? value : Qtrue;
}

/* Lets others run for that many seconds.
 *
 * May switch strands.
 *
 * @param seconds [Numeric] 0 or less: until the next turn; after `require "concurrently"`: a time that has come
 * @return [true, Object] true; if {Evaluation#resume!} ended the wait, its argument
 * @raise [TypeError] when it is no number
 * @since 0.1.0
 */
static VALUE module_wait(VALUE module, VALUE seconds) {
    rsb_machine *machine = rsb_current();
    bool whole_ticks = machine->engine.options.whole_ticks;
    if (RS_LIKELY(seconds == INT2FIX(0) && !whole_ticks)) return wait_a_turn(machine);
    if (NIL_P(rsb_number_of_seconds(seconds)) && !rb_obj_is_kind_of(seconds, rb_cNumeric)) {
        rb_raise(rb_eTypeError, "wait: expected a number of seconds, got %" PRIsVALUE, rsb_inspect(seconds));
    }
    int64_t delay_ns = rsb_seconds_to_ns(seconds, "wait");
    if (delay_ns == 0 && !whole_ticks) return wait_a_turn(machine);
    VALUE value;
    int64_t deadline_ns = rsb_deadline_after(machine, delay_ns);
    rsb_resumable(machine);
    rs_wake_kind kind = rsb_sleep(machine, deadline_ns);
    if (rsb_was_resumed(machine, kind, &value)) return value;
    rsb_slept(machine, kind);
    return Qtrue;
}

/* --- the first of several --- */

typedef struct {
    rsb_machine *machine;
    rs_selector *selector;
    int count;
    const VALUE *evaluations;
    rsb_limit limit;
} fastest_call;

/* None is concluded at this point, so the selector has those that are concluded later in their order. */
static VALUE await_first(VALUE argument) {
    fastest_call *call = (fastest_call *)argument;
    rs_selector *selector = call->selector;
    for (int i = 0; i < call->count; i++) {
        rsb_selector_watch(selector, call->evaluations[i], rsb_evaluation_source(rsb_evaluation_data(call->evaluations[i])));
    }
    VALUE value;
    if (park(call->machine, &call->limit, &selector->waiters, &value)) return value;
    rs_watch *first = rs_selector_next(selector);
    return first ? rsb_watch_source(first) : rsb_limit_passed(call->machine, &call->limit);
}

static VALUE end_await_first(VALUE argument) {
    fastest_call *call = (fastest_call *)argument;
    rsb_selector_give_back(call->machine, call->selector);
    return Qnil;
}

/* Waits until the first of the evaluations is concluded, and returns that evaluation, also if its result is an exception.
 *
 * May switch strands.
 *
 * @param first [Evaluation]
 * @param second [Evaluation]
 * @param more [Array<Evaluation>]
 * @param within [Numeric, nil] seconds; nil: no limit
 * @param timeout_result [Object] what is returned when the time is up; without it a TimeoutError is raised
 * @return [Evaluation]
 * @raise [Evaluation::TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE module_await_fastest(int argc, VALUE *argv, VALUE module) {
    bool options = argc > 0 && RB_TYPE_P(argv[argc - 1], T_HASH);
    int count = argc - options;
    if (count < 2) rb_raise(rsb_eUsage, "await_fastest: expected two evaluations or more, got %d", count);
    fastest_call call = {.machine = rsb_current(), .count = count, .evaluations = argv, .limit = limit_of(options, argv + count)};
    VALUE fastest = Qnil;
    for (int i = 0; i < count; i++) {
        rsb_evaluation *evaluation = rsb_evaluation_get(argv[i]);
        rsb_evaluation_machine(evaluation);
        if (is_of_strand(evaluation)) {
            rb_raise(rsb_eUsage, "await_fastest: the evaluation of a strand is never concluded");
        }
        if (NIL_P(fastest) && rs_is_concluded(&evaluation->engine)) fastest = argv[i];
    }
    if (!NIL_P(fastest)) return fastest;
    VALUE selector;
    call.selector = rsb_selector_borrow(call.machine, &selector);
    VALUE answer = rb_ensure(await_first, (VALUE)&call, end_await_first, (VALUE)&call);
    RB_GC_GUARD(selector);
    return answer;
}

/* --- concluding and resuming --- */

/* Private. `require "concurrently/debug"` replaces it by a longer report. */
static VALUE evaluation_misuse_report(VALUE self, VALUE message) { return message; }

NORETURN(static void fail(VALUE self, const char *message));
static void fail(VALUE self, const char *message) {
    VALUE report = rb_funcall(self, id_misuse_report, 1, rb_utf8_str_new_cstr(message));
    rb_raise(rb_const_get(rb_obj_class(self), id_error), "%" PRIsVALUE, report);
}

static void unwind(rsb_machine *machine, rsb_evaluation *evaluation) {
    rsb_frame *frame = evaluation->frame;
    frame->cancels = rb_exc_new_cstr(rsb_eCancelled, "cancelled: its evaluation was concluded");
    rsb_deliver_first(machine, frame->strand, frame->cancels);
    while (evaluation->engine.unwinds) {
        rs_wake_kind kind = rsb_wait(machine, RS_WAIT_EVALUATION, 0, RS_NEVER, &evaluation->engine.unwinders, NULL, NULL);
        if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    }
}

/* Concludes the evaluation with a result from outside. A run that has not begun never begins. In a run that waits, Cancelled is
 * raised, and this returns when the run has unwound through its ensure blocks; strands that await the result go on then.
 *
 * May switch strands.
 *
 * @param result [Object, Exception]
 * @return [:concluded]
 * @raise [Evaluation::Error] when it is concluded already
 * @since 0.1.0
 */
static VALUE evaluation_conclude_to(VALUE self, VALUE result) {
    rsb_evaluation *evaluation = rsb_evaluation_get(self);
    rsb_machine *machine = rsb_evaluation_machine(evaluation);
    if (rs_is_concluded(&evaluation->engine)) fail(self, "already concluded");
    if (is_of_strand(evaluation)) {
        rb_raise(rsb_eUsage, "this is the evaluation of a strand and of no concurrent proc; use Machine#terminate to end a strand");
    }
    rsb_frame *frame = evaluation->frame;
    if (frame) rsb_frame_follow(machine, frame);
    bool unwinds = frame && frame->strand != rsb_running(machine) && rsb_frame_goes_on(frame);
    rs_evaluation_conclude_to(&machine->engine, &evaluation->engine, result, unwinds);
    if (unwinds) unwind(machine, evaluation);
    RB_GC_GUARD(self);
    return ID2SYM(rb_intern("concluded"));
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE evaluation_concluded_p(VALUE self) { return rs_is_concluded(&rsb_evaluation_get(self)->engine) ? Qtrue : Qfalse; }

/* The strand that runs it, also when it is concluded already and goes on; NULL: none, or it is suspended with a fiber. */
static rsb_strand *strand_of(rsb_machine *machine, rsb_evaluation *evaluation) {
    if (is_of_strand(evaluation)) {
        rsb_strand *strand = rsb_strand_get(evaluation->strand);
        return rsb_is_alive(strand) ? strand : NULL;
    }
    rsb_frame *frame = evaluation->frame;
    if (frame) rsb_frame_follow(machine, frame);
    return frame && rsb_frame_goes_on(frame) ? frame->strand : NULL;
}

/* Whether it is in a wait that {#resume!} can end: for a time, another evaluation, or an IO's readiness.
 *
 * @return [Boolean]
 * @since 0.1.0 */
static VALUE evaluation_waiting_p(VALUE self) {
    rsb_evaluation *evaluation = rsb_evaluation_get(self);
    rsb_machine *machine = rsb_evaluation_machine(evaluation);
    const rsb_strand *strand = strand_of(machine, evaluation);
    return rs_may_resume(&machine->engine, strand ? strand->id : RS_NO_ID) == RS_RESUMED ? Qtrue : Qfalse;
}

/* Ends the wait of the evaluation: the call that waits returns the value.
 *
 * @param value [Object]
 * @return [:resumed]
 * @raise [Evaluation::Error] when it does not wait, or its wait has ended already
 * @since 0.1.0
 */
static VALUE evaluation_resume(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    rsb_evaluation *evaluation = rsb_evaluation_get(self);
    rsb_machine *machine = rsb_evaluation_machine(evaluation);
    rsb_strand *strand = strand_of(machine, evaluation);
    rs_resumption answer = rs_resume(&machine->engine, strand ? strand->id : RS_NO_ID);
    if (answer == RS_NOT_WAITING) fail(self, "not waiting");
    if (answer == RS_ENDED_ALREADY) fail(self, "already scheduled");
    strand->resume_value = argc ? argv[0] : Qnil;
    return ID2SYM(rb_intern("resumed"));
}

/* @return [ConcurrentProc, nil] the proc whose run it is; nil for the evaluation of a strand
 * @since 0.1.0 */
static VALUE evaluation_proc(VALUE self) { return rsb_evaluation_get(self)->proc; }

void rsb_init_evaluation(void) {
    option_names[0] = rb_intern("within");
    option_names[1] = rb_intern("timeout_result");
    id_timeout_error = rb_intern("TimeoutError");
    id_error = rb_intern("Error");
    id_misuse_report = rb_intern("misuse_report");
    id_error_read = rb_intern("error_read");
    rsb_cEvaluation = rb_define_class_under(rsb_mRingspun, "Evaluation", rb_cObject);
    rb_undef_alloc_func(rsb_cEvaluation);
    rsb_eEvaluation = rb_define_class_under(rsb_cEvaluation, "Error", rsb_eError);
    VALUE timeout_error = rb_define_class_under(rsb_cEvaluation, "TimeoutError", rsb_eEvaluation);
    (void)timeout_error; /* YARD finds a class by the variable that it is assigned to */
    rb_define_const(rsb_cEvaluation, "Cancelled", rsb_eCancelled);
    rb_define_singleton_method(rsb_cEvaluation, "current", evaluation_current, 0);
    rb_define_method(rsb_cEvaluation, "initialize_copy", rsb_refuse_copy, 1);
    rb_define_method(rsb_cEvaluation, "await_result", evaluation_await_result, -1);
    rb_define_method(rsb_cEvaluation, "conclude_to", evaluation_conclude_to, 1);
    rb_define_method(rsb_cEvaluation, "concluded?", evaluation_concluded_p, 0);
    rb_define_method(rsb_cEvaluation, "waiting?", evaluation_waiting_p, 0);
    rb_define_method(rsb_cEvaluation, "resume!", evaluation_resume, -1);
    rsb_init_evaluation_data();
    rsb_init_frames();
    rsb_init_select_sources();
    rb_define_method(rsb_cEvaluation, "proc", evaluation_proc, 0);
    rb_define_private_method(rsb_cEvaluation, "misuse_report", evaluation_misuse_report, 1);
    VALUE sugar = rb_define_module_under(rsb_mRingspun, "KernelMethods");
    rb_define_singleton_method(rsb_mRingspun, "wait", module_wait, 1);
    rb_define_singleton_method(rsb_mRingspun, "await_resume!", module_await_resume, -1);
    rb_define_singleton_method(rsb_mRingspun, "await_fastest", module_await_fastest, -1);
    rb_define_private_method(sugar, "wait", module_wait, 1);
    rb_define_private_method(sugar, "await_resume!", module_await_resume, -1);
    rb_define_private_method(sugar, "await_fastest", module_await_fastest, -1);
}
