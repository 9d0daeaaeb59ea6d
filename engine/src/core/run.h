/* run: what the files of core share about the strand that runs, and about who runs next. Owned by the machine's thread. This header is
 * for core alone.
 */
#ifndef RINGSPUN_RUN_H
#define RINGSPUN_RUN_H

#include "core/machine.h"

/* What other threads have sent by now takes effect. */
void rs_take_messages(rs_machine *machine);

/* The running strand is at the head of the run queue; another, which leaves that at once, runs in its place (rs_run_now). */
void rs_yield_in_front(rs_machine *machine);

/* That strand, which is new or ready and has left the run queue, runs. */
static inline void rs_run_now(rs_machine *machine, rs_strand *strand) {
    RS_ASSERT(strand->state == RS_STRAND_READY || strand->state == RS_STRAND_NEW);
    RS_CHECK(machine->running == RS_NO_INDEX && !strand->queued && !rs_timer_is_set(&strand->timer));
    rs_strand_become(strand, RS_STRAND_RUNNING);
    machine->metrics.resumes++; /* first, for who looks from another thread and takes this for the number of the resume */
    machine->running = strand->index;
    machine->runs = strand;
    rs_trace_if(machine, RS_TRACE_RUN, rs_strand_id(strand), 0);
}

#endif
