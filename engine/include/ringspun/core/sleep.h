/* sleep: how a machine waits when no strand is ready: awake for a while where that is shorter, then asleep. Owned by the machine's
 * thread.
 */
#ifndef RINGSPUN_SLEEP_H
#define RINGSPUN_SLEEP_H

#include "ringspun/core/base.h"

struct rs_machine;

/* Until that time, or until something comes. */
void rs_sleep(struct rs_machine *machine, int64_t deadline_ns);

/* The driver's: whether another machine has taken the lock without which this one cannot go on. A hint, which may be old. */
void rs_share_lock(struct rs_machine *machine, const _Atomic bool *taken);
bool rs_shares_lock(const struct rs_machine *machine);

#endif
