/* trace: what the machine did, for reports and for comparing two runs. Owned by the machine's thread.
 *
 * Off by default: then an event is one predictable branch, and there is no ring. On: each event goes into a ring of the last
 * RS_TRACE_RING ones and into a running hash. Two simulated runs of one seed must end with the same hash; the first event where the rings
 * differ is where they parted.
 */
#ifndef RINGSPUN_TRACE_H
#define RINGSPUN_TRACE_H

#include "ringspun/core/trace_event.h"

/* A power of two, for each event takes the remainder. 32 KB of events: what led to a failure, and the hash has the rest. */
#define RS_TRACE_RING 1024

typedef struct {
    bool enabled;
    uint64_t hash;
    uint64_t count;
    rs_trace_event *ring;       /* of RS_TRACE_RING; NULL: it is off */
} rs_trace;

/* With an empty ring and hash. False: there is no memory for the ring. */
bool rs_trace_open(rs_trace *trace);
/* The hash and the count stay. */
void rs_trace_close(rs_trace *trace);

void rs_trace_record(rs_trace *trace, int64_t at_ns, rs_trace_kind kind, uint64_t subject, int64_t detail);

#endif
