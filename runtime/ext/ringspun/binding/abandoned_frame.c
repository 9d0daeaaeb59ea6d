/* abandoned_frame: runs that are suspended with their fiber in the middle, as that of an Enumerator between two items is, and perhaps
 * for ever. What their strand waits for meanwhile is no wait of theirs, and when it ends, nobody goes on with them there. */
#include "evaluation.h"

/* Or is that fiber, or one that the other has resumed. */
static bool resumed_by(VALUE fiber, VALUE other) {
    const void *others = RTYPEDDATA_GET_DATA(other);
    for (const void *data = RTYPEDDATA_GET_DATA(fiber); data; data = rsb_outer_stack(data)) {
        if (data == others) return true;
    }
    return false;
}

bool rsb_frame_goes_on(const rsb_frame *frame) {
    const rsb_strand *strand = frame->strand;
    return RS_LIKELY(!frame->fiber) || NIL_P(strand->fiber) || resumed_by(strand->fiber, frame->fiber);
}

bool rsb_is_in_frame(const rsb_machine *machine, const rsb_strand *root) {
    VALUE here = rb_fiber_current();
    for (const rsb_frame *frame = root->frames; frame; frame = frame->outer) {
        if (resumed_by(here, frame->fiber ? frame->fiber : machine->root_fiber)) return true;
    }
    return false;
}

void rsb_frames_abandon(rsb_machine *machine, rsb_strand *strand) {
    while (strand->frames) {
        rsb_frame *frame = strand->frames;
        strand->frames = frame->outer;
        frame->strand = NULL;
        frame->outer = frame->inner = NULL;
        if (!frame->evaluation) continue;
        rsb_evaluation *evaluation = rsb_evaluation_get(frame->evaluation);
        evaluation->frame = NULL;
        VALUE error = rb_exc_new_cstr(rsb_eTerminated, "the evaluation was suspended with its fiber when its strand ended");
        rsb_evaluation_conclude(machine, evaluation, error);
        rs_list_wake_all_first(&machine->engine, &evaluation->unwinders);
    }
}

bool rsb_frame_is_of(const rsb_frame *frame, const rsb_strand *strand) {
    for (const rsb_frame *one = strand->frames; one; one = one->outer) {
        if (one == frame) return true;
    }
    return false;
}
