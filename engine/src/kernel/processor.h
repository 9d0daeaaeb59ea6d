/* processor: what this computer's clocks and processors are like. System calls only; no state of its own. Any thread may call it. */
#ifndef RINGSPUN_PROCESSOR_H
#define RINGSPUN_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

/* rs_clock_ns as the kernel last noted it, at its last tick: a fifth of the price. */
int64_t rs_coarse_clock_ns(void);

/* What a system call costs here that does nothing, in ns: on a computer, under a filter, in a sandbox. Takes a few microseconds where
 * calls are cheap. */
int64_t rs_call_ns(void);

/* This thread may run on one processor only. */
bool rs_has_one_processor(void);

/* Lets others run that are ready on this processor: https://man7.org/linux/man-pages/man2/sched_yield.2.html */
void rs_give_processor_away(void);

#endif
