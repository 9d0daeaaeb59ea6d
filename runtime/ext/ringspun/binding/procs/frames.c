#include "frames.h"
#include "handle.h"

/* How many frames of the machine lie on other fibers than their strand's first. */
static inline uint32_t *fiber_frames_of(const rsb_machine *machine) { return rsb_part_data(machine, &rsb_frames_part); }

/* --- open, and closed --- */

static inline void enter(rsb_frame *frame, rsb_strand *strand) {
    frame->strand = strand;
    frame->inner = NULL;
    frame->outer = rsb_runs_of(strand)->frames;
    if (frame->outer) frame->outer->inner = frame;
    rsb_runs_of(strand)->frames = frame;
}

static inline void leave(rsb_frame *frame) {
    RS_ASSERT(frame->inner ? frame->inner->outer == frame : rsb_runs_of(frame->strand)->frames == frame);
    if (frame->inner) frame->inner->outer = frame->outer;
    else rsb_runs_of(frame->strand)->frames = frame->outer;
    if (frame->outer) frame->outer->inner = frame->inner;
}

/* The program may drop that fiber, or leave the frame suspended there. */
static void open_elsewhere(rsb_machine *machine, rsb_strand *strand, VALUE fiber) {
    rsb_keep_fiber(strand, fiber);
    ++*fiber_frames_of(machine);
    strand->tells_end = true;
}

void rsb_frame_open(rsb_machine *machine, rsb_frame *frame, VALUE fiber, VALUE proc, VALUE evaluation) {
    rsb_strand *strand = rsb_running(machine);
    if (RS_LIKELY(fiber == strand->home || (NIL_P(strand->home) && fiber == machine->root_fiber))) fiber = 0;
    else open_elsewhere(machine, strand, fiber);
    *frame = (rsb_frame){.fiber = fiber, .proc = proc, .evaluation = evaluation};
    enter(frame, strand);
    if (!evaluation) return;
    rsb_evaluation *handle = rsb_evaluation_data(evaluation);
    RS_CHECK(!handle->frame);
    handle->frame = frame;
    rs_evaluation_begin(&handle->engine);
}

/* Removes the exception that was to unwind this frame, so that it is not raised in other code of the strand. False: it was
 * raised. */
RSB_APART static bool take_back(rsb_machine *machine, rsb_frame *frame) {
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), frame->strand->id);
    VALUE raises = frame->strand->raises;
    for (long i = 0; engine && !NIL_P(raises) && i < RARRAY_LEN(raises); i++) {
        if (RARRAY_AREF(raises, i) != frame->cancels) continue;
        rb_ary_delete_at(raises, i);
        rs_take_interrupt(engine);
        return true;
    }
    return false;
}

void rsb_frame_spare(rsb_machine *machine, rsb_frame *frame) {
    if (!take_back(machine, frame)) return;
    frame->cancels = 0;
    rs_evaluation_unwound(machine->engine, &rsb_evaluation_data(frame->evaluation)->engine);
}

void rsb_frame_close(rsb_machine *machine, rsb_frame *frame) {
    rsb_strand *strand = frame->strand;
    if (RS_UNLIKELY(!strand)) return;
    leave(frame);
    if (RS_UNLIKELY(frame->fiber != 0)) rsb_let_fiber_go(strand, frame->fiber), --*fiber_frames_of(machine);
    if (RS_UNLIKELY(frame->cancels)) take_back(machine, frame); /* it has ended without another wait */
    if (RS_LIKELY(!frame->evaluation)) return;
    rsb_evaluation *evaluation = rsb_evaluation_data(frame->evaluation);
    evaluation->frame = NULL;
    rs_evaluation_unwound(machine->engine, &evaluation->engine);
}

/* --- suspended --- */

/* True if `other` is that fiber, or has resumed it, perhaps through further fibers. */
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

static rsb_frame *oldest_on(const rsb_strand *strand, VALUE fiber) {
    rsb_frame *oldest = NULL;
    for (rsb_frame *frame = rsb_runs_of(strand)->frames; frame; frame = frame->outer) {
        if (frame->fiber == fiber) oldest = frame;
    }
    return oldest;
}

