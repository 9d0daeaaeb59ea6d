/* strand: what runs and waits, as a machine keeps it. Owned by the machine's thread.
 *
 * States:  FREE -> NEW -> RUNNING -> PARKED -> READY -> RUNNING ...; RUNNING -> READY by a yield, or
 *          displaced; FREE from any of them (its index with the next generation)
 *
 * The central invariant: every park takes a fresh ticket, and of the wakes that show this ticket one is accepted. Any
 * other is dropped and counted. There is one run-queue link per strand, so a double resume cannot even be written down.
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

/* All that a machine has (rs_strands_of). */
typedef struct rs_strands rs_strands;

/* An index below rs_strands_names. */
rs_strand *rs_strand_at(const rs_strands *strands, uint32_t index);

/* How many indices were ever given out: that of the next strand is this at most. */
uint32_t rs_strands_names(const rs_strands *strands);

/* How many have not ended. */
uint32_t rs_strands_live(const rs_strands *strands);

/* Those that have not ended, one after the other: the one behind `strand` (NULL: the first of all), or NULL. It may end
 * meanwhile. */
rs_strand *rs_strands_next(const rs_strands *strands, const rs_strand *strand);

#define RS_EACH_STRAND(strands, strand) for (rs_strand *strand = NULL; (strand = rs_strands_next(strands, strand));)

static inline rs_id rs_strand_id(const rs_strand *strand) { return rs_id_make(strand->index, strand->generation); }

/* The strand of that name, or NULL when it has ended. */
rs_strand *rs_strand_find(const rs_strands *strands, rs_id id);

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
