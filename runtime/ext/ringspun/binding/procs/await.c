/* await: waits that Evaluation#resume! may end: for a result, for the first of several, for a time, or for nothing else. */
#include "evaluation.h"
#include "binding/sync/sync.h"

static ID option_names[2], id_timeout_error;

void rsb_resumable(rsb_machine *machine) {
    rsb_raise_refusal(machine); /* the wait will not be refused now, so the next ticket is its ticket */
    rs_make_resumable(rs_running(machine->engine), rs_next_ticket(machine->engine));
}

static VALUE take_resume_value(rsb_machine *machine) {
    rsb_strand_runs *runs = rsb_runs_of(rsb_running(machine));
    VALUE value = runs->resume_value;
    runs->resume_value = Qnil;
    return value;
}

bool rsb_was_resumed(rsb_machine *machine, rs_wake_kind kind, VALUE *value) {
    *value = take_resume_value(machine);
    return rs_was_resumed(machine->engine, kind);
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
    VALUE class = rb_const_get(rb_obj_class(rsb_evaluation_here(machine)), id_timeout_error);
    rb_raise(class, "evaluation timed out after %" PRIsVALUE " second(s)", limit->within);
}

/* Waits until the strand is woken through the list, the limit has passed, or Evaluation#resume! is called. True: it was resumed,
 * with *value. False: the caller looks whether the result is there (RS_AWAIT_LOOK). Raises what interrupts the wait. */
static bool park(rsb_machine *machine, const rsb_limit *limit, rs_list *list, VALUE *value) {
    rs_wake_kind kind = rsb_await(machine, rsb_limit_end(machine, limit), list);
    *value = take_resume_value(machine);
    rs_await_outcome outcome = rs_await_end(machine->engine, kind);
    if (RS_UNLIKELY(outcome == RS_AWAIT_RAISES)) rsb_raise_wake(machine, kind);
    return outcome == RS_AWAIT_RESUMED;
}

static VALUE await(rsb_machine *machine, rsb_evaluation *evaluation, const rsb_limit *limit) {
    VALUE value;
    if (rs_is_concluded(&evaluation->engine)) return evaluation->engine.result;
    if (rsb_is_of_strand(evaluation)) {
        rb_raise(rsb_eUsage, "this is the evaluation of a strand and of no concurrent proc: it has no result");
    }
    if (evaluation->frame) rsb_frame_follow(machine, evaluation->frame);
    if (RS_UNLIKELY(evaluation->frame && evaluation->frame->strand == rsb_running(machine))) {
        rb_raise(rsb_eUsage, "an evaluation cannot wait for its own result, nor for that of one that called it");
    }
    if (park(machine, limit, &evaluation->engine.waiters, &value)) return value;
    return RS_LIKELY(rs_is_concluded(&evaluation->engine)) ? evaluation->engine.result : rsb_limit_passed(machine, limit);
}

VALUE rsb_result_of_run(VALUE object) {
    if (RS_LIKELY(!rsb_is_evaluation(object))) return object;
    rsb_evaluation *evaluation = rsb_evaluation_data(object);
    if (rsb_is_of_strand(evaluation)) return object;
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
    bool whole_ticks = rs_options_of(machine->engine)->whole_ticks;
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
        if (rsb_is_of_strand(evaluation)) {
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

void rsb_init_await(void) {
    option_names[0] = rb_intern("within");
    option_names[1] = rb_intern("timeout_result");
    id_timeout_error = rb_intern("TimeoutError");
    rb_define_method(rsb_cEvaluation, "await_result", evaluation_await_result, -1);
    VALUE sugar = rb_define_module_under(rsb_mRingspun, "KernelMethods");
    rb_define_singleton_method(rsb_mRingspun, "wait", module_wait, 1);
    rb_define_singleton_method(rsb_mRingspun, "await_resume!", module_await_resume, -1);
    rb_define_singleton_method(rsb_mRingspun, "await_fastest", module_await_fastest, -1);
    rb_define_private_method(sugar, "wait", module_wait, 1);
    rb_define_private_method(sugar, "await_resume!", module_await_resume, -1);
    rb_define_private_method(sugar, "await_fastest", module_await_fastest, -1);
}
