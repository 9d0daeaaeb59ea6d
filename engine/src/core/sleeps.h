/* sleeps: what a machine knows of how it has waited of late, by which it chooses how to wait next. Owned by the machine's thread. */
#ifndef RINGSPUN_SLEEPS_H
#define RINGSPUN_SLEEPS_H

#include "ringspun/core/sleep.h"

typedef enum {
    RS_SLEEP_UNTRIED,           /* asleep: too few came soon of late */
    RS_SLEEP_ASLEEP,
    RS_SLEEP_AWAKE,
    RS_SLEEP_IN_VAIN,           /* awake until busy_poll_ns, and then asleep */
} rs_sleep_kind;

typedef struct {
    uint32_t soon;              /* how often of late what it waited for came soon */
    uint32_t soon_waits;        /* how many waits began where that was often enough to stay awake */
    int64_t awake_ns, asleep_ns; /* what these take when it stays awake, and when it sleeps, on the average of late */
    int64_t began_ns;           /* the last, until it is noted; 0: it was, or does not count */
    rs_sleep_kind kind;
    const _Atomic bool *lock_taken; /* rs_share_lock; or NULL */
} rs_sleeps;

/* Notes what the last sleep took, if there was one. To be called when the machine goes on and has the lock again. */
void rs_note_sleep(struct rs_machine *machine);

#endif
