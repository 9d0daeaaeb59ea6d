/* park: how the running strand begins a wait, is refused one, and comes out of it. */
#include "core/run.h"

rs_wake_kind rs_refusal(rs_machine *machine, uint32_t flags) {
    rs_strand *strand = rs_runs(machine);
    RS_CHECK(strand->scope != NULL && !strand->scope->closed);
    if (flags & RS_PARK_SHIELDED) return RS_WAKE_VALUE;
    if (RS_UNLIKELY(strand->stacked > 0)) rs_scope_follow(machine);
    if (RS_UNLIKELY(!strand->scope->armed)) rs_scope_arm(machine, strand->scope);
    if (RS_UNLIKELY(strand->interrupts > 0 && strand->shield_depth == 0)) {
        if (!machine->driver.interrupts_here || machine->driver.interrupts_here(machine)) return RS_WAKE_INTERRUPT;
    }
    return RS_UNLIKELY(strand->scope->effective) ? RS_WAKE_CANCEL : RS_WAKE_VALUE;
}

uint64_t rs_park_begin(rs_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns) {
    rs_strand *strand = rs_runs(machine);
    RS_ASSERT(strand->state == RS_STRAND_RUNNING);
    RS_CHECK(wait > RS_WAIT_YIELD && wait < RS_WAIT_KINDS && strand->wait == RS_WAIT_NONE);
    machine->refusal = rs_refusal(machine, flags);
    if (wait == RS_WAIT_BLOCK && strand->permit) {
        strand->permit = false;
        machine->refusal = RS_WAKE_VALUE;
        return 0;
    }
    if (machine->refusal != RS_WAKE_VALUE) return 0;
    RS_CHECK(!rs_timer_is_set(&strand->timer) && strand->waiter.list == NULL && !strand->queued);
    rs_strand_become(strand, RS_STRAND_PARKED);
    strand->wait = (uint8_t)wait;
    strand->park_flags = (uint8_t)flags;
    strand->unblocked = false;
    strand->ticket = ++machine->last_ticket;
    if (deadline_ns != RS_NEVER) rs_timer_set(&machine->timers, &strand->timer, deadline_ns);
    if (RS_UNLIKELY(machine->notes_parks)) strand->parked_at_ns = rs_now(machine);
    machine->running = RS_NO_INDEX;
    rs_turn_end(&machine->turn);
    RS_CHECK(rs_timer_is_set(&strand->timer) == (deadline_ns != RS_NEVER));
    rs_trace_if(machine, RS_TRACE_PARK, rs_strand_id(strand), wait);
    return strand->ticket;
}

rs_wake_kind rs_park_end(rs_machine *machine, int64_t *result) {
    rs_strand *strand = rs_runs(machine);
    RS_ASSERT(strand->state == RS_STRAND_RUNNING && strand->wait != RS_WAIT_NONE);
    RS_CHECK(!rs_timer_is_set(&strand->timer) && strand->waiter.list == NULL && !strand->queued);
    /* The last moment for an unblock from another thread to win: one may have come since this strand was chosen to run. */
    if (RS_UNLIKELY(strand->wait == RS_WAIT_BLOCK && strand->wake != RS_WAKE_VALUE)) rs_take_messages(machine);
    strand->wait = RS_WAIT_NONE;
    if (result) *result = strand->result;
    return (rs_wake_kind)strand->wake;
}

void rs_displaced(rs_machine *machine) {
    if (machine->running == RS_NO_INDEX) return;
    rs_strand *strand = rs_runs(machine);
    RS_CHECK(!rs_timer_is_set(&strand->timer) && strand->waiter.list == NULL);
    rs_strand_become(strand, RS_STRAND_READY);
    machine->running = RS_NO_INDEX;
    rs_run_push_front(&machine->strands, strand);
}

/* So much each wait counts at least, for a strand that writes without end gives an IO's lock back and has it again at once. */
#define PATIENCE_LEAST_US 50

int64_t rs_patience_begin(rs_machine *machine) {
    if (rs_refusal(machine, 0) != RS_WAKE_CANCEL) return 0;
    rs_scope *scope = rs_runs(machine)->scope;
    if (!scope->met || scope->patience_us == 0) return 0;
    scope->patient_from_ns = rs_now(machine);
    return rs_deadline_after(scope->patient_from_ns, (int64_t)scope->patience_us * 1000);
}

void rs_patience_end(rs_machine *machine) {
    rs_strand *strand = rs_runs(machine);
    int64_t took_us = (rs_now(machine) - strand->scope->patient_from_ns) / 1000;
    if (took_us < PATIENCE_LEAST_US) took_us = PATIENCE_LEAST_US;
    for (rs_scope *scope = strand->scope; scope && scope->owner == strand->index; scope = scope->parent) {
        scope->patience_us = took_us < scope->patience_us ? scope->patience_us - (uint32_t)took_us : 0;
    }
}
