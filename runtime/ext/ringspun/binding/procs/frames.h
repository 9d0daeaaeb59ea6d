/* frames: runs of concurrent procs. A frame lies on the stack of the function that runs the proc, and is in the list of its
 * strand's frames and in no other.
 *
 * A frame on another fiber than its strand's first may be suspended with that fiber, as that of an Enumerator is between two
 * items, and perhaps forever. The strand's waits are not the frame's meanwhile. Another strand may resume the fiber, and the
 * frame belongs to that strand then. There is no hook for that in CRuby, so it is found out when it matters.
 */
#ifndef RINGSPUN_FRAMES_H
#define RINGSPUN_FRAMES_H

#include "binding/core/core.h"

struct rsb_start_answer;

typedef struct rsb_frame {
    struct rsb_frame *outer;    /* the strand's frames, the newest first */
    struct rsb_frame *inner;
    rsb_strand *strand;         /* NULL: the strand has ended, and this frame is suspended */
    VALUE fiber;                /* on whose stack it lies; 0: the strand's first */
    VALUE proc;
    VALUE evaluation;           /* 0: there is no handle */
    struct rsb_start_answer *answer; /* NULL: the strand that started it does not wait for it */
    VALUE cancels;              /* the exception delivered to unwind it, or 0 */
} rsb_frame;

/* What this room keeps for a strand. */
typedef struct {
    VALUE evaluation;           /* the strand's own, for code outside of concurrent procs; 0: nobody has asked for it */
    VALUE resume_value;         /* of Evaluation#resume!, until the wait that it has ended is over */
    rsb_frame *frames;          /* the runs that it is in, the newest first */
    struct rsb_start_answer *answer; /* for the strand that waits until this one has begun its run, or NULL */
} rsb_strand_runs;

extern rsb_part rsb_frames_part;
static inline rsb_strand_runs *rsb_runs_of(const rsb_strand *strand) { return rsb_strand_part(strand, &rsb_frames_part); }

/* `fiber` is the running fiber. */
void rsb_frame_open(rsb_machine *machine, rsb_frame *frame, VALUE fiber, VALUE proc, VALUE evaluation);
void rsb_frame_close(rsb_machine *machine, rsb_frame *frame);
/* Takes back the exception that would unwind it, unless it has been raised. */
void rsb_frame_spare(rsb_machine *machine, rsb_frame *frame);

/* If another strand has resumed its fiber, gives the frame to that strand. */
void rsb_frame_follow(rsb_machine *machine, rsb_frame *frame);
/* The innermost frame of the running code: on this fiber's stack, or on those of the fibers that have resumed it. NULL: none. */
rsb_frame *rsb_frame_here(rsb_machine *machine);
/* False: it is suspended with its fiber, and the strand's waits are not its own. */
bool rsb_frame_goes_on(const rsb_frame *frame);
bool rsb_frame_is_of(const rsb_frame *frame, const rsb_strand *strand);

#endif
