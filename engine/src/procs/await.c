#include "ringspun/procs/await.h"
#include "core/machine.h"

uint64_t rs_await_begin(rs_machine *machine, rs_list *list, int64_t deadline_ns) {
    rs_strand *strand = rs_runs(machine);
    uint64_t ticket = rs_park_begin(machine, RS_WAIT_EVALUATION, 0, deadline_ns);
    if (RS_UNLIKELY(ticket == 0)) return 0;
    rs_make_resumable(strand, ticket);
    if (list) rs_list_append(machine, list, strand, 0);
    return ticket;
}

rs_await_outcome rs_await_end(rs_machine *machine, rs_wake_kind kind) {
    RS_CHECK(kind != RS_WAKE_NO_MEMORY); /* which ends ops alone */
    if (rs_was_resumed(machine, kind)) return RS_AWAIT_RESUMED;
    return RS_LIKELY(kind == RS_WAKE_VALUE || kind == RS_WAKE_TIMEOUT) ? RS_AWAIT_LOOK : RS_AWAIT_RAISES;
}
