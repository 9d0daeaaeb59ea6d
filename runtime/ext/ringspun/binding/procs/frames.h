/* frames: runs of concurrent procs while they run. A frame lies on the stack of the function that runs the proc, in the list of its
 * strand's frames, and in nothing else.
 *
 * One on another fiber than its strand's first may be suspended with that fiber, as that of an Enumerator between two items is, and
 * perhaps for ever. What its strand waits for meanwhile is no wait of its own. Another strand may go on with it, and then it is that
 * one's; who resumes a fiber tells nobody, so that is found out when it matters.
 */
#ifndef RINGSPUN_FRAMES_H
#define RINGSPUN_FRAMES_H

#include "binding/core/core.h"

struct rsb_start_answer;

typedef struct rsb_frame {
    struct rsb_frame *outer;    /* the strand's frames, the newest first */
    struct rsb_frame *inner;
    rsb_strand *strand;         /* NULL: it has ended, and this is suspended */
    VALUE fiber;                /* on whose stack it lies; 0: the strand's first */
    VALUE proc;
    VALUE evaluation;           /* 0: nobody has asked for it */
    struct rsb_start_answer *answer; /* NULL: nobody waits for it */
    VALUE cancels;              /* what was delivered to unwind it, or 0 */
    bool concluded;             /* from outside: what it ends with is not asked for any more */
} rsb_frame;

/* `fiber` is the one that runs. */
void rsb_frame_open(rsb_machine *machine, rsb_frame *frame, VALUE fiber, VALUE proc, VALUE evaluation);
void rsb_frame_close(rsb_machine *machine, rsb_frame *frame);
/* It is not unwound, unless that has begun. */
void rsb_frame_spare(rsb_machine *machine, rsb_frame *frame);

/* Where another strand goes on with it, it is that one's from now on. */
void rsb_frame_follow(rsb_machine *machine, rsb_frame *frame);
/* The run whose code is on this stack, or below it; NULL: none. */
rsb_frame *rsb_frame_here(rsb_machine *machine);
/* Whether what its strand waits for is a wait of its own. */
bool rsb_frame_goes_on(const rsb_frame *frame);
bool rsb_frame_is_of(const rsb_frame *frame, const rsb_strand *strand);

void rsb_init_frames(void);

#endif
