#include "kernel/processor.h"

#include <sched.h>
#include <time.h>

int64_t rs_coarse_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool rs_has_one_processor(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1;
}

void rs_give_processor_away(void) { sched_yield(); }