static void enter_outside(rsb_frame *frame, rsb_frame *newer) {
    frame->strand = newer->strand;
    frame->inner = newer;
    frame->outer = newer->outer;
    if (frame->outer) frame->outer->inner = frame;
    newer->outer = frame;
}

/* Gives all frames on that frame's fiber to the strand, in their order. Frames that the strand has opened on that fiber itself
 * stay further inside. */
static void give(rsb_frame *frame, rsb_strand *strand) {
    rsb_strand *former = frame->strand;
    strand->tells_end = true;
    VALUE fiber = frame->fiber;
    rsb_frame *newer = oldest_on(strand, fiber);
    rsb_frame *oldest = frame;
    while (oldest->outer) oldest = oldest->outer;
    for (rsb_frame *next = oldest; (frame = next);) {
        next = frame->inner;
        if (frame->fiber != fiber) continue;
        rsb_keep_fiber(strand, fiber);
        leave(frame);
        rsb_let_fiber_go(former, fiber);
        if (newer) enter_outside(frame, newer);
        else enter(frame, strand);
    }
}

/* For the engine: whether the strand is to be interrupted in the running fiber. Exceptions that were to unwind a run that is
 * suspended meanwhile are taken back first. */
static bool interrupts_here(rs_machine *engine) {
    rsb_machine *machine = rs_user_of(engine);
    if (RS_LIKELY(*fiber_frames_of(machine) == 0)) return true;
    VALUE here = rb_fiber_current();
    for (rsb_frame *frame = rsb_runs_of(rsb_running(machine))->frames; frame; frame = frame->outer) {
        if (frame->cancels && frame->fiber && !resumed_by(here, frame->fiber)) rsb_frame_spare(machine, frame);
    }
    return rs_strand_interrupts(rs_running(engine)) > 0;
}

static bool runs_in(rsb_machine *machine, const rsb_strand *strand, VALUE fiber) {
    VALUE innermost = strand == rsb_running(machine) ? rb_fiber_current() : strand->fiber;
    return !NIL_P(innermost) && resumed_by(innermost, fiber);
}

void rsb_frame_follow(rsb_machine *machine, rsb_frame *frame) {
    if (RS_LIKELY(!frame->fiber) || runs_in(machine, frame->strand, frame->fiber)) return;
    RS_EACH_STRAND(rs_strands_of(machine->engine), strand) {
        if (!rs_strand_user(strand) || !runs_in(machine, rs_strand_user(strand), frame->fiber)) continue;
        give(frame, rs_strand_user(strand));
        return;
    }
}

static VALUE first_fiber(const rsb_machine *machine, const rsb_strand *strand) {
    return NIL_P(strand->home) ? machine->root_fiber : strand->home;
}

static rsb_frame *newest_on(const rsb_machine *machine, const rsb_strand *strand, const void *data) {
    for (rsb_frame *frame = rsb_runs_of(strand)->frames; frame; frame = frame->outer) {
        VALUE fiber = frame->fiber ? frame->fiber : first_fiber(machine, strand);
        if (!NIL_P(fiber) && RTYPEDDATA_GET_DATA(fiber) == data) return frame;
    }
    return NULL;
}

static rsb_frame *take_over(rsb_machine *machine, rsb_strand *strand, const void *data) {
    RS_EACH_STRAND(rs_strands_of(machine->engine), other) {
        if (!rs_strand_user(other) || rs_strand_user(other) == strand) continue;
        rsb_frame *frame = newest_on(machine, rs_strand_user(other), data);
        if (!frame || !frame->fiber) continue;
        give(frame, strand);
        return frame;
    }
    return NULL;
}

