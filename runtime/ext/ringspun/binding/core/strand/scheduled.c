#include "strand.h"

typedef struct {
    rsb_strand *scheduler;      /* the strand that has scheduled it, or NULL */
    rsb_strand *scheduled;      /* the last one that it has scheduled itself, of those that have not ended; or NULL */
    rsb_strand *next, *previous; /* of its scheduler's */
} family;

static rsb_part part;

static family *family_of(const rsb_strand *strand) { return rsb_strand_part(strand, &part); }

void rsb_scheduled_begins(rsb_strand *scheduler, rsb_strand *strand) {
    family *above = family_of(scheduler);
    *family_of(strand) = (family){.scheduler = scheduler, .scheduled = family_of(strand)->scheduled, .next = above->scheduled};
    if (above->scheduled) family_of(above->scheduled)->previous = strand;
    above->scheduled = strand;
    strand->tells_end = scheduler->tells_end = true;
}

static void take_out(rsb_strand *strand) {
    family *own = family_of(strand);
    if (own->next) family_of(own->next)->previous = own->previous;
    if (own->previous) family_of(own->previous)->next = own->next;
    else family_of(own->scheduler)->scheduled = own->next;
    own->scheduler = own->next = own->previous = NULL;
}

/* Wakes the scheduler of a strand that ends when nothing that it has scheduled is left. */
static void scheduled_ends(rsb_machine *machine, rsb_strand *strand) {
    rsb_strand *scheduler = family_of(strand)->scheduler;
    for (rsb_strand *left; (left = family_of(strand)->scheduled);) {
        take_out(left);
        if (scheduler) rsb_scheduled_begins(scheduler, left);
    }
    if (!scheduler) return;
    take_out(strand);
    if (family_of(scheduler)->scheduled) return;
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), scheduler->id);
    if (engine && rs_strand_own(engine)->waiters.len > 0) rs_list_wake_all(machine->engine, &rs_strand_own(engine)->waiters, 0);
}

static void scheduled_forked(rsb_machine *machine, rsb_strand *survivor) { *family_of(survivor) = (family){0}; }

void rsb_scheduled_wait(rsb_machine *machine) {
    const rsb_strand *me = rsb_running(machine);
    rs_list *waiters = &rs_strand_own(rs_running(machine->engine))->waiters;
    while (family_of(me)->scheduled) {
        rsb_raise_wake(machine, rsb_wait(machine, RS_WAIT_SCOPE, 0, RS_NEVER, waiters, NULL, NULL));
    }
}

static rsb_part part = {.strand_size = sizeof(family), .forked = scheduled_forked, .strand_ends = scheduled_ends};

void rsb_init_scheduled(void) { rsb_register_part(&part); }
