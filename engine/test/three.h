/* three: three strands that the test plays by hand, for what strands hand over to each other. Include after test.h. */
#ifndef RINGSPUN_THREE_H
#define RINGSPUN_THREE_H

#include "by_hand.h"

#include <stdarg.h>

static rs_strand *one, *two, *three;

/* How the wait has ended of the strand that runs. */
static rs_wake_kind woken;
static int64_t result;

/* That strand is the next one, and it runs from here on. */
static inline void goes_on(rs_strand *strand) {
    CHECK(next_ever() == strand);
    woken = RS_WAKE_VALUE;
    if (strand->wait != RS_WAIT_NONE) woken = rs_park_end(machine, &result);
}

/* Three strands, of which the first runs. */
static inline void begin_three(void) {
    begin();
    one = spawn();
    two = spawn();
    three = spawn();
    goes_on(one);
}

/* The strand that runs waits in a list, and the machine goes on with another one. */
static inline void wait_in(rs_list *list, rs_wait_kind wait, int64_t deadline_ns, rs_strand *other) {
    rs_strand *strand = rs_running(machine);
    CHECK(rs_park_begin(machine, wait, 0, deadline_ns) != 0);
    rs_list_append(machine, list, strand, 0);
    goes_on(other);
}

static inline void yield_to(rs_strand *strand) {
    rs_yield(machine);
    goes_on(strand);
}

/* The time of both is up in the same look at the timers, and `one` runs first, so nobody waits any more when it gives something up;
 * `three` has ended. One yield leads to `two`. */
static inline void let_time_out(rs_list *list, rs_wait_kind wait) {
    int64_t deadline_ns = rs_now(machine) + MS;
    CHECK(rs_park_begin(machine, RS_WAIT_SLEEP, 0, deadline_ns) != 0);
    goes_on(two);
    wait_in(list, wait, deadline_ns, three);
    rs_finish(machine);
    goes_on(one);
    CHECK_EQUAL(RS_WAKE_TIMEOUT, woken);
    CHECK_EQUAL(RS_STRAND_READY, two->state);
}

/* Those that live end in that order; the first runs. */
static inline void finish(int count, ...) {
    va_list strands;
    va_start(strands, count);
    for (int i = 0; i < count; i++) {
        rs_strand *strand = va_arg(strands, rs_strand *);
        if (i > 0) goes_on(strand);
        CHECK(rs_running(machine) == strand);
        rs_finish(machine);
    }
    va_end(strands);
    end();
}

#endif
