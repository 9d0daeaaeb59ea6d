/* sleep: how a machine waits when no strand is ready: awake for a while where that is shorter, then asleep. Owned by the machine's
 * thread.
 */
#ifndef RINGSPUN_SLEEP_H
#define RINGSPUN_SLEEP_H

#include "ringspun/core/base.h"

struct rs_machine;

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

/* Until that time, or until something comes. */
void rs_sleep(struct rs_machine *machine, int64_t deadline_ns);

/* Notes what the last sleep took, if there was one. To be called when the machine goes on and has the lock again. */
void rs_note_sleep(struct rs_machine *machine);

/* The driver's: whether another machine has taken the lock without which this one cannot go on. A hint, which may be old. */
void rs_share_lock(struct rs_machine *machine, const _Atomic bool *taken);
bool rs_shares_lock(const struct rs_machine *machine);

#endif
