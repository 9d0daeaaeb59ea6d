/* trace event: one of what a machine did, for reports and for comparing two runs. Constant once it is there. */
#ifndef RINGSPUN_TRACE_EVENT_H
#define RINGSPUN_TRACE_EVENT_H

#include "ringspun/core/base.h"

typedef enum {
    RS_TRACE_SPAWN = 1, RS_TRACE_RUN, RS_TRACE_PARK, RS_TRACE_WAKE, RS_TRACE_WAKE_DROPPED, RS_TRACE_FINISH, RS_TRACE_OP,
    RS_TRACE_COMPLETE, RS_TRACE_CANCEL, RS_TRACE_TIMER, RS_TRACE_FAULT, RS_TRACE_USER
} rs_trace_kind;

typedef struct {
    int64_t at_ns;
    uint64_t subject;
    int64_t detail;
    uint32_t kind;
} rs_trace_event;

const char *rs_trace_kind_name(uint32_t kind);

#endif
