/* timer: a deadline, which is embedded in whatever waits for it (a strand, a scope). Owned by the machine's thread. */
#ifndef RINGSPUN_TIMER_H
#define RINGSPUN_TIMER_H

#include "ringspun/core/base.h"

typedef enum { RS_TIMER_PARK, RS_TIMER_SCOPE, RS_TIMER_REMINDER } rs_timer_kind;

typedef struct rs_timer {
    int64_t deadline_ns;
    uint64_t order;
    uint32_t position;
    uint32_t kind;
} rs_timer;

#endif
