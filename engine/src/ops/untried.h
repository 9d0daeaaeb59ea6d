/* untried: the rule by which requests about streams go to the backend without a try of ours. Plain data of a machine, in its rs_ops.
 *
 * A try is a system call for each; a backend that gathers what strands ask for makes one for all of them. But who hands its request
 * over parks and comes back, which costs RS_UNTRIED_EXTRA_NS more than a try that finds what it wants. So it pays where a call costs
 * more than that and as many strands are ready that their requests share one. What a call costs is measured, once and not before many
 * have been ready; it decides about speed alone. docs/decisions/32-the-ring-for-many.md has the numbers.
 */
#ifndef RINGSPUN_UNTRIED_H
#define RINGSPUN_UNTRIED_H

#include "ringspun/core/base.h"

#define RS_UNTRIED_NEVER UINT32_MAX

/* What an op costs by the ring, beside a call, more than by a try. */
#define RS_UNTRIED_EXTRA_NS 450

/* Fewer that are ready are no crowd, however dear a call is. */
#define RS_UNTRIED_FEW 4u

/* Requests of a crowd that are tried before a call is measured: a program that is over soon does without. */
#define RS_UNTRIED_BEFORE 256u

/* Requests that are tried behind a tick in which fewer were handed over than would have been worth it: who is ready computes, and asks
 * for little. */
#define RS_UNTRIED_REST 64u

typedef struct {
    int64_t (*measure)(void);   /* NULL: it was, or nothing depends on it */
    uint32_t least;             /* strands that must be ready */
    uint32_t before;            /* requests of a crowd until it is measured */
    uint32_t rest;              /* requests until it goes on */
    uint32_t given;             /* in the present tick, */
    uint64_t tick;              /* which has that number */
} rs_untried;

/* How many must be ready where a call costs that. */
uint32_t rs_untried_least(int64_t call_ns);

/* A rule that measures by that function; and one for whoever is told to hand over all. */
rs_untried rs_untried_begin(int64_t (*measure)(void));
rs_untried rs_untried_always(void);

/* It is not even asked in a quiet machine. */
static inline bool rs_untried_is_out(const rs_untried *untried, uint32_t ready) {
    return (uint64_t)ready + untried->given < untried->least;
}

/* Whether the next one is to be handed over, in the tick of that number, with as many strands ready beside the one that asks. */
bool rs_untried_wants(rs_untried *untried, uint64_t tick, uint32_t ready);

/* It was. */
static inline void rs_untried_gave(rs_untried *untried) { untried->given++; }

#endif
