/* barrier: strands wait for each other until as many are there as it has parties. Then all go on, and it can be used again. A strand
 * whose wait is cancelled or times out does not count any more. Owned by the machine's thread.
 */
#ifndef RINGSPUN_BARRIER_H
#define RINGSPUN_BARRIER_H

#include "ringspun/core/machine.h"

typedef struct rs_barrier {
    rs_list waiters;
    int64_t parties;
} rs_barrier;

static inline void rs_barrier_init(rs_barrier *barrier, int64_t parties) {
    RS_CHECK(parties > 0);
    *barrier = (rs_barrier){.parties = parties};
}

/* True: the running strand is the last, and all who have waited go on. False: it is to wait in `waiters`. */
static inline bool rs_barrier_arrive(rs_machine *machine, rs_barrier *barrier) {
    RS_CHECK(barrier->parties > 0);
    if ((int64_t)barrier->waiters.len + 1 < barrier->parties) return false;
    rs_list_wake_all(machine, &barrier->waiters, 0);
    return true;
}

#endif
