/* branches: the sources among which a strand chooses in a selector, and the rules of a choice. Owned by the machine's thread.
 *
 * A branch is a watch with what its driver needs when it wins: words, of which rs_branches_each names all to a collector. Looking at a
 * branch either takes what its source has, and that branch wins in any case, or changes nothing. Queues, semaphores and channels are
 * looked at here. For the other kinds the driver is asked (RS_LOOK_ASK): it knows of results, and which descriptor is whose.
 *
 * One strand waits at a time, between rs_branches_enter and rs_branches_leave. It looks (rs_branches_look) until nothing is left that is
 * ready, waits in `selector.waiters` where rs_select_waits says so, and looks again, unless it was served (rs_branches_take_served).
 */
#ifndef RINGSPUN_BRANCHES_H
#define RINGSPUN_BRANCHES_H

#include "ringspun/core/machine.h"
#include "ringspun/flow/channel.h"
#include "ringspun/flow/queue.h"
#include "ringspun/flow/semaphore.h"

/* RESULT and the kinds after it are the driver's to look at; STREAM and those after it wait for a descriptor. */
typedef enum {
    RS_BRANCH_POP, RS_BRANCH_PUSH, RS_BRANCH_POP_CHANNEL, RS_BRANCH_PUSH_CHANNEL, RS_BRANCH_ACQUIRE, RS_BRANCH_RESULT,
    RS_BRANCH_STREAM, RS_BRANCH_READABLE, RS_BRANCH_WRITABLE
} rs_branch_kind;

typedef struct rs_branch {
    rs_watch watch;             /* first: a pointer to it is one to the branch */
    rs_link link;               /* of those in use, or those to be used again */
    rs_branch_kind kind;
    void *from;                 /* the queue, channel or semaphore */
    uint64_t source, block;     /* words of the driver's, as watch.item is */
    const void *look;           /* the driver's: how it looks at the source */
    uint32_t generation;        /* of a descriptor that the driver names by its number */
} rs_branch;

typedef struct rs_branches {
    rs_selector selector;       /* first */
    rs_links used, spare;       /* the newest first */
    uint32_t used_len, spare_len;
    rs_branch *left;            /* one that was taken away after it was served and before the strand has run */
    rs_id waiting;              /* the strand that waits */
    bool closed;
} rs_branches;

/* What has won. */
typedef struct {
    rs_branch_kind kind;
    uint64_t source, block, value;
} rs_win;

void rs_branches_open(rs_machine *machine, rs_branches *branches);
/* What the strand was served that waits there stays for it. */
void rs_branches_close(rs_branches *branches);
/* From a finalizer: nothing is called. */
void rs_branches_free(rs_branches *branches);

/* `source`, of a result or a stream: the one to watch, or NULL. The new branch is ready to be looked at. NULL: there is no memory. */
rs_branch *rs_branches_add(rs_branches *branches, const rs_branch *given, rs_source *source);
static inline void rs_branch_set_item(rs_branch *branch, uint64_t item) { branch->watch.item = item; }
void rs_branches_remove(rs_branches *branches, rs_branch *branch);
/* Removes all on that source. */
uint32_t rs_branches_remove_all(rs_branches *branches, uint64_t source);
/* Removes all. */
void rs_branches_clear(rs_branches *branches);

void rs_branches_each(const rs_branches *branches, void (*call)(uint64_t word));
static inline size_t rs_branches_bytes(const rs_branches *branches) {
    return (branches->used_len + (size_t)branches->spare_len) * sizeof(rs_branch);
}

/* False: another strand waits there. */
bool rs_branches_enter(rs_machine *machine, rs_branches *branches);
static inline void rs_branches_leave(rs_branches *branches) { branches->waiting = RS_NO_ID; }

typedef enum { RS_LOOK_NOTHING, RS_LOOK_WON, RS_LOOK_CLOSED, RS_LOOK_NO_MEMORY, RS_LOOK_ASK, RS_LOOK_FAILED, RS_LOOK_LIMIT } rs_look;

/* Looks at those that are ready, in their order, up to one of which there is something to say. NULL: there is none. *value is what
 * was taken, and stays as it is where a queue or channel is closed and empty. CLOSED, NO_MEMORY: it cannot be pushed.
 * ASK: the driver looks. In vain, it says so by rs_watch_idle; or for a descriptor by rs_branch_look_at. */
rs_branch *rs_branches_look(rs_machine *machine, rs_branches *branches, uint64_t *value, rs_look *answer);

/* Of a descriptor, with events of poll(2). NOTHING: an op waits for it. FAILED: by *error, which is -errno. LIMIT: too many are waited for. */
rs_look rs_branch_look_at(rs_machine *machine, rs_branch *branch, int fd, uint32_t events, int64_t *error);

static inline void rs_branch_wins(const rs_branch *branch, uint64_t value, rs_win *win) {
    *win = (rs_win){.kind = branch->kind, .source = branch->source, .block = branch->block, .value = value};
}

/* True: another strand has given this one an item, a place or a permit when it woke it. */
bool rs_branches_take_served(rs_machine *machine, rs_branches *branches, rs_win *win);

/* One choice. */
typedef struct {
    int64_t deadline_ns;
    bool never_waits;           /* it takes what is ready now, or nothing */
    bool last;                  /* its time was up at the last wait: a source may have become ready at the same time */
} rs_select;

static inline void rs_select_begin(rs_select *select, int64_t deadline_ns, bool never_waits) {
    *select = (rs_select){.deadline_ns = deadline_ns, .never_waits = never_waits};
}

/* After looks in vain: whether the strand waits, until *until_ns, and then sets `last` on a timeout. */
bool rs_select_waits(rs_machine *machine, const rs_select *select, int64_t *until_ns);
static inline void rs_select_waited(rs_select *select, rs_wake_kind kind) { select->last |= kind == RS_WAKE_TIMEOUT; }

#endif
