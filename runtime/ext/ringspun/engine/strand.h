/* strand: the table of strands and the run queue. Owned by the machine's thread.
 *
 * States:  FREE -> NEW -> RUNNING <-> PARKED -> READY -> RUNNING ... -> FREE (its index with the next generation)
 *
 * The central invariant: every park takes a fresh ticket, and exactly one wake that shows this ticket is accepted. Any
 * other is dropped and counted. There is one run-queue link per strand, so a double resume cannot even be written down.
 * Slots never move (chunks), so timers and lists may sit inside them.
 */
#ifndef RINGSPUN_STRAND_H
#define RINGSPUN_STRAND_H

#include "list.h"
#include "scope.h"
#include "select.h"
#include "timer.h"

typedef enum { RS_STRAND_FREE, RS_STRAND_NEW, RS_STRAND_READY, RS_STRAND_RUNNING, RS_STRAND_PARKED } rs_strand_state;

typedef enum {
    RS_WAIT_NONE, RS_WAIT_YIELD, RS_WAIT_SLEEP, RS_WAIT_OP, RS_WAIT_LIST, RS_WAIT_JOIN, RS_WAIT_SCOPE, RS_WAIT_SUSPEND,
    RS_WAIT_BLOCK, RS_WAIT_WAKER, RS_WAIT_EVALUATION, RS_WAIT_CHANNEL, RS_WAIT_KINDS
} rs_wait_kind;

/* How a wait ended. INTERRUPT: the binding holds something to raise here. */
typedef enum { RS_WAKE_VALUE, RS_WAKE_TIMEOUT, RS_WAKE_CANCEL, RS_WAKE_INTERRUPT } rs_wake_kind;

/* Neither a cancellation nor an interrupt ends this wait; for the few that must see their end (a scope's own exit). */
#define RS_PARK_SHIELDED 1u

typedef struct rs_strand {
    uint32_t index;
    uint32_t generation;
    uint32_t run_next;
    uint32_t interrupts;        /* things to raise that the binding holds for this strand */
    uint8_t state;
    uint8_t wait;
    uint8_t wake;
    uint8_t park_flags;
    bool permit;                /* an unblock that came before its block-like park */
    bool unblocked;             /* this block-like park already had its unblock */
    bool queued;
    uint32_t shield_depth;
    uint32_t op;
    uint64_t ticket;
    int64_t result;
    int64_t parked_at_ns;       /* the binding's note; 0: not taken */
    rs_timer timer;
    rs_waiter waiter;
    rs_list joiners;
    rs_source watched;          /* for its end */
    rs_scope *scope;            /* innermost scope of those that govern what it runs */
    rs_scope *newest;           /* all that it has open */
    uint32_t stacked;           /* how many of them were opened on other stacks than its first */
    rs_scope own;               /* cancels just this strand; child of the scope it was spawned into */
    void *user;
} rs_strand;

#define RS_STRAND_CHUNK 256u

typedef struct {
    rs_strand **chunks;
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    uint32_t free_head;
    uint32_t live;
    uint32_t limit;
    uint32_t run_head;
    uint32_t run_tail;
    uint32_t run_len;
} rs_strands;

void rs_strands_init(rs_strands *strands, uint32_t limit);
void rs_strands_free(rs_strands *strands);

/* A slot in state NEW, or NULL when the limit is reached. */
rs_strand *rs_strand_take(rs_strands *strands);
void rs_strand_release(rs_strands *strands, rs_strand *strand);

static inline rs_strand *rs_strand_at(const rs_strands *strands, uint32_t index) {
    return &strands->chunks[index / RS_STRAND_CHUNK][index % RS_STRAND_CHUNK];
}

static inline rs_id rs_strand_id(const rs_strand *strand) { return rs_id_make(strand->index, strand->generation); }

/* The strand of that name, or NULL when it has ended. */
rs_strand *rs_strand_find(const rs_strands *strands, rs_id id);

void rs_run_push(rs_strands *strands, rs_strand *strand);
void rs_run_push_front(rs_strands *strands, rs_strand *strand);
rs_strand *rs_run_pop(rs_strands *strands);
void rs_run_forget(rs_strands *strands);

const char *rs_wait_name(uint32_t wait);

#endif