rsb_frame *rsb_frame_here(rsb_machine *machine) {
    rsb_strand *strand = rsb_running(machine);
    if (RS_LIKELY(*fiber_frames_of(machine) == 0)) return rsb_runs_of(strand)->frames;
    for (const void *data = RTYPEDDATA_GET_DATA(rb_fiber_current()); data; data = rsb_outer_stack(data)) {
        rsb_frame *frame = newest_on(machine, strand, data);
        if (!frame) frame = take_over(machine, strand, data);
        if (frame) return frame;
    }
    rsb_frame *frame = rsb_runs_of(strand)->frames; /* a fiber entered by Fiber#transfer has no resumer: take the frame on the first fiber */
    while (frame && frame->fiber) frame = frame->outer;
    return frame;
}

/* Whether the running code of the root strand is inside a run. */
static bool is_in_frame(const rsb_machine *machine, const rsb_strand *root) {
    VALUE here = rb_fiber_current();
    VALUE first = first_fiber(machine, root);
    for (const rsb_frame *frame = rsb_runs_of(root)->frames; frame; frame = frame->outer) {
        if (resumed_by(here, frame->fiber ? frame->fiber : first)) return true;
    }
    return false;
}

static void leave_for_good(rsb_machine *machine, rsb_frame *frame) {
    leave(frame);
    if (frame->fiber) --*fiber_frames_of(machine);
    frame->strand = NULL;
    frame->outer = frame->inner = NULL;
    if (!frame->evaluation) return;
    rsb_evaluation_data(frame->evaluation)->frame = NULL;
    /* Its handle gets another result. If the fiber is resumed after all, that is nothing to the run. */
    if (!rsb_is_concluded(frame->evaluation)) frame->evaluation = 0;
}

/* The strand or its machine has ended: concludes the runs that are suspended in other fibers. */
static void frames_abandon(rsb_machine *machine, rsb_strand *strand) {
    while (rsb_runs_of(strand)->frames) {
        rsb_frame *frame = rsb_runs_of(strand)->frames;
        VALUE object = frame->evaluation;
        leave_for_good(machine, frame);
        if (!object) continue;
        VALUE error = rb_exc_new_cstr(rsb_eTerminated, "the evaluation was suspended with its fiber when its strand ended");
        rsb_conclude(machine, object, error);
        rs_evaluation_unwound(machine->engine, &rsb_evaluation_data(object)->engine);
        RB_GC_GUARD(object);
    }
}

/* Closes the frames of strands of the parent. Their fibers may still be resumed in the child. */
static void frames_forked(rsb_machine *machine, rsb_strand *survivor) {
    /* The strands that wait for these answers are the parent's. */
    for (rsb_frame *frame = rsb_runs_of(survivor)->frames; frame; frame = frame->outer) frame->answer = NULL;
    RS_EACH_STRAND(rs_strands_of(machine->engine), engine) {
        rsb_strand *strand = rs_strand_user(engine);
        if (!strand || strand == survivor) continue;
        while (rsb_runs_of(strand)->frames) leave_for_good(machine, rsb_runs_of(strand)->frames);
    }
}

bool rsb_frame_is_of(const rsb_frame *frame, const rsb_strand *strand) {
    for (const rsb_frame *one = rsb_runs_of(strand)->frames; one; one = one->outer) {
        if (one == frame) return true;
    }
    return false;
}

static void check_closable(const rsb_machine *machine, const rsb_strand *root) {
    if (is_in_frame(machine, root)) {
        rb_raise(rsb_eUsage, "a machine is not closed inside a concurrent proc; close it after its call");
    }
}

static void mark_runs(rsb_strand *strand) {
    rb_gc_mark(rsb_runs_of(strand)->evaluation);
    rb_gc_mark(rsb_runs_of(strand)->resume_value);
}

rsb_part rsb_frames_part = {.data_size = sizeof(uint32_t), .strand_size = sizeof(rsb_strand_runs), .mark_strand = mark_runs,
                            .forked = frames_forked, .strand_ends = frames_abandon, .check_closable = check_closable};

void rsb_init_frames(void) {
    rsb_register_part(&rsb_frames_part);
    rsb_driver.interrupts_here = interrupts_here;
}
