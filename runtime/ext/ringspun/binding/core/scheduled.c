#include "core.h"

void rsb_scheduled_begins(rsb_strand *scheduler, rsb_strand *strand) {
    strand->scheduler = scheduler;
    strand->previous_scheduled = NULL;
    strand->next_scheduled = scheduler->scheduled;
    if (strand->next_scheduled) strand->next_scheduled->previous_scheduled = strand;
    scheduler->scheduled = strand;
    strand->tells_end = scheduler->tells_end = true;
}

static void take_out(rsb_strand *strand) {
    rsb_strand *next = strand->next_scheduled, *previous = strand->previous_scheduled;
    if (next) next->previous_scheduled = previous;
    if (previous) previous->next_scheduled = next;
    else strand->scheduler->scheduled = next;
    strand->scheduler = strand->next_scheduled = strand->previous_scheduled = NULL;
}

/* Wakes the scheduler of a strand that ends when nothing that it has scheduled is left. */
static void scheduled_ends(rsb_machine *machine, rsb_strand *strand) {
    rsb_strand *scheduler = strand->scheduler;
    for (rsb_strand *left; (left = strand->scheduled);) {
        take_out(left);
        if (scheduler) rsb_scheduled_begins(scheduler, left);
    }
    if (!scheduler) return;
    take_out(strand);
    if (scheduler->scheduled) return;
    rs_strand *engine = rs_strand_find(&machine->engine.strands, scheduler->id);
    if (engine && engine->own.waiters.len > 0) rs_list_wake_all(&machine->engine, &engine->own.waiters, 0);
}

static void scheduled_forked(rsb_machine *machine, rsb_strand *survivor) {
    survivor->scheduler = survivor->scheduled = survivor->next_scheduled = survivor->previous_scheduled = NULL;
}

void rsb_scheduled_wait(rsb_machine *machine) {
    rsb_strand *me = rsb_running(machine);
    rs_list *waiters = &rs_running(&machine->engine)->own.waiters;
    while (me->scheduled) rsb_raise_wake(machine, rsb_wait(machine, RS_WAIT_SCOPE, 0, RS_NEVER, waiters, NULL, NULL));
}

static rsb_part part = {.forked = scheduled_forked, .strand_ends = scheduled_ends};

void rsb_init_scheduled(void) { rsb_register_part(&part); }
