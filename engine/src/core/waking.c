/* waking: how waits end: by a wake, for all in a list, by an interrupt, an unblock, or at once, as a yield does. */
#include "core/run.h"

static void end_wait(rs_strand *strand, rs_wake_kind kind, int64_t result) {
    RS_CHECK(strand->wait != RS_WAIT_NONE && strand->ticket != 0);
    rs_strand_become(strand, RS_STRAND_READY);
    strand->wake = (uint8_t)kind;
    strand->result = result;
}

static void make_ready(rs_machine *machine, rs_strand *strand, rs_wake_kind kind, int64_t result) {
    end_wait(strand, kind, result);
    if (RS_UNLIKELY(machine->wakes_first)) rs_run_push_front(&machine->strands, strand);
    else if (strand->wait == RS_WAIT_YIELD) rs_run_push(&machine->strands, strand);
    else rs_run_push_woken(&machine->strands, strand);
    RS_CHECK(machine->strands.run_len <= rs_strands_live(&machine->strands));
    if (machine->strands.run_len > machine->metrics.run_queue_max) {
        machine->metrics.run_queue_max = machine->strands.run_len;
    }
}

bool rs_wake(rs_machine *machine, rs_id id, uint64_t ticket, rs_wake_kind kind, int64_t result) {
    rs_strand *strand = rs_strand_find(&machine->strands, id);
    if (!strand || strand->state != RS_STRAND_PARKED || strand->ticket != ticket) {
        machine->metrics.wakes_dropped++;
        rs_trace_if(machine, RS_TRACE_WAKE_DROPPED, id, kind);
        return false;
    }
    RS_CHECK(!strand->queued && machine->running != strand->index);
    rs_list_remove(machine, strand);
    rs_timer_clear(&machine->timers, &strand->timer);
    machine->metrics.wakes++;
    rs_trace_if(machine, RS_TRACE_WAKE, id, kind);
    make_ready(machine, strand, kind, result);
    return true;
}

static rs_strand *begin_yield(rs_machine *machine) {
    rs_strand *strand = rs_runs(machine);
    RS_CHECK(strand->state == RS_STRAND_RUNNING && strand->wait == RS_WAIT_NONE);
    strand->wait = RS_WAIT_YIELD;
    strand->ticket = ++machine->last_ticket;
    machine->running = RS_NO_INDEX;
    return strand;
}

void rs_yield(rs_machine *machine) {
    rs_turn_end(&machine->turn);
    make_ready(machine, begin_yield(machine), RS_WAKE_VALUE, 0);
}

void rs_yield_to_first(rs_machine *machine) {
    rs_turn_end(&machine->turn);
    rs_strand *strand = begin_yield(machine);
    end_wait(strand, RS_WAKE_VALUE, 0);
    rs_run_push_second(&machine->strands, strand);
}

void rs_yield_in_front(rs_machine *machine) {
    rs_strand *strand = begin_yield(machine);
    end_wait(strand, RS_WAKE_VALUE, 0);
    rs_run_push_front(&machine->strands, strand);
    RS_CHECK(machine->strands.woken.head == strand->index && strand->state == RS_STRAND_READY);
}

rs_id rs_list_wake_first(rs_machine *machine, rs_list *list, int64_t result) {
    rs_strand *strand = rs_list_first(machine, list);
    if (!strand) return RS_NO_ID;
    RS_CHECK(strand->waiter.list == list && strand->waiter.previous == 0);
    rs_id id = rs_strand_id(strand);
    bool accepted = rs_wake(machine, id, strand->ticket, RS_WAKE_VALUE, result);
    RS_CHECK(accepted);
    return id;
}

uint32_t rs_list_wake_all(rs_machine *machine, rs_list *list, int64_t result) {
    uint32_t count = 0;
    while (rs_list_wake_first(machine, list, result) != RS_NO_ID) count++;
    RS_CHECK(list->tail == 0 && list->len == 0);
    return count;
}

void rs_interrupt_park(rs_machine *machine, rs_strand *strand, rs_wake_kind kind) {
    RS_CHECK(kind != RS_WAKE_VALUE && strand->wait < RS_WAIT_KINDS);
    if (strand->state != RS_STRAND_PARKED) return;
    if (kind != RS_WAKE_TIMEOUT && (strand->park_flags & RS_PARK_SHIELDED)) return;
    if (kind == RS_WAKE_INTERRUPT && strand->shield_depth > 0) return;
    const rs_part *part = machine->ends_wait[strand->wait];
    if (part) part->interrupt(machine, strand, kind);
    else rs_wake(machine, rs_strand_id(strand), strand->ticket, kind, 0);
}

