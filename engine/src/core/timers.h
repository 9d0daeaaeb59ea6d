/* timers: deadlines in user space, earliest first, first come first served on a tie. One owner: the machine's thread.
 *
 * A timer is embedded in whatever waits (a strand, a scope); the heap only points at it. States: idle (position
 * RS_NO_INDEX) and set. A 4-ary heap: the usual timer is later than most others and far from the root, so adding and
 * removing one touches a cache line or two, and a timeout that does not fire stays a handful of stores.
 */
#ifndef RINGSPUN_TIMERS_H
#define RINGSPUN_TIMERS_H

#include "ringspun/core/timer.h"

typedef struct {
    rs_timer **heap;
    uint32_t len;
    uint32_t capacity;
    uint64_t next_order;
} rs_timers;

void rs_timers_free(rs_timers *timers);

/* Memory for that many at the same time. False: there is none. */
bool rs_timers_reserve(rs_timers *timers, uint32_t count);
void rs_timer_init(rs_timer *timer, rs_timer_kind kind);
void rs_timer_set(rs_timers *timers, rs_timer *timer, int64_t deadline_ns);
void rs_timer_clear(rs_timers *timers, rs_timer *timer);

static inline bool rs_timer_is_set(const rs_timer *timer) { return timer->position != RS_NO_INDEX; }

static inline int64_t rs_timers_earliest(const rs_timers *timers) {
    RS_CHECK(timers->len == 0 || timers->heap[0]->position == 0);
    return timers->len == 0 ? RS_NEVER : timers->heap[0]->deadline_ns;
}

/* Takes out the earliest timer that is due, or NULL. */
rs_timer *rs_timers_pop_due(rs_timers *timers, int64_t now_ns);

#endif
