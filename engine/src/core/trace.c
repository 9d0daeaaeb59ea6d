#include "core/trace.h"

#include <stdlib.h>

bool rs_trace_open(rs_trace *trace) {
    *trace = (rs_trace){.ring = rs_try_alloc(sizeof(rs_trace_event) * RS_TRACE_RING)};
    trace->enabled = trace->ring != NULL;
    return trace->enabled;
}

void rs_trace_close(rs_trace *trace) {
    free(trace->ring);
    trace->ring = NULL;
    trace->enabled = false;
}

const char *rs_trace_kind_name(uint32_t kind) {
    static const char *const names[] = {
        [RS_TRACE_SPAWN] = "spawn", [RS_TRACE_RUN] = "run", [RS_TRACE_PARK] = "park", [RS_TRACE_WAKE] = "wake",
        [RS_TRACE_WAKE_DROPPED] = "wake dropped", [RS_TRACE_FINISH] = "finish", [RS_TRACE_OP] = "op",
        [RS_TRACE_COMPLETE] = "complete", [RS_TRACE_CANCEL] = "cancel", [RS_TRACE_TIMER] = "timer",
        [RS_TRACE_FAULT] = "fault", [RS_TRACE_USER] = "user",
    };
    return kind >= RS_TRACE_SPAWN && kind <= RS_TRACE_USER ? names[kind] : "?";
}

static inline uint64_t mix(uint64_t hash, uint64_t word) {
    hash ^= word;
    hash *= 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

void rs_trace_record(rs_trace *trace, int64_t at_ns, rs_trace_kind kind, uint64_t subject, int64_t detail) {
    RS_CHECK(kind >= RS_TRACE_SPAWN && kind <= RS_TRACE_USER);
    RS_CHECK(trace->enabled && trace->ring != NULL);
    trace->ring[trace->count++ % RS_TRACE_RING] =
        (rs_trace_event){.at_ns = at_ns, .subject = subject, .detail = detail, .kind = kind};
    uint64_t hash = mix(trace->hash, (uint64_t)kind);
    hash = mix(hash, (uint64_t)at_ns);
    hash = mix(hash, subject);
    trace->hash = mix(hash, (uint64_t)detail);
}
