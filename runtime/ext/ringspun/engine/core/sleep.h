/* sleep: how a machine waits when no strand is ready: awake for a while where that is shorter, then asleep. Owned by the machine's
 * thread.
 */
#ifndef RINGSPUN_SLEEP_H
#define RINGSPUN_SLEEP_H

#include "core/base.h"

struct rs_machine;

typedef struct {
    uint32_t soon;              /* how often of late what it waited for came within busy_poll_ns */
    uint32_t soon_waits;        /* how many began where that was often enough to stay awake */
    int64_t awake_ns, asleep_ns; /* what such waits take, on the average of late; 0: not known */
} rs_sleeps;

/* Until that time, or until something comes. */
void rs_sleep(struct rs_machine *machine, int64_t deadline_ns);

#endif
