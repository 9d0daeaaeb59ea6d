/* strands: the table of strands and the run queue. Owned by the machine's thread.
 *
 * The run queue is first in, first out, but for two things. Who shall run next by order of its caller is put at its head: a
 * displaced strand, one spawned to run at once, one that is to unwind at once. And after a look at the backend and the timers, the
 * strands that wait to go on from a wake go before those that have used up their turn (rs_yield) and those that are new. Or else a
 * timer would be late by the turns of all who compute. Each woken strand of that moment may do so once, and only when one of the
 * others has had a turn since they were last passed: so a flood of wakes keeps nobody from running for ever.
 *
 * A machine in whole ticks (rs_options.whole_ticks) has another order. None passes another there, and a strand that becomes ready
 * runs in the next tick, unless it was put at the head.
 */
#ifndef RINGSPUN_STRANDS_H
#define RINGSPUN_STRANDS_H

#include "core/slab.h"
#include "core/strand.h"
#include "core/timers.h"

/* Places in the run queue. The others count from there. */
enum {
    RS_ORDER_FRONT,             /* before all: somebody goes on when it has had its turn */
    RS_ORDER_TICK,              /* when a tick begins: in the place of its caller, or woken from outside */
};

typedef struct {
    uint32_t head;
    uint32_t tail;
} rs_run_queue;

struct rs_strands {
    rs_slab slab;
    rs_run_queue woken;
    rs_run_queue others;        /* new, or at the end of a turn that they gave up themselves */
    uint32_t run_len;           /* of both */
    uint32_t woken_len;
    uint32_t passes_left;       /* woken ones that may still go before older ones of the others */
    uint32_t passes_due;        /* the same as soon as one of the others has run */
    bool passable;              /* one of the others has run since they were last passed */
    uint64_t last_order;
    uint64_t tick_order;        /* in whole ticks: those that came after it are the next tick's */
};

void rs_strands_init(rs_strands *strands, uint32_t limit);
void rs_strands_free(rs_strands *strands);

/* A slot in state NEW, or NULL when the limit is reached, or there is no memory for more. */
rs_strand *rs_strand_take(rs_strands *strands);
void rs_strand_release(rs_strands *strands, rs_strand *strand);

static inline rs_strand *rs_strands_slot(const rs_strands *strands, uint32_t index) {
    RS_CHECK(index < rs_slab_len(&strands->slab));
    return RS_SLAB_AT(&strands->slab, rs_strand, index);
}

/* rs_strands_live from any thread: at some moment. */
static inline uint32_t rs_strands_live_once(const rs_strands *strands) {
    return __atomic_load_n(&strands->slab.used, __ATOMIC_ACQUIRE);
}

/* The one place where a state changes, but for a fork, which forgets strands in any. */
static inline void rs_strand_become(rs_strand *strand, rs_strand_state state) {
    static const uint8_t from[] = {
        [RS_STRAND_FREE] = 1 << RS_STRAND_NEW | 1 << RS_STRAND_READY | 1 << RS_STRAND_RUNNING | 1 << RS_STRAND_PARKED,
        [RS_STRAND_NEW] = 1 << RS_STRAND_FREE,
        [RS_STRAND_READY] = 1 << RS_STRAND_RUNNING | 1 << RS_STRAND_PARKED,
        [RS_STRAND_RUNNING] = 1 << RS_STRAND_NEW | 1 << RS_STRAND_READY,
        [RS_STRAND_PARKED] = 1 << RS_STRAND_RUNNING,
    };
    (void)from;
    RS_CHECK(from[state] & (1 << strand->state));
    strand->state = (uint8_t)state;
}

void rs_run_push(rs_strands *strands, rs_strand *strand);
void rs_run_push_woken(rs_strands *strands, rs_strand *strand);
void rs_run_push_front(rs_strands *strands, rs_strand *strand);
/* Behind the first one, which was put there: there must be one. */
void rs_run_push_second(rs_strands *strands, rs_strand *strand);
/* Behind all that were put at the front, and before all others. */
void rs_run_push_behind_front(rs_strands *strands, rs_strand *strand);
/* Before the others, and not before those woken that may pass them. */
void rs_run_push_front_of_others(rs_strands *strands, rs_strand *strand);
rs_strand *rs_run_pop(rs_strands *strands);
void rs_run_forget(rs_strands *strands);

/* Those woken by now may go before the others: at once, or when one of these has run. */
void rs_run_prefer_woken(rs_strands *strands);

/* The head of the queue runs in the present tick. */
bool rs_run_is_due(const rs_strands *strands);

/* Puts the woken aside, and then behind those that were woken meanwhile, which go to the head of the queue. */
rs_run_queue rs_run_set_aside(rs_strands *strands);
void rs_run_put_behind(rs_strands *strands, const rs_run_queue *aside);

/* The one that came last and not at the front, or NULL when it is not in the queue any more, or is the present tick's. */
rs_strand *rs_run_last(const rs_strands *strands);

#endif
