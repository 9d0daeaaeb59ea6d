/* forked: a machine in a child process. Every strand but the one that forked is forgotten: never resumed, never cancelled,
 * its lists, timers and ops dropped without a word to the kernel, which still works for the parent. */
#include "core/machine.h"

#include <stdlib.h>

static void forget_strands(rs_machine *machine, rs_strand *survivor) {
    rs_run_forget(&machine->strands);
    for (uint32_t i = 0; i < machine->timers.len; i++) {
        RS_CHECK(machine->timers.heap[i]->position == i);
        machine->timers.heap[i]->position = RS_NO_INDEX;
    }
    machine->timers.len = 0;
    RS_EACH_STRAND(&machine->strands, strand) {
        rs_list_remove(machine, strand);
        rs_source_drop(&strand->watched);
        if (strand == survivor) continue;
        rs_scope_forget_all(strand);
        rs_strand_release(&machine->strands, strand);
    }
    RS_CHECK(rs_strands_live(&machine->strands) == 1 && !survivor->queued);
    survivor->joiners = (rs_list){0};
}

static void cut_scope(rs_scope *scope, rs_scope *parent) {
    RS_CHECK(!scope->closed);
    scope->parent = parent;
    scope->children = (rs_links){0};
    scope->live = 0;
    scope->armed = false;
    scope->waiters = (rs_list){0};
    rs_timer_init(&scope->timer, RS_TIMER_SCOPE);
}

/* By its own cause or that of a scope above, up to the next shield. */
static bool still_cancelled(const rs_scope *scope) {
    for (; scope; scope = scope->shield ? NULL : scope->parent) {
        if (scope->cause != RS_NOT_CANCELLED) return true;
    }
    return false;
}

/* Keeps the tree of scopes that the survivor itself has open. */
static void cut_scopes(rs_machine *machine, rs_strand *survivor) {
    cut_scope(&survivor->own, NULL);
    survivor->own.effective = still_cancelled(&survivor->own);
    machine->scopes_open = 0;
    RS_EACH_OPEN_SCOPE(survivor, scope) {
        machine->scopes_open++;
        RS_CHECK(scope->owner == survivor->index && scope->parent != NULL);
        cut_scope(scope, scope->parent);
    }
    RS_EACH_OPEN_SCOPE(survivor, scope) {
        rs_links_prepend(&scope->parent->children, &scope->link);
        scope->effective = still_cancelled(scope);
    }
}

static void forget_messages(rs_machine *machine) {
    for (rs_message *message = rs_inbox_take(&machine->inbox); message;) {
        rs_message *next = message->next;
        RS_CHECK(message->kind < RS_MESSAGE_KINDS);
        const rs_part *part = machine->on_message[message->kind];
        if (part && part->forget_message) part->forget_message(machine, message);
        rs_message_free(message);
        message = next;
    }
}

int rs_machine_forked(rs_machine *machine) {
    rs_strand *survivor = rs_runs(machine);
    RS_CHECK(survivor->state == RS_STRAND_RUNNING);
    forget_messages(machine);
    machine->root = rs_strand_id(survivor);
    forget_strands(machine, survivor);
    cut_scopes(machine, survivor);
    machine->in_flight = machine->unawaited = machine->outside = machine->look_ups_waiting = machine->wakers = 0;
    rs_tick_ends_forget(&machine->tick_ends);
    atomic_store(&machine->sleeping, false);
    machine->backend_deadline_ns = RS_NEVER;
    /* Before the ops are forgotten, of which it may have results. */
    int error = machine->backend->forked(machine);
    RS_EACH_PART(machine, part) {
        if (part->forked) part->forked(machine, survivor);
    }
    RS_CHECK(rs_links_empty(&machine->gathered)); /* what the parts had gathered is the parent's to hand over */
    return error;
}

void rs_survive_fork(rs_machine *machine, rs_strand *survivor) {
    RS_CHECK(survivor->state != RS_STRAND_FREE);
    survivor->state = RS_STRAND_RUNNING;
    machine->running = survivor->index;
    machine->runs = survivor;
}

void rs_end_wait_of_survivor(rs_machine *machine) {
    rs_strand *survivor = rs_runs(machine);
    RS_CHECK(survivor->wait != RS_WAIT_NONE);
    survivor->wake = RS_WAKE_INTERRUPT;
    survivor->interrupts++;
    rs_displaced(machine);
}
