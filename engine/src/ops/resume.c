#include "ringspun/ops/resume.h"
#include "core/machine.h"
#include "ops/ops.h"

#include "ops/op.h"

void rs_make_resumable(rs_strand *strand, uint64_t ticket) {
    RS_CHECK(ticket >= strand->ticket);
    strand->resumable = ticket;
    strand->resumed = false; /* an earlier wait may have left it true: it was resumed, and ended by a cancellation */
}

/* It has parked with the ticket that may be resumed, and has not run since. */
static bool is_in_resumable_wait(const rs_strand *strand) {
    return strand->ticket == strand->resumable && strand->wait != RS_WAIT_NONE;
}

/* Nothing has ended the wait so far, except perhaps its timeout. An op may be on its way out. */
static bool is_open(const rs_machine *machine, const rs_strand *strand) {
    if (strand->state == RS_STRAND_READY) {
        return strand->wake == RS_WAKE_TIMEOUT || (strand->wake == RS_WAKE_VALUE && strand->wait == RS_WAIT_YIELD);
    }
    if (strand->state != RS_STRAND_PARKED) return false;
    if (strand->wait != RS_WAIT_OP) return true;
    rs_wake_kind cancel = rs_op_at(rs_ops_in(machine), strand->op)->cancel;
    return cancel == RS_WAKE_VALUE || cancel == RS_WAKE_TIMEOUT;
}

rs_resumption rs_may_resume(const rs_machine *machine, rs_id id) {
    const rs_strand *strand = rs_strand_find(&machine->strands, id);
    if (!strand || strand->state == RS_STRAND_RUNNING || !is_in_resumable_wait(strand)) return RS_NOT_WAITING;
    return !strand->resumed && is_open(machine, strand) ? RS_RESUMED : RS_ENDED_ALREADY;
}

rs_resumption rs_resume(rs_machine *machine, rs_id id) {
    rs_resumption answer = rs_may_resume(machine, id);
    if (answer != RS_RESUMED) return answer;
    rs_strand *strand = rs_strand_find(&machine->strands, id);
    strand->resumed = true;
    if (strand->wait == RS_WAIT_OP) rs_interrupt_park(machine, strand, RS_WAKE_TIMEOUT);
    else if (strand->state == RS_STRAND_PARKED) rs_wake(machine, id, strand->ticket, RS_WAKE_VALUE, 0);
    return RS_RESUMED;
}

bool rs_was_resumed(rs_machine *machine, rs_wake_kind kind) {
    rs_strand *strand = rs_runs(machine);
    bool resumed = strand->resumed;
    strand->resumable = 0;
    strand->resumed = false;
    return resumed && (kind == RS_WAKE_VALUE || kind == RS_WAKE_TIMEOUT);
}
