#include "core/machine.h"

void rs_machine_drive(rs_machine *machine, const rs_driver *driver, void *user, void *root_user) {
    RS_CHECK(!driver->stack == !driver->outer_stack);
    machine->driver = *driver;
    machine->user = user;
    rs_runs(machine)->user = root_user;
}

/* A time that no later wait writes over would be taken for that wait's. */
void rs_machine_note_parks(rs_machine *machine, bool notes) {
    machine->notes_parks = notes;
    RS_EACH_STRAND(&machine->strands, strand) strand->parked_at_ns = 0;
}

void rs_count_inline(rs_machine *machine) { machine->metrics.ops_inline++; }
void rs_count_spliced(rs_machine *machine, uint64_t bytes) { machine->metrics.bytes_spliced += bytes; }

bool rs_is_simulated(const rs_machine *machine) { return machine->backend->simulated; }

int64_t rs_now(rs_machine *machine) { return machine->clock ? machine->clock(machine) : rs_clock_ns(); }

rs_strand *rs_running(const rs_machine *machine) { return rs_runs(machine); }
bool rs_is_root(const rs_machine *machine, const rs_strand *strand) { return rs_strand_id(strand) == machine->root; }
rs_strand *rs_root(const rs_machine *machine) { return rs_strand_find(&machine->strands, machine->root); }

void rs_remind(rs_machine *machine, int64_t at_ns) {
    rs_timer *reminder = &machine->reminder;
    if (!rs_timer_is_set(reminder) || at_ns < reminder->deadline_ns) rs_timer_set(&machine->timers, reminder, at_ns);
}

void rs_forget_reminder(rs_machine *machine) { rs_timer_clear(&machine->timers, &machine->reminder); }

bool rs_call_at_tick_end(rs_machine *machine, void (*call)(uintptr_t data), uintptr_t data) {
    return rs_tick_ends_add(&machine->tick_ends, call, data);
}

void rs_tick_ends_each(const rs_machine *machine, void (*visit)(uintptr_t data)) {
    rs_tick_ends_visit(&machine->tick_ends, visit);
}

uint64_t rs_next_ticket(const rs_machine *machine) { return machine->last_ticket + 1; }

void rs_void_ticket(rs_machine *machine, uint64_t ticket) {
    RS_CHECK(ticket <= rs_next_ticket(machine));
    if (machine->last_ticket < ticket) machine->last_ticket = ticket;
}

void rs_expect_waker(rs_machine *machine) { machine->wakers++; }

void rs_drop_waker(rs_machine *machine) {
    RS_CHECK(machine->wakers > 0);
    machine->wakers--;
}

void rs_forget_permit(rs_machine *machine) { rs_runs(machine)->permit = false; }

void rs_flush(rs_machine *machine) {
    if (RS_UNLIKELY(!rs_links_empty(&machine->tick_ends))) rs_tick_ends_call(&machine->tick_ends);
    for (rs_gathered *next; (next = RS_LINKED(machine->gathered.first, rs_gathered, link));) {
        RS_CHECK(next->listed);
        next->flush(machine, next);
    }
}
