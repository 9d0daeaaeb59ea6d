#include "machine.h"

void rs_scope_attach(rs_scope *scope, rs_scope *parent, uint32_t owner) {
    *scope = (rs_scope){.parent = parent, .owner = owner, .deadline_ns = RS_NEVER};
    rs_timer_init(&scope->timer, RS_TIMER_SCOPE);
    if (!parent) return;
    scope->effective = parent->effective;
    scope->next = parent->first_child;
    if (scope->next) scope->next->previous = scope;
    parent->first_child = scope;
}

/* Parks of the scope's owner end now, if the owner is inside no deeper scope (that one has its own turn). */
static void cancel_owner(rs_machine *machine, rs_scope *scope) {
    rs_strand *strand = rs_strand_at(&machine->strands, scope->owner);
    if (strand->scope == scope) rs_interrupt_park(machine, strand, RS_WAKE_CANCEL);
}

/* Pre-order walk without recursion: scopes nest as deep as the user's program does. */
static void spread(rs_machine *machine, rs_scope *top) {
    rs_scope *scope = top;
    for (;;) {
        bool enter = scope == top || !scope->shield;
        if (enter && !scope->effective) {
            scope->effective = true;
            cancel_owner(machine, scope);
            if (scope->first_child) {
                scope = scope->first_child;
                continue;
            }
        }
        while (scope != top && !scope->next) scope = scope->parent;
        if (scope == top) return;
        scope = scope->next;
    }
}

/* The scopes inside, and the strands spawned into it, belong to the one above from now on, and what a shield of this one
 * hid meets them. */
static void move_up(rs_machine *machine, rs_scope *scope) {
    rs_scope *above = scope->parent;
    if (above) above->live += scope->live;
    scope->live = 0;
    for (rs_scope *child; (child = scope->first_child);) {
        scope->first_child = child->next;
        if (child->next) child->next->previous = NULL;
        child->parent = above;
        child->next = above ? above->first_child : NULL;
        if (child->next) child->next->previous = child;
        if (!above) continue;
        above->first_child = child;
        if (above->effective && !child->shield) spread(machine, child);
    }
}

void rs_scope_detach(rs_machine *machine, rs_scope *scope) {
    if (RS_UNLIKELY(scope->first_child != NULL)) move_up(machine, scope);
    rs_timer_clear(&machine->timers, &scope->timer);
    if (scope->next) scope->next->previous = scope->previous;
    if (scope->previous) scope->previous->next = scope->next;
    else if (scope->parent) scope->parent->first_child = scope->next;
    scope->next = scope->previous = NULL;
}

void rs_scope_open(rs_machine *machine, rs_scope *scope, int64_t deadline_ns, bool shield) {
    rs_strand *strand = rs_running(machine);
    rs_scope_attach(scope, strand->scope, strand->index);
    scope->deadline_ns = deadline_ns;
    if (shield) {
        scope->shield = true;
        scope->effective = false;
        strand->shield_depth++;
    }
    strand->scope = scope;
}

void rs_scope_close(rs_machine *machine, rs_scope *scope) {
    if (scope->closed) return;
    rs_strand *strand = rs_strand_at(&machine->strands, scope->owner);
    RS_ASSERT(strand->state != RS_STRAND_FREE && scope != &strand->own);
    scope->closed = true;
    if (scope->shield) strand->shield_depth--;
    if (strand->scope == scope) strand->scope = scope->parent;
    rs_scope_detach(machine, scope);
    scope->parent = NULL;
    rs_list_wake_all(machine, &scope->waiters, 0);
    /* Closed by another strand, a shield may have kept from the owner what ends its wait now. */
    if (strand->interrupts > 0) rs_interrupt_park(machine, strand, RS_WAKE_INTERRUPT);
    if (strand->scope->effective) rs_interrupt_park(machine, strand, RS_WAKE_CANCEL);
}

void rs_scope_cancel(rs_machine *machine, rs_scope *scope, rs_cancel_cause cause) {
    if (scope->cause != RS_NOT_CANCELLED || scope->closed) return;
    rs_trace_if(machine, RS_TRACE_CANCEL, scope->owner, cause);
    machine->metrics.cancels++;
    scope->cause = cause;
    rs_timer_clear(&machine->timers, &scope->timer);
    spread(machine, scope);
}

void rs_scope_set_deadline(rs_machine *machine, rs_scope *scope, int64_t deadline_ns) {
    scope->deadline_ns = deadline_ns;
    if (scope->armed && !scope->closed && scope->cause == RS_NOT_CANCELLED) {
        rs_timer_set(&machine->timers, &scope->timer, deadline_ns);
    }
}

void rs_scope_arm(rs_machine *machine, rs_scope *scope) {
    for (; scope && !scope->armed; scope = scope->parent) {
        scope->armed = true;
        if (scope->cause != RS_NOT_CANCELLED || scope->deadline_ns == RS_NEVER) continue;
        if (scope->deadline_ns <= rs_now(machine)) rs_scope_cancel(machine, scope, RS_CANCELLED_BY_DEADLINE);
        else rs_timer_set(&machine->timers, &scope->timer, scope->deadline_ns);
    }
}

bool rs_scope_answers(const rs_scope *scope) {
    if (scope->cause == RS_NOT_CANCELLED) return false;
    return scope->shield || !scope->parent || !scope->parent->effective;
}
