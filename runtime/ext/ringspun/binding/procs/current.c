/* current: the evaluation of the code that runs: the handle of its run, or of its strand where it is in none. */
#include "evaluation.h"

VALUE rsb_evaluation_of_frame(rsb_machine *machine, rsb_frame *frame) {
    if (frame->evaluation) return frame->evaluation;
    VALUE object = rsb_evaluation_make(machine, frame->proc, rsb_evaluation_class(frame->proc), RS_EVALUATION_RUNS);
    rsb_evaluation_data(object)->frame = frame;
    frame->evaluation = object;
    return rsb_evaluation_initialize(object);
}

static VALUE evaluation_of_strand(rsb_machine *machine, rsb_strand *strand) {
    if (!rsb_runs_of(strand)->evaluation) {
        VALUE object = rsb_evaluation_new(machine, Qnil, rsb_cEvaluation, RS_EVALUATION_OF_STRAND);
        rsb_evaluation_get(object)->strand = strand->self;
        strand->shown = true;
        rsb_runs_of(strand)->evaluation = object;
    }
    return rsb_runs_of(strand)->evaluation;
}

VALUE rsb_evaluation_here(rsb_machine *machine) {
    rsb_strand *strand = rsb_running(machine);
    rsb_frame *frame = rsb_frame_here(machine);
    return frame ? rsb_evaluation_of_frame(machine, frame) : evaluation_of_strand(machine, strand);
}

/* The evaluation of the running concurrent proc. Outside of one, that of the strand, which can wait and be resumed, but has no
 * result.
 *
 * @return [Evaluation]
 * @since 0.1.0 */
static VALUE evaluation_current(VALUE class) { return rsb_evaluation_here(rsb_current()); }

void rsb_init_current(void) { rb_define_singleton_method(rsb_cEvaluation, "current", evaluation_current, 0); }
