/* conclude: ends a run, or its wait, from outside: Evaluation#conclude_to and #resume!. */
#include "evaluation.h"

static ID id_error, id_misuse_report;

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
    if (rsb_is_of_strand(evaluation)) {
        rb_raise(rsb_eUsage, "this is the evaluation of a strand and of no concurrent proc; use Machine#terminate to end a strand");
    }
    rsb_frame *frame = evaluation->frame;
    if (frame) rsb_frame_follow(machine, frame);
    bool unwinds = frame && frame->strand != rsb_running(machine) && rsb_frame_goes_on(frame);
    rs_evaluation_conclude_to(machine->engine, &evaluation->engine, result, unwinds);
    if (unwinds) unwind(machine, evaluation);
    RB_GC_GUARD(self);
    return ID2SYM(rb_intern("concluded"));
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE evaluation_concluded_p(VALUE self) { return rs_is_concluded(&rsb_evaluation_get(self)->engine) ? Qtrue : Qfalse; }

/* The strand that runs it, also when it is concluded already and goes on; NULL: none, or it is suspended with a fiber. */
static rsb_strand *strand_of(rsb_machine *machine, rsb_evaluation *evaluation) {
    if (rsb_is_of_strand(evaluation)) {
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
    return rs_may_resume(machine->engine, strand ? strand->id : RS_NO_ID) == RS_RESUMED ? Qtrue : Qfalse;
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
    rs_resumption answer = rs_resume(machine->engine, strand ? strand->id : RS_NO_ID);
    if (answer == RS_NOT_WAITING) fail(self, "not waiting");
    if (answer == RS_ENDED_ALREADY) fail(self, "already scheduled");
    rsb_runs_of(strand)->resume_value = argc ? argv[0] : Qnil;
    return ID2SYM(rb_intern("resumed"));
}

void rsb_init_conclude(void) {
    id_error = rb_intern("Error");
    id_misuse_report = rb_intern("misuse_report");
    rb_define_method(rsb_cEvaluation, "conclude_to", evaluation_conclude_to, 1);
    rb_define_method(rsb_cEvaluation, "concluded?", evaluation_concluded_p, 0);
    rb_define_method(rsb_cEvaluation, "waiting?", evaluation_waiting_p, 0);
    rb_define_method(rsb_cEvaluation, "resume!", evaluation_resume, -1);
    rb_define_private_method(rsb_cEvaluation, "misuse_report", evaluation_misuse_report, 1);
}
