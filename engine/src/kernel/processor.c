#include "kernel/processor.h"

#include "ringspun/core/base.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

int64_t rs_coarse_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The least of some runs, so that who was held up meanwhile counts for nothing. The call is one that it may be worth to save, for a
 * filter looks at its number: it reads nothing from no descriptor. */
#define RUNS 4
#define CALLS_A_RUN 8

int64_t rs_call_ns(void) {
    int64_t least_ns = INT64_MAX;
    for (int run = 0; run < RUNS; run++) {
        int64_t began_ns = rs_clock_ns();
        for (int i = 0; i < CALLS_A_RUN; i++) {
            ssize_t read_bytes = read(-1, NULL, 0);
            (void)read_bytes;
        }
        int64_t took_ns = rs_clock_ns() - began_ns;
        if (took_ns < least_ns) least_ns = took_ns;
    }
    return least_ns / CALLS_A_RUN;
}

bool rs_has_one_processor(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1;
}

void rs_give_processor_away(void) { sched_yield(); }
