#include "core/machine.h"

/* As many turns a strand has that is cancelled and never waits, before the end of one raises that: so much at least an `ensure`
 * block can do that runs when the cancellation comes (docs/decisions/03). */
#define TURNS_OF_CANCELLED 128

/* So long a strand waits for locks in its `ensure` blocks (rs_patience_begin). */
#define PATIENCE_US 1000000

static void is_to_be_met(rs_scope *scope) {
    scope->met = false;
    scope->turns_left = TURNS_OF_CANCELLED;
    scope->patience_us = PATIENCE_US;
}

void rs_scope_attach(rs_scope *scope, rs_scope *parent, uint32_t owner) {
    RS_CHECK(!parent || !parent->closed);
    *scope = (rs_scope){.parent = parent, .owner = owner, .deadline_ns = RS_NEVER};
    rs_timer_init(&scope->timer, RS_TIMER_SCOPE);
    if (!parent) return;
    scope->effective = parent->effective;
    is_to_be_met(scope);
    rs_links_prepend(&parent->children, &scope->link);
}

/* Parks of the scope's owner end now, if the owner is inside no deeper scope (spread comes to that one as well). */
static void cancel_owner(rs_machine *machine, rs_scope *scope) {
    rs_strand *strand = rs_strands_slot(&machine->strands, scope->owner);
    RS_CHECK(strand->state != RS_STRAND_FREE && scope->effective);
    if (strand->scope == scope) rs_interrupt_park(machine, strand, RS_WAKE_CANCEL);
}

static bool is_cancelled(const rs_scope *scope) {
    if (scope->cause != RS_NOT_CANCELLED) return true;
    return !scope->shield && scope->parent && scope->parent->effective;
}

static rs_scope *first_child(const rs_scope *scope) { return RS_LINKED(scope->children.first, rs_scope, link); }

/* A cancellation goes down the tree, and is taken back where the scope that it came from is gone. Pre-order walk without
 * recursion: scopes nest as deep as the user's program does. */
static void spread(rs_machine *machine, rs_scope *top) {
    RS_CHECK(!top->closed);
    rs_scope *scope = top;
    for (;;) {
        bool effective = is_cancelled(scope);
        if (scope->effective != effective) {
            scope->effective = effective;
            is_to_be_met(scope);
            if (effective) cancel_owner(machine, scope);
            if (!rs_links_empty(&scope->children)) {
                scope = first_child(scope);
                continue;
            }
        }
        while (scope != top && !scope->link.next) scope = scope->parent;
        if (scope == top) return;
        scope = RS_LINKED(scope->link.next, rs_scope, link);
    }
}

static void take_out(rs_scope *scope) {
    if (scope->parent) rs_links_remove(&scope->parent->children, &scope->link);
}

static void move_to(rs_machine *machine, rs_scope *scope, rs_scope *above) {
    RS_CHECK(scope != above && !scope->closed);
    take_out(scope);
    RS_CHECK(!above || !above->closed);
    scope->parent = above;
    if (above) rs_links_prepend(&above->children, &scope->link);
    spread(machine, scope);
}

/* The scopes inside, and the strands spawned into it, belong to the one above from now on: what a shield of this one hid
 * meets them, and its own cancellation does not stay with its owner, whose code leaves it. A strand that it has cancelled
 * stays cancelled. */
static void move_up(rs_machine *machine, rs_scope *scope) {
    rs_scope *above = scope->parent;
    if (above) above->live += scope->live;
    scope->live = 0;
    for (rs_scope *child; (child = first_child(scope));) {
        RS_CHECK(child->parent == scope);
        bool is_strand = child == &rs_strands_slot(&machine->strands, child->owner)->own;
        if (is_strand && child->effective) child->cause = RS_CANCELLED_BY_CALL;
        move_to(machine, child, above);
    }
}

void rs_scope_detach(rs_machine *machine, rs_scope *scope) {
    if (RS_UNLIKELY(!rs_links_empty(&scope->children))) move_up(machine, scope);
    RS_ASSERT(rs_links_empty(&scope->children));
    RS_CHECK(scope->live == 0); /* each has a scope of its own in there */
    rs_timer_clear(&machine->timers, &scope->timer);
    take_out(scope);
}