void rs_break_park(rs_machine *machine, rs_strand *strand, rs_wake_kind kind) {
    RS_CHECK(strand->state == RS_STRAND_PARKED && kind != RS_WAKE_VALUE);
    strand->park_flags = 0;
    bool at_once = !machine->ends_wait[strand->wait];
    if (kind == RS_WAKE_INTERRUPT && at_once) rs_wake(machine, rs_strand_id(strand), strand->ticket, kind, 0);
    else rs_interrupt_park(machine, strand, kind == RS_WAKE_INTERRUPT ? RS_WAKE_CANCEL : kind);
}

void rs_interrupt(rs_machine *machine, rs_strand *strand) {
    RS_CHECK(strand->state != RS_STRAND_FREE);
    strand->interrupts++;
    rs_interrupt_park(machine, strand, RS_WAKE_INTERRUPT);
}

static bool takes_nothing(const rs_machine *machine, const rs_strand *strand) {
    RS_CHECK(strand->state == RS_STRAND_READY);
    const rs_part *part = machine->ends_wait[strand->wait];
    if (part) return part->takes_nothing(machine, strand);
    return strand->wait == RS_WAIT_SLEEP || strand->wait == RS_WAIT_YIELD || strand->wait == RS_WAIT_EVALUATION;
}

void rs_interrupt_first(rs_machine *machine, rs_strand *strand) {
    RS_CHECK(strand->state != RS_STRAND_FREE && !machine->wakes_first);
    bool shielded = strand->shield_depth > 0 || (strand->park_flags & RS_PARK_SHIELDED);
    bool ready = strand->state == RS_STRAND_READY;
    if (ready && !shielded && takes_nothing(machine, strand)) strand->wake = RS_WAKE_INTERRUPT;
    machine->wakes_first = true;
    rs_interrupt(machine, strand);
    machine->wakes_first = false;
}

void rs_list_wake_all_first(rs_machine *machine, rs_list *list) {
    RS_CHECK(!machine->wakes_first);
    machine->wakes_first = true;
    while (list->tail) { /* the last one first, for the next one goes ahead of it */
        rs_strand *last = rs_strands_slot(&machine->strands, list->tail - 1);
        RS_CHECK(last->waiter.list == list && last->waiter.next == 0);
        rs_wake(machine, rs_strand_id(last), last->ticket, RS_WAKE_VALUE, 0);
    }
    machine->wakes_first = false;
}

bool rs_unblock(rs_machine *machine, rs_strand *strand) {
    RS_CHECK(strand->state != RS_STRAND_FREE);
    bool in_hook = strand->wait == RS_WAIT_BLOCK && !strand->unblocked;
    /* READY and not in a wait: displaced, which for its own code is still RUNNING. */
    bool runs = strand->state == RS_STRAND_RUNNING || strand->state == RS_STRAND_READY;
    if (runs && strand->wait == RS_WAIT_NONE) {
        strand->permit = true;
        return false;
    }
    if (!in_hook) {
        machine->metrics.wakes_dropped++;
        return false;
    }
    RS_CHECK(!strand->permit); /* this wait would have taken it */
    strand->unblocked = true;
    if (strand->state == RS_STRAND_PARKED) {
        return rs_wake(machine, rs_strand_id(strand), strand->ticket, RS_WAKE_VALUE, 0);
    }
    /* A timer or a cancellation was first, but the lock behind this unblock is already ours: the unblock wins. The
     * cancellation is level-triggered and meets the next park. */
    strand->wake = RS_WAKE_VALUE;
    return false;
}

bool rs_unblock_first(rs_machine *machine, rs_strand *strand) {
    RS_CHECK(!machine->wakes_first);
    machine->wakes_first = true;
    bool woken = rs_unblock(machine, strand);
    machine->wakes_first = false;
    return woken;
}

bool rs_unblock_late(rs_machine *machine, rs_id id, uint64_t ticket) {
    rs_strand *strand = rs_strand_find(&machine->strands, id);
    if (strand && strand->ticket == ticket && strand->wait == RS_WAIT_BLOCK) return rs_unblock(machine, strand);
    machine->metrics.wakes_dropped++;
    return false;
}
