/* strand: what a machine keeps for what runs and waits. Owned by the machine's thread. */
#ifndef RINGSPUN_CORE_STRAND_H
#define RINGSPUN_CORE_STRAND_H

#include "ringspun/core/strand.h"

struct rs_strand {
    union {
        rs_strand_head head;
        struct {                /* the same members */
            RS_SLOT;
            void *user;
        };
    };
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
};

#endif