void rs_scope_open(rs_machine *machine, rs_scope *scope, int64_t deadline_ns, bool shield) {
    machine->scopes_open++;
    rs_strand *strand = rs_runs(machine);
    if (RS_UNLIKELY(strand->stacked > 0)) rs_scope_follow(machine);
    RS_CHECK(!strand->scope->closed);
    RS_CHECK(strand->state == RS_STRAND_RUNNING && deadline_ns >= 0);
    rs_scope_attach(scope, strand->scope, strand->index);
    scope->deadline_ns = deadline_ns;
    scope->met = strand->scope->met && !shield;
    if (!shield) {
        scope->turns_left = strand->scope->turns_left;
        scope->patience_us = strand->scope->patience_us;
    }
    scope->stack = machine->driver.stack ? machine->driver.stack(machine) : NULL;
    if (RS_UNLIKELY(scope->stack != NULL)) strand->stacked++;
    rs_links_prepend(&strand->open_scopes, &scope->of_owner);
    if (shield) {
        scope->shield = true;
        scope->effective = false;
        strand->shield_depth++;
    }
    strand->scope = scope;
}

static void leave_open_ones(rs_strand *strand, rs_scope *scope) {
    RS_CHECK(scope->owner == strand->index);
    RS_CHECK(scope->stack == NULL || strand->stacked > 0);
    if (RS_UNLIKELY(scope->stack != NULL)) strand->stacked--;
    rs_links_remove(&strand->open_scopes, &scope->of_owner);
}

void rs_scope_close(rs_machine *machine, rs_scope *scope) {
    if (scope->closed) return;
    RS_CHECK(machine->scopes_open > 0);
    machine->scopes_open--;
    rs_strand *strand = rs_strands_slot(&machine->strands, scope->owner);
    RS_CHECK(strand->state != RS_STRAND_FREE && scope != &strand->own);
    scope->closed = true;
    RS_CHECK(scope->waiters.len <= 1); /* its owner */
    leave_open_ones(strand, scope);
    RS_CHECK(!scope->shield || scope->aside || strand->shield_depth > 0);
    if (scope->shield && !scope->aside) strand->shield_depth--;
    if (strand->scope == scope) strand->scope = scope->parent;
    rs_scope_detach(machine, scope);
    scope->parent = NULL;
    rs_list_wake_all(machine, &scope->waiters, 0);
    /* Closed by another strand, a shield may have kept from the owner what ends its wait now. */
    if (strand->interrupts > 0) rs_interrupt_park(machine, strand, RS_WAKE_INTERRUPT);
    if (strand->scope->effective) rs_interrupt_park(machine, strand, RS_WAKE_CANCEL);
}

rs_scope *rs_scope_run_here(rs_machine *machine) {
    rs_strand *strand = rs_runs(machine);
    if (RS_UNLIKELY(strand->stacked > 0)) rs_scope_follow(machine);
    rs_scope *scope = strand->scope;
    while (scope && !scope->run) scope = scope->parent;
    return scope;
}

void rs_scope_begin_outermost_run(rs_machine *machine, rs_scope *scope) {
    rs_strand *root = rs_root(machine);
    RS_CHECK(root != NULL);
    rs_scope_attach(scope, &root->own, root->index);
    rs_scope_make_run(scope);
}

void rs_scope_close_all(rs_machine *machine, rs_strand *strand) {
    RS_EACH_OPEN_SCOPE(strand, scope) rs_scope_close(machine, scope);
}

void rs_scope_forget_all(rs_strand *strand) {
    RS_EACH_OPEN_SCOPE(strand, scope) {
        RS_CHECK(!scope->closed && scope->owner == strand->index);
        *scope = (rs_scope){.closed = true, .cause = scope->cause, .effective = scope->effective};
        rs_timer_init(&scope->timer, RS_TIMER_SCOPE);
    }
    strand->open_scopes = (rs_links){0};
    strand->stacked = 0;
}

/* From the outermost on, so that each is put under one that has its place already. A deadline that comes to stand above a
 * wait may have been without a timer so far. */
