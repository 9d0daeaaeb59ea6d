/* evaluation: a run of a concurrent proc, as all but the run itself see it: its state, its result, the strands and selectors that
 * wait for that, and the strands that wait until the run has unwound. Owned by the machine's thread.
 *
 * States:  STARTS (it has not begun) -> RUNS -> CONCLUDED, or STARTS -> CONCLUDED, and then it never begins. OF_STRAND is apart:
 *          what a strand runs outside of any concurrent proc. It can wait and be resumed, and is never concluded.
 *
 * Either the run ends (rs_evaluation_conclude), or somebody else sets its result before (rs_evaluation_conclude_to). A run that
 * waits is unwound in the second case. Until then it stays CONCLUDED with those who wait for the result still waiting. At the end
 * of the run (rs_evaluation_unwound) the strands that have concluded it go on first.
 *
 * A result is a word of the driver's, who keeps alive what it stands for. The driver also keeps the evaluation in its place while a
 * strand waits in it (core/list.h), and only then.
 */
#ifndef RINGSPUN_ENGINE_EVALUATION_H
#define RINGSPUN_ENGINE_EVALUATION_H

#include "ringspun/core/machine.h"

typedef enum {
    RS_EVALUATION_STARTS, RS_EVALUATION_RUNS, RS_EVALUATION_CONCLUDED, RS_EVALUATION_OF_STRAND
} rs_evaluation_state;

typedef struct {
    uintptr_t result;           /* CONCLUDED */
    rs_source *watched;         /* what selectors wait for; NULL: none does. Allocated apart, so that the evaluation may move */
    rs_list waiters;            /* for the result */
    rs_list unwinders;          /* have concluded it, and wait until its run has unwound */
    uint8_t state;
    bool unwinds;               /* CONCLUDED by another strand, and the run has not ended */
} rs_evaluation;

static inline void rs_evaluation_init(rs_evaluation *evaluation, rs_evaluation_state state) {
    *evaluation = (rs_evaluation){.state = (uint8_t)state};
}

/* Its memory goes. */
void rs_evaluation_free(rs_evaluation *evaluation);

static inline bool rs_is_concluded(const rs_evaluation *evaluation) {
    RS_CHECK(!evaluation->unwinds || evaluation->state == RS_EVALUATION_CONCLUDED);
    return evaluation->state == RS_EVALUATION_CONCLUDED;
}

static inline void rs_evaluation_begin(rs_evaluation *evaluation) {
    RS_CHECK(evaluation->state == RS_EVALUATION_STARTS);
    evaluation->state = RS_EVALUATION_RUNS;
}

/* What a selector watches, made by the first call; NULL: no memory. Not for one that is concluded. */
rs_source *rs_evaluation_source(rs_evaluation *evaluation);

/* Its run has ended, or never begins. Where it is concluded already, that result stays. */
void rs_evaluation_conclude(rs_machine *machine, rs_evaluation *evaluation, uintptr_t result);

/* Somebody else sets its result. `unwinds`: the run is waiting and is made to unwind, at the end of which rs_evaluation_unwound is
 * called. */
void rs_evaluation_conclude_to(rs_machine *machine, rs_evaluation *evaluation, uintptr_t result, bool unwinds);

/* The run has ended, or will not be unwound after all. Nothing happens where nobody has concluded it from outside. */
void rs_evaluation_unwound(rs_machine *machine, rs_evaluation *evaluation);

/* In a forked child: who waited for it has stayed in the parent. `lost`: so has the run, or the strand of one OF_STRAND, and that is
 * its result. */
void rs_evaluation_forked(rs_evaluation *evaluation, bool lost, uintptr_t result);

#endif
