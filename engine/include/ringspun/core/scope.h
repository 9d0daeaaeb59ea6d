/* scope: a tree of cancellation. Owned by the machine's thread.
 *
 * A scope has one owner, the strand that opened it and will close it, and counts the strands spawned into it. Every strand
 * also carries a scope of its own (how one strand alone is terminated), a child of the scope it was spawned into; scopes
 * that a strand opens nest inside that.
 *
 * Cancellation is level-triggered: once a scope is cancelled, every wait inside it ends at once and every later one is
 * refused, until the scope is closed. So a cancellation that arrives while an op completes is not lost: the op's result
 * is delivered, the next wait is refused. A shielded scope hides what is above it, never its own cancellation.
 *
 * A scope governs the code inside it. A strand whose program has stacks of its own (fibers, generators) may leave one of
 * them suspended in the middle of a scope: while others run that were not begun from there, that scope is aside. Whoever goes
 * on inside it is governed by it again, and by what is open around the code that has resumed it (rs_scope_follow).
 *
 * A deadline costs no timer until a strand inside really waits (rs_scope_arm, by the first park).
 */
#ifndef RINGSPUN_SCOPE_H
#define RINGSPUN_SCOPE_H

#include "ringspun/core/link.h"
#include "ringspun/core/list.h"
#include "ringspun/core/timer.h"

typedef enum { RS_NOT_CANCELLED, RS_CANCELLED_BY_CALL, RS_CANCELLED_BY_DEADLINE } rs_cancel_cause;

typedef struct rs_scope {
    struct rs_scope *parent;
    rs_links children;
    rs_link link;               /* of its parent's children */
    rs_link of_owner;           /* of those that its owner has open */
    struct rs_scope *inner;     /* only inside rs_scope_follow */
    const void *stack;          /* of its owner's stacks the one that opened it; NULL: the one that the strand began on */
    rs_timer timer;
    int64_t deadline_ns;
    uint32_t owner;             /* strand index */
    uint32_t live;              /* strands spawned into it that have not ended */
    uint8_t cause;
    bool effective;             /* cancelled itself, or by an ancestor that no shield hides */
    bool met;                   /* and its owner has met that: a wait or a turn has ended by it */
    uint8_t turns_left;         /* until a turn does, if it is to be met */
    uint32_t patience_us;       /* for locks, when it has been met */
    int64_t patient_from_ns;    /* when the wait for one began (rs_patience_begin) */
    bool shield;
    bool armed;                 /* its deadline and those above it are set */
    bool closed;
    bool aside;                 /* its stack is suspended: it does not govern what its owner runs */
    bool once;                  /* the driver takes its cancellation back when its owner has met it */
    bool run;                   /* what is spawned inside, for no scope in particular, belongs to it */
    rs_list waiters;            /* its owner, waiting for live to reach 0 */
} rs_scope;

#define RS_EACH_OPEN_SCOPE(strand, scope) RS_EACH_LINKED(&(strand)->open_scopes, rs_scope, of_owner, scope)

/* Opens a scope inside the running strand. Usually closed in reverse order, by its owner; a program with stacks of its own
 * inside a strand may close them in any order, later from another strand, or never: what is inside a scope when it closes
 * moves to the one above. Closing twice is nothing; what is still open when its owner ends is closed then. How many there are is the
 * program's choice, so rs_reserve_timer comes first. */
void rs_scope_open(struct rs_machine *machine, rs_scope *scope, int64_t deadline_ns, bool shield);
void rs_scope_close(struct rs_machine *machine, rs_scope *scope);

/* Puts the open scopes of the running strand in the order in which they govern what it runs now, by the stacks that the
 * driver names (rs_driver.stack). Only for a strand that has scopes open on more than its first stack (`stacked`). */
void rs_scope_follow(struct rs_machine *machine);

/* From now on a run: of the strands that the code inside spawns, those that are for no other scope belong to it. */
static inline void rs_scope_make_run(rs_scope *scope) { scope->run = true; }

/* The innermost run that the running strand is in, or NULL: by the scopes that govern what it runs, the one it was spawned into, and
 * those above. */
rs_scope *rs_scope_run_here(struct rs_machine *machine);

/* A run without code: it governs nothing that the root runs, is cancelled with it, and goes with the machine. A forked child begins
 * one anew. */
void rs_scope_begin_outermost_run(struct rs_machine *machine, rs_scope *scope);

/* A strand ends. */
void rs_scope_close_all(struct rs_machine *machine, struct rs_strand *strand);

/* In a forked child: of a strand that stayed behind. Whoever finds its scopes finds them closed. */
void rs_scope_forget_all(struct rs_strand *strand);

/* The running strand meets what cancels it: from now on the end of a turn raises it no more (rs_turn_refusal). */
void rs_cancellation_met(struct rs_machine *machine);
/* Its turn ends, and it is cancelled. True: by that it meets the cancellation. */
bool rs_turn_meets_cancellation(struct rs_machine *machine);

/* The driver takes its cancellation back when its owner has met it. */
static inline void rs_scope_make_once(rs_scope *scope) { scope->once = true; }

void rs_scope_cancel(struct rs_machine *machine, rs_scope *scope, rs_cancel_cause cause);

/* Takes its own cancellation, and its deadline, back: who has met it has met it, and no later wait does. */
void rs_scope_forgive(struct rs_machine *machine, rs_scope *scope);
void rs_scope_set_deadline(struct rs_machine *machine, rs_scope *scope, int64_t deadline_ns);

/* Sets the deadlines of this scope and those above; cancels where one has passed already. */
void rs_scope_arm(struct rs_machine *machine, rs_scope *scope);

/* True when the cancellation that a strand saw is this scope's own to answer: no scope above would raise it again. */
bool rs_scope_answers(const rs_scope *scope);

/* For the strand table: a strand's own scope. */
void rs_scope_attach(rs_scope *scope, rs_scope *parent, uint32_t owner);
void rs_scope_detach(struct rs_machine *machine, rs_scope *scope);

#endif