static void put_in_order(rs_machine *machine, rs_strand *strand, rs_scope *outermost) {
    rs_scope *above = &strand->own;
    bool moved = false;
    strand->shield_depth = 0;
    for (rs_scope *scope = outermost; scope; scope = scope->inner) {
        if (scope->parent != above) {
            move_to(machine, scope, above);
            moved = true;
        }
        RS_CHECK(!scope->aside && !scope->closed);
        if (scope->shield) strand->shield_depth++;
        above = scope;
    }
    strand->scope = above;
    RS_CHECK(above->owner == strand->index);
    if (!moved) return;
    for (rs_scope *scope = above; scope != &strand->own; scope = scope->parent) scope->armed = false;
    rs_scope_arm(machine, above);
}

void rs_scope_follow(rs_machine *machine) {
    rs_strand *strand = rs_runs(machine);
    rs_scope *outermost = NULL;
    RS_EACH_OPEN_SCOPE(strand, scope) scope->aside = true;
    RS_CHECK(strand->stacked > 0 && machine->driver.stack != NULL);
    const void *stack = machine->driver.stack(machine);
    for (;; stack = machine->driver.outer_stack(stack)) {
        RS_EACH_OPEN_SCOPE(strand, scope) {
            if (scope->stack != stack || !scope->aside) continue;
            scope->aside = false;
            scope->inner = outermost;
            outermost = scope;
        }
        if (!stack) break;
    }
    put_in_order(machine, strand, outermost);
}

void rs_scope_cancel(rs_machine *machine, rs_scope *scope, rs_cancel_cause cause) {
    if (scope->cause != RS_NOT_CANCELLED || scope->closed) return;
    RS_CHECK(cause != RS_NOT_CANCELLED);
    rs_trace_if(machine, RS_TRACE_CANCEL, scope->owner, cause);
    machine->metrics.cancels++;
    scope->cause = cause;
    rs_timer_clear(&machine->timers, &scope->timer);
    spread(machine, scope);
    RS_CHECK(scope->effective);
}

void rs_cancellation_met(rs_machine *machine) {
    rs_strand *strand = rs_runs(machine);
    for (rs_scope *scope = strand->scope; scope && scope->owner == strand->index; scope = scope->parent) {
        scope->met = scope->effective;
    }
}

bool rs_turn_meets_cancellation(rs_machine *machine) {
    rs_strand *strand = rs_runs(machine);
    RS_CHECK(strand->scope->effective);
    if (strand->scope->met) return false;
    for (rs_scope *scope = strand->scope; scope && scope->owner == strand->index; scope = scope->parent) {
        if (scope->turns_left > 0) scope->turns_left--;
    }
    return strand->scope->turns_left == 0;
}

void rs_scope_forgive(rs_machine *machine, rs_scope *scope) {
    rs_timer_clear(&machine->timers, &scope->timer);
    scope->deadline_ns = RS_NEVER;
    RS_CHECK(!scope->closed);
    scope->cause = RS_NOT_CANCELLED;
    spread(machine, scope);
    RS_CHECK(scope->effective == is_cancelled(scope));
}

void rs_scope_set_deadline(rs_machine *machine, rs_scope *scope, int64_t deadline_ns) {
    RS_CHECK(scope->armed || !rs_timer_is_set(&scope->timer));
    scope->deadline_ns = deadline_ns;
    if (scope->armed && !scope->closed && scope->cause == RS_NOT_CANCELLED) {
        rs_timer_set(&machine->timers, &scope->timer, deadline_ns);
    }
}

void rs_scope_arm(rs_machine *machine, rs_scope *scope) {
    for (; scope && !scope->armed; scope = scope->parent) {
        RS_CHECK(!scope->closed);
        scope->armed = true;
        if (scope->cause != RS_NOT_CANCELLED || scope->deadline_ns == RS_NEVER) continue;
        if (scope->deadline_ns <= rs_now(machine)) rs_scope_cancel(machine, scope, RS_CANCELLED_BY_DEADLINE);
        else rs_timer_set(&machine->timers, &scope->timer, scope->deadline_ns);
    }
}

bool rs_scope_answers(const rs_scope *scope) {
    if (scope->cause == RS_NOT_CANCELLED) return false;
    RS_CHECK(scope->effective);
    return scope->shield || !scope->parent || !scope->parent->effective;
}
