/* call: the methods that call a concurrent proc: on the caller's own stack, at once on another, or later. */
#include "evaluation.h"

static inline VALUE given_block(void) { return RS_UNLIKELY(rb_block_given_p()) ? rb_block_proc() : Qnil; }

/* --- on the caller's own stack --- */

typedef struct {
    VALUE proc;
    int argc;
    const VALUE *argv;
    VALUE block;
    int keywords;
} inline_call;

static VALUE call_inline(VALUE argument) {
    const inline_call *call = (const inline_call *)argument;
    return rb_proc_call_with_block_kw(call->proc, call->argc, call->argv, call->block, call->keywords);
}

/* It was concluded from outside and has unwound. The strand that concluded it goes on first, and then this caller. */
static VALUE end_concluded(rsb_machine *machine, rsb_frame *frame) {
    VALUE evaluation = frame->evaluation;
    VALUE result = rsb_evaluation_data(evaluation)->engine.result;
    rsb_frame_close(machine, frame);
    rsb_yield(machine);
    RB_GC_GUARD(evaluation);
    return rsb_raise_or_return(result);
}

NORETURN(static void leave_by_handler(rsb_machine *machine, rsb_frame *frame, VALUE error, int state));
static void leave_by_handler(rsb_machine *machine, rsb_frame *frame, VALUE error, int state) {
    if (frame->evaluation && !rsb_is_concluded(frame->evaluation)) rsb_conclude(machine, frame->evaluation, error);
    rsb_frame_close(machine, frame);
    rb_jump_tag(state);
}

RSB_APART static VALUE end_inline(rsb_machine *machine, rsb_frame *frame, VALUE value, int state) {
    VALUE error = state ? rb_errinfo() : Qnil;
    bool exception = state && rsb_is_exception(error);
    bool cancelled = exception && rb_obj_is_kind_of(error, rsb_eCancelled);
    bool rescueable = exception && rsb_is_rescueable(error);
    if (rescueable) {
        rb_set_errinfo(Qnil);
        int left = rsb_trigger_error(frame->proc, error);
        if (RS_UNLIKELY(left)) leave_by_handler(machine, frame, error, left);
    }
    if (rsb_is_concluded(frame->evaluation) && (!state || rescueable || (cancelled && error == frame->cancels))) {
        if (cancelled) rb_set_errinfo(Qnil);
        if (frame->cancels && frame->strand) return end_concluded(machine, frame);
        value = rsb_evaluation_data(frame->evaluation)->engine.result; /* the run itself has concluded it, or code that it called */
        rsb_frame_close(machine, frame);
        return rsb_raise_or_return(value);
    }
    if (frame->evaluation) {
        VALUE result = !state ? value : error;
        if (state && (!exception || cancelled)) {
            result = rb_exc_new_cstr(rsb_eTerminated, "the evaluation was cancelled before it had a result");
        }
        rsb_conclude(machine, frame->evaluation, result);
    }
    rsb_frame_close(machine, frame);
    if (rescueable) rb_exc_raise(error);
    if (state) rb_jump_tag(state);
    return rsb_raise_or_return(value);
}

/* Runs the proc now, in the calling strand and on its stack, and returns its value.
 *
 * May switch strands.
 *
 * @return [Object] the proc's value
 * @raise [Exception] what the proc raises, or its value if that is an exception
 * @since 0.1.0
 */
static VALUE proc_call(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine = rsb_current();
    rsb_frame frame;
    int state = 0;
    inline_call call = {self, argc, argv, given_block(), rb_keyword_given_p()};
    VALUE machine_object = machine->self;
    rsb_frame_open(machine, &frame, rb_fiber_current(), self, 0);
    VALUE value = rb_protect(call_inline, (VALUE)&call, &state);
    rsb_notice_fork(machine);
    RB_GC_GUARD(machine_object); /* the machine may be closed by now, if this was suspended with its fiber */
    if (RS_UNLIKELY(state || frame.evaluation)) return end_inline(machine, &frame, value, state);
    rsb_frame_close(machine, &frame);
    return rsb_raise_or_return(value);
}

/* --- on stacks of their own --- */

static rsb_start start_of(rsb_machine *machine, int argc, const VALUE *argv, VALUE self) {
    return rsb_start_of(machine, self, argc, argv, given_block(), argc > 0 && rb_keyword_given_p());
}

/* False: the run waits, and `value` is its evaluation. */
static bool start_now(rsb_machine *machine, int argc, const VALUE *argv, VALUE self, VALUE *value) {
    rsb_start start = start_of(machine, argc, argv, self);
    bool failed = false;
    bool ended = rsb_start_now(machine, &start, value, &failed);
    if (RS_UNLIKELY(failed)) rb_exc_raise(*value);
    return ended;
}

/* Runs the proc now, in a strand of its own, until it ends or waits.
 *
 * May switch strands.
 *
 * @return [Object, Evaluation] the proc's value; if it waits, the evaluation of the run that goes on
 * @raise [Exception] what the proc raises before it waits
 * @since 0.1.0
 */
static VALUE proc_call_nonblock(int argc, VALUE *argv, VALUE self) {
    VALUE value = Qnil;
    return RS_LIKELY(start_now(rsb_current(), argc, argv, self, &value)) ? rsb_raise_or_return(value) : value;
}

/* {#call} as in the gem `concurrently`: in a strand of its own, which goes on if the caller is cancelled. It awaits the
 * evaluation that {#call_nonblock} returns, also one that is the proc's value. */
static VALUE proc_call_and_await(int argc, VALUE *argv, VALUE self) {
    VALUE value = Qnil;
    start_now(rsb_current(), argc, argv, self, &value);
    return rsb_raise_or_return(rsb_result_of_run(value));
}

/* Starts a run of the proc in a strand of its own, which begins after the strands that are ready have had their turn.
 *
 * @return [Evaluation]
 * @since 0.1.0
 */
static VALUE proc_call_detached(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine = rsb_current();
    rsb_start start = start_of(machine, argc, argv, self);
    VALUE evaluation = start.evaluation = rsb_evaluation_new(machine, self, rsb_evaluation_class(self), RS_EVALUATION_STARTS);
    rsb_start_later(machine, &start);
    return evaluation;
}

/* Like {#call_detached}, without an evaluation: errors reach the error handlers only.
 *
 * @return [nil]
 * @since 0.1.0
 */
static VALUE proc_call_and_forget(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine = rsb_current();
    rsb_start start = start_of(machine, argc, argv, self);
    rsb_start_later(machine, &start);
    return Qnil;
}

void rsb_init_call(void) {
    rb_define_method(rsb_cConcurrentProc, "call", proc_call, -1);
    rb_define_method(rsb_cConcurrentProc, "[]", proc_call, -1);
    rb_define_method(rsb_cConcurrentProc, "call_nonblock", proc_call_nonblock, -1);
    rb_define_method(rsb_cConcurrentProc, "call_detached", proc_call_detached, -1);
    rb_define_method(rsb_cConcurrentProc, "call_and_forget", proc_call_and_forget, -1);
    rb_define_private_method(rsb_cConcurrentProc, "call_and_await", proc_call_and_await, -1);
}
