/* select: waiting for the first of several sources. Owned by the machine's thread.
 *
 * A source is whatever may come to have something: the items of a queue, its places, an evaluation, a strand, a descriptor. A
 * selector has a watch on each of its sources, and the watch stays there from one wait to the next. Whoever makes a source ready
 * puts its watches into their selectors' ready lists (rs_source_ready), and wakes the strand that waits there. The strand looks at
 * the ready ones in their order, leaves out those that have nothing after all, takes from the first that has, and that one goes to
 * the end. So a wait costs what has happened since the last one and not what there are sources, and a busy source stands behind
 * the others every time.
 *
 * A watch outside of the ready list means: its source had nothing when it was looked at last, and whoever changes that will say so.
 *
 * A wake takes nothing. The one exception is what a source hands over in the same step as the wake, as it does to those who wait
 * in its list (rs_source_waiting, rs_watch_serve): who has waited longest is served, however it waits, and what was handed over is
 * its own even when a cancellation arrives before it runs.
 */
#ifndef RINGSPUN_SELECT_H
#define RINGSPUN_SELECT_H

#include "ringspun/core/list.h"
#include "ringspun/core/machine.h"
#include "ringspun/core/source.h"

struct rs_selector;

/* What stands by at the source for a watch, where other threads use the source as well. It goes with the watch. */
typedef struct rs_watch_observer {
    void (*forget)(struct rs_watch_observer *observer);
    bool notified;              /* a message for the watch is on its way */
} rs_watch_observer;

typedef struct rs_watch {
    rs_watcher watcher;         /* first. No source: a descriptor, or what has gone */
    rs_link of_selector;        /* in its list of all watches */
    rs_link of_ready;
    struct rs_selector *selector;
    rs_watch_observer *observer; /* or NULL */
    rs_id op;                   /* that waits for the descriptor; 0: none is in flight */
    uint64_t item;              /* a word of the driver's, to be pushed */
    int64_t result;             /* what the last op has found, until somebody looks; 0: nothing */
    bool ready;                 /* in the list */
} rs_watch;

typedef struct rs_selector {
    struct rs_machine *machine; /* NULL: not open, or its machine has gone */
    rs_link link;               /* in the list of the machine's */
    rs_links watches;
    rs_links ready;
    uint32_t ready_len;
    uint32_t ops;               /* in flight for its watches */
    rs_watch *served;           /* through which something was handed to the strand, until it takes it */
    rs_list waiters;            /* the strand that waits: one at most */
    bool counted;               /* while somebody counts, for it may have several watches on one source */
} rs_selector;

/* Ops of watches that may be in flight at once, beside those of the strands. */
#define RS_WATCH_OPS_MAX 65536u

void rs_selector_open(struct rs_machine *machine, rs_selector *selector);
/* One that is open, or NULL. */
rs_selector *rs_selectors_any(const struct rs_machine *machine);
/* With all its watches, whose memory the caller frees then. */
void rs_selector_close(rs_selector *selector);
/* The same from a finalizer: nothing is called, and ops that are in flight end at the machine's next look. */
void rs_selector_abandon(rs_selector *selector);

/* Ready at first, for nobody has looked. No source: a descriptor (rs_watch_arm). Zeroed memory, which stays in its place. */
void rs_watch_open(rs_selector *selector, rs_watch *watch, rs_source *source);
void rs_watch_close(rs_watch *watch);

/* The one to look at next, which is at the end of the list from now on; NULL: wait. */
rs_watch *rs_selector_next(rs_selector *selector);
/* It has nothing. */
void rs_watch_idle(rs_watch *watch);
/* Begins the next round anywhere, so that of sources which are ready from the start none is always the first. */
void rs_selector_shuffle(rs_selector *selector);

/* An op that makes the watch ready, if none is in flight. False: there are too many. */
bool rs_watch_arm(rs_watch *watch, int fd, uint32_t events);

/* What the last op has found, which is nothing from now on; 0: nothing new. */
static inline int64_t rs_watch_take_result(rs_watch *watch) {
    int64_t result = watch->result;
    watch->result = 0;
    return result;
}

/* The watch through which something was handed to the strand that waited here, for that strand to take; or NULL. */
static inline rs_watch *rs_selector_take_served(rs_selector *selector) {
    rs_watch *served = selector->served;
    RS_CHECK(!served || served->selector == selector);
    selector->served = NULL;
    return served;
}

/* It may have something now. */
void rs_watch_ready(rs_watch *watch);

/* The watch of the strand that has waited longest in a selector, if it has waited longer than that one (NULL: whoever). */
rs_watch *rs_source_waiting(const rs_source *source, const struct rs_strand *than);
struct rs_strand *rs_watch_strand(const rs_watch *watch);
/* How many strands wait in selectors for it. */
uint32_t rs_source_waiting_len(rs_source *source);
/* Wakes that strand: it has been handed something. */
void rs_watch_serve(rs_watch *watch);

/* Asks all ops whose watches have gone to end, and answers how many have not. */
uint32_t rs_end_orphan_ops(struct rs_machine *machine);

#endif
