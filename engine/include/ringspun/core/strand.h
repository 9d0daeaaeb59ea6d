/* strand: the table of strands and the run queue. Owned by the machine's thread.
 *
 * States:  FREE -> NEW -> RUNNING -> PARKED -> READY -> RUNNING ...; RUNNING -> READY by a yield, or
 *          displaced; FREE from any of them (its index with the next generation)
 *
 * The central invariant: every park takes a fresh ticket, and of the wakes that show this ticket one is accepted. Any
 * other is dropped and counted. There is one run-queue link per strand, so a double resume cannot even be written down.
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
#ifndef RINGSPUN_STRAND_H
#define RINGSPUN_STRAND_H

#include "ringspun/core/list.h"
#include "ringspun/core/scope.h"
#include "ringspun/core/slab.h"
#include "ringspun/core/source.h"
#include "ringspun/core/timer.h"

typedef enum { RS_STRAND_FREE, RS_STRAND_NEW, RS_STRAND_READY, RS_STRAND_RUNNING, RS_STRAND_PARKED } rs_strand_state;

typedef enum {
    RS_WAIT_NONE, RS_WAIT_YIELD, RS_WAIT_SLEEP, RS_WAIT_OP, RS_WAIT_LIST, RS_WAIT_JOIN, RS_WAIT_SCOPE, RS_WAIT_SUSPEND,
    RS_WAIT_BLOCK, RS_WAIT_WAKER, RS_WAIT_EVALUATION, RS_WAIT_CHANNEL, RS_WAIT_MUTEX, RS_WAIT_KINDS
} rs_wait_kind;

/* How a wait ended. INTERRUPT: the binding holds something to raise here. */
typedef enum { RS_WAKE_VALUE, RS_WAKE_TIMEOUT, RS_WAKE_CANCEL, RS_WAKE_INTERRUPT, RS_WAKE_NO_MEMORY } rs_wake_kind;

/* Neither a cancellation nor an interrupt ends this wait; for the few that must see their end (a scope's own exit). */
#define RS_PARK_SHIELDED 1u

/* Places in the run queue. The others count from there. */
enum {
    RS_ORDER_FRONT,             /* before all: somebody goes on when it has had its turn */
    RS_ORDER_TICK,              /* when a tick begins: in the place of its caller, or woken from outside */
};

typedef struct rs_strand {
    RS_SLOT;
    uint32_t run_next;
    uint32_t interrupts;        /* things to raise that the binding holds for this strand */
    uint8_t state;
    uint8_t wait;
    uint8_t wake;
    uint8_t park_flags;
    bool permit;                /* an unblock that came before its block-like park */
    bool unblocked;             /* this block-like park already had its unblock */
    bool queued;
    bool resumed;               /* the resumable park was */
    uint32_t shield_depth;
    uint32_t locks;             /* that it holds; one that ends with some has made a mistake */
    uint32_t op;
    uint64_t ticket;
    uint64_t resumable;         /* the ticket of a park that rs_resume may end */
    uint64_t ready_order;       /* when it came into the run queue: after those, or one of them */
    int64_t result;
    uint64_t hand;              /* a word of the driver's: what it was handed, or offers to who makes room, while it waits */
    int64_t parked_at_ns;       /* rs_machine_note_parks; 0: not noted */
    rs_timer timer;
    rs_waiter waiter;
    rs_list joiners;
    uint32_t stacked;           /* how many of its open scopes were opened on other stacks than its first */
    rs_source watched;          /* for its end */
    rs_scope *scope;            /* innermost scope of those that govern what it runs */
    rs_links open_scopes;       /* the newest first */
    struct rs_batch *batch;     /* the runs that it is to begin; NULL: none */
    rs_scope own;               /* cancels just this strand; child of the scope it was spawned into */
    void *user;
} rs_strand;

typedef struct {
    uint32_t head;
    uint32_t tail;
} rs_run_queue;

typedef struct {
    rs_slab slab;
    rs_run_queue woken;
    rs_run_queue others;        /* new, or at the end of a turn that they gave up themselves */
    uint32_t run_len;           /* of both */
    uint32_t woken_len;
    uint32_t passes_left;       /* so many of the woken may go before older ones of the others */
    uint32_t passes_due;        /* the same as soon as one of the others has run */
    bool passable;              /* one of the others has run since they were last passed */
    uint64_t last_order;
    uint64_t tick_order;        /* in whole ticks: those that came after it are the next tick's */
} rs_strands;

void rs_strands_init(rs_strands *strands, uint32_t limit);
void rs_strands_free(rs_strands *strands);

/* A slot in state NEW, or NULL when the limit is reached, or there is no memory for more. */
rs_strand *rs_strand_take(rs_strands *strands);
void rs_strand_release(rs_strands *strands, rs_strand *strand);

static inline rs_strand *rs_strand_at(const rs_strands *strands, uint32_t index) {
    RS_CHECK(index < rs_slab_len(&strands->slab));
    return RS_SLAB_AT(&strands->slab, rs_strand, index);
}

/* How many indices were ever given out: that of the next strand is this at most. */
static inline uint32_t rs_strands_names(const rs_strands *strands) { return rs_slab_len(&strands->slab); }

/* How many have not ended. */
static inline uint32_t rs_strands_live(const rs_strands *strands) { return strands->slab.used; }

/* The same from any thread: at some moment. */
static inline uint32_t rs_strands_live_once(const rs_strands *strands) {
    return __atomic_load_n(&strands->slab.used, __ATOMIC_ACQUIRE);
}

/* Those that have not ended, one after the other: the one behind `strand` (NULL: the first of all), or NULL. It may end
 * meanwhile. */
rs_strand *rs_strands_next(const rs_strands *strands, const rs_strand *strand);

#define RS_EACH_STRAND(strands, strand) for (rs_strand *strand = NULL; (strand = rs_strands_next(strands, strand));)

static inline rs_id rs_strand_id(const rs_strand *strand) { return rs_id_make(strand->index, strand->generation); }

/* The strand of that name, or NULL when it has ended. */
rs_strand *rs_strand_find(const rs_strands *strands, rs_id id);

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

/* A new strand waits for its first turn, and has it; that of rs_spawn_first both at once. */
static inline void rs_strand_awaits_turn(rs_strand *strand) {
    RS_CHECK(strand->ticket == 0 && strand->wait == RS_WAIT_NONE);
    strand->wait = RS_WAIT_YIELD;
}
static inline void rs_strand_began(rs_strand *strand) {
    RS_CHECK(strand->state == RS_STRAND_RUNNING && strand->ticket == 0);
    strand->wait = RS_WAIT_NONE;
}

/* What it was handed, which is its own from now on. */
static inline uint64_t rs_strand_take_hand(rs_strand *strand) {
    uint64_t word = strand->hand;
    strand->hand = 0;
    return word;
}

/* It holds one more lock, and one less. */
static inline void rs_lock_taken(rs_strand *strand) { strand->locks++; }
static inline void rs_lock_given(rs_strand *strand) {
    RS_CHECK(strand->locks > 0);
    strand->locks--;
}

const char *rs_wait_name(uint32_t wait);

#endif
