/* semaphore: permits, of which so many may be held at once. Owned by the machine's thread.
 *
 * As with a mutex, who gives a permit back gives it to who has waited longest, in the list or in a selector, in the same step as the
 * wake. So while somebody waits in the list no permit is free.
 */
#ifndef RINGSPUN_SEMAPHORE_H
#define RINGSPUN_SEMAPHORE_H

#include "ringspun/core/machine.h"
#include "ringspun/flow/select.h"

typedef struct rs_semaphore {
    rs_list waiters;
    rs_source for_permits;      /* watches of selectors */
    int64_t free;
    int64_t permits;            /* free or held */
} rs_semaphore;

static inline void rs_semaphore_init(rs_semaphore *semaphore, int64_t permits) {
    RS_CHECK(permits > 0);
    *semaphore = (rs_semaphore){.free = permits, .permits = permits};
}

/* Who held one, and who waited, is of a machine that has gone. */
void rs_semaphore_forget(rs_semaphore *semaphore);
/* Its memory goes. */
static inline void rs_semaphore_drop(rs_semaphore *semaphore) { rs_source_drop(&semaphore->for_permits); }

/* False: none is free. */
static inline bool rs_semaphore_take(rs_semaphore *semaphore) {
    if (semaphore->free == 0) return false;
    RS_CHECK(semaphore->waiters.len == 0);
    semaphore->free--;
    return true;
}

/* After a wait in `waiters`: whether the strand has one. After a timeout it tries once more, as with a mutex. */
static inline bool rs_semaphore_waited(rs_semaphore *semaphore, rs_wake_kind kind) {
    return kind == RS_WAKE_VALUE || (kind == RS_WAKE_TIMEOUT && rs_semaphore_take(semaphore));
}

/* False: all are back already. */
bool rs_semaphore_give(rs_machine *machine, rs_semaphore *semaphore);

/* Strands that wait for one, those in selectors as well. */
static inline uint32_t rs_semaphore_waiting(rs_semaphore *semaphore) {
    return semaphore->waiters.len + rs_source_waiting_len(&semaphore->for_permits);
}

#endif
