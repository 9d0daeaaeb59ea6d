#include "ringspun/core/machine.h"

void rs_machine_drive(rs_machine *machine, const rs_driver *driver, void *user, void *root_user) {
    RS_CHECK(!driver->stack == !driver->outer_stack);
    machine->driver = *driver;
    machine->user = user;
    rs_running(machine)->user = root_user;
}

/* A time that no later wait writes over would be taken for that wait's. */
void rs_machine_note_parks(rs_machine *machine, bool notes) {
    machine->notes_parks = notes;
    RS_EACH_STRAND(&machine->strands, strand) strand->parked_at_ns = 0;
}

void rs_flush(rs_machine *machine) {
    if (RS_UNLIKELY(!rs_links_empty(&machine->tick_ends))) rs_tick_ends_call(&machine->tick_ends);
    for (rs_gathered *next; (next = RS_LINKED(machine->gathered.first, rs_gathered, link));) {
        RS_CHECK(next->listed);
        next->flush(machine, next);
    }
}
