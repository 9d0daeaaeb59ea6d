#include "core/loop.h"

#include <errno.h>
#include <stdlib.h>

/* Of each strand for the end of its wait, of each open scope for its deadline, and for the reminder. */
bool rs_reserve_timer(rs_machine *machine) {
    RS_CHECK(machine->timers.len < rs_strands_live(&machine->strands) + machine->scopes_open + 2);
    return rs_timers_reserve(&machine->timers, rs_strands_live(&machine->strands) + machine->scopes_open + 2);
}

static bool start_root(rs_machine *machine) {
    rs_strand *root = rs_strand_take(&machine->strands);
    if (!root || !rs_reserve_timer(machine)) return false;
    RS_CHECK(root->index == 0);
    rs_scope_attach(&root->own, NULL, root->index);
    root->scope = &root->own;
    rs_strand_become(root, RS_STRAND_RUNNING);
    machine->root = rs_strand_id(root);
    machine->running = root->index;
    machine->runs = root;
    return true;
}

/* Each kind of message and of wait is one part's. */
static void open_parts(rs_machine *machine) {
    RS_EACH_PART(machine, part) {
        RS_CHECK(!part->on_message || !machine->on_message[part->message]);
        RS_CHECK(!part->interrupt || (part->takes_nothing && !machine->ends_wait[part->wait]));
        if (part->on_message) machine->on_message[part->message] = part;
        if (part->interrupt) machine->ends_wait[part->wait] = part;
        if (part->open) part->open(machine);
    }
}

static void free_all(rs_machine *machine) {
    size_t len = 0;
    while (machine->parts[len]) len++;
    while (len-- > 0) {
        if (machine->parts[len]->close) machine->parts[len]->close(machine);
    }
    rs_timers_free(&machine->timers);
    rs_strands_free(&machine->strands);
}

int rs_machine_start(rs_machine *machine) {
    RS_CHECK(machine->parts != NULL && machine->backend != NULL && machine->options.strands_max > 0);
    machine->backend_deadline_ns = RS_NEVER;
    machine->trace.enabled = machine->options.trace;
    rs_timer_init(&machine->reminder, RS_TIMER_REMINDER);
    rs_strands_init(&machine->strands, machine->options.strands_max);
    open_parts(machine);
    int error = start_root(machine) ? machine->backend->open(machine) : -ENOMEM;
    if (error) {
        free_all(machine);
        return error;
    }
    machine->polled_at_ns = rs_now(machine);
    return 0;
}

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

static rs_strand *make_strand(rs_machine *machine, rs_scope *scope, void *user) {
    if (!rs_reserve_timer(machine)) return NULL;
    rs_strand *strand = rs_strand_take(&machine->strands);
    if (!strand) return NULL;
    RS_CHECK(!scope || !scope->closed);
    RS_CHECK(rs_links_empty(&strand->open_scopes) && strand->joiners.len == 0 && strand->locks == 0);
    strand->user = user;
    rs_scope_attach(&strand->own, scope, strand->index);
    strand->scope = &strand->own;
    strand->own.armed = !scope || scope->armed; /* it has no deadline itself */
    if (scope) scope->live++;
    machine->metrics.strands_spawned++;
    rs_trace_if(machine, RS_TRACE_SPAWN, rs_strand_id(strand), 0);
    return strand;
}

rs_strand *rs_spawn(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push(&machine->strands, strand);
    return strand;
}

rs_strand *rs_spawn_next(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push_front(&machine->strands, strand);
    return strand;
}

rs_strand *rs_spawn_behind_front(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push_behind_front(&machine->strands, strand);
    return strand;
}

rs_strand *rs_spawn_in_place(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push_front_of_others(&machine->strands, strand);
    return strand;
}

static void end_holder(rs_machine *machine, const rs_strand *strand) {
    RS_EACH_PART(machine, part) {
        if (part->holder_ends) part->holder_ends(machine, strand);
    }
}

void rs_finish(rs_machine *machine) {
    rs_strand *strand = rs_running(machine);
    RS_CHECK(strand->state == RS_STRAND_RUNNING);
    if (RS_UNLIKELY(strand->locks > 0)) end_holder(machine, strand);
    rs_scope_close_all(machine, strand);
    RS_CHECK(strand->scope == &strand->own && strand->shield_depth == 0 && strand->stacked == 0);
    rs_trace_if(machine, RS_TRACE_FINISH, rs_strand_id(strand), 0);
    rs_scope *scope = strand->own.parent;
    rs_scope_detach(machine, &strand->own);
    if (RS_UNLIKELY(rs_source_is_watched(&strand->watched))) {
        rs_source_ready(&strand->watched);
        rs_source_drop(&strand->watched);
    }
    if (strand->joiners.len > 0) rs_list_wake_all(machine, &strand->joiners, 0);
    if (scope) {
        RS_CHECK(!scope->closed);
        RS_CHECK(scope->live > 0);
        if (--scope->live == 0) rs_list_wake_all(machine, &scope->waiters, 0);
    }
    RS_ASSERT(rs_links_empty(&strand->own.children) && strand->joiners.len == 0 && rs_links_empty(&strand->open_scopes));
    machine->running = RS_NO_INDEX;
    rs_strand_release(&machine->strands, strand);
}

rs_wake_kind rs_refusal(rs_machine *machine, uint32_t flags) {
    rs_strand *strand = rs_running(machine);
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
    rs_strand *strand = rs_running(machine);
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
    rs_strand *strand = rs_running(machine);
    RS_ASSERT(strand->state == RS_STRAND_RUNNING && strand->wait != RS_WAIT_NONE);
    RS_CHECK(!rs_timer_is_set(&strand->timer) && strand->waiter.list == NULL && !strand->queued);
    /* The last moment for an unblock from another thread to win: one may have come since this strand was chosen to run. */
    if (RS_UNLIKELY(strand->wait == RS_WAIT_BLOCK && strand->wake != RS_WAKE_VALUE)) rs_take_messages(machine);
    strand->wait = RS_WAIT_NONE;
    if (result) *result = strand->result;
    return (rs_wake_kind)strand->wake;
}

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
    rs_strand *strand = rs_running(machine);
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

rs_strand *rs_spawn_first(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (!strand) return NULL;
    rs_strand *caller = begin_yield(machine);
    end_wait(caller, RS_WAKE_VALUE, 0);
    rs_run_push_front(&machine->strands, caller);
    RS_CHECK(machine->strands.woken.head == caller->index && caller->state == RS_STRAND_READY);
    rs_run_now(machine, strand);
    return strand;
}

void rs_displaced(rs_machine *machine) {
    if (machine->running == RS_NO_INDEX) return;
    rs_strand *strand = rs_running(machine);
    RS_CHECK(!rs_timer_is_set(&strand->timer) && strand->waiter.list == NULL);
    rs_strand_become(strand, RS_STRAND_READY);
    machine->running = RS_NO_INDEX;
    rs_run_push_front(&machine->strands, strand);
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
        rs_strand *last = rs_strand_at(&machine->strands, list->tail - 1);
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

static void take_message(rs_machine *machine, const rs_message *message) {
    RS_CHECK(message->kind < RS_MESSAGE_KINDS);
    machine->metrics.messages++;
    const rs_part *part = machine->on_message[message->kind];
    if (part) {
        part->on_message(machine, message);
    } else if (message->kind == RS_MESSAGE_WAKE) {
        RS_CHECK(machine->wakers > 0);
        machine->wakers--;
        rs_wake(machine, message->name, message->payload, RS_WAKE_VALUE, message->value);
    } else if (message->kind == RS_MESSAGE_NUDGE) {
        rs_wake(machine, message->name, message->payload, RS_WAKE_VALUE, message->value);
    } else if (message->kind == RS_MESSAGE_UNBLOCK) {
        rs_unblock_late(machine, message->name, message->payload);
    } else if (machine->driver.on_message) {
        machine->driver.on_message(machine, message);
    }
}

void rs_take_messages(rs_machine *machine) {
    if (RS_LIKELY(rs_inbox_empty(&machine->inbox))) return;
    RS_CHECK(machine->taken == NULL);
    machine->taken = rs_inbox_take(&machine->inbox);
    while (machine->taken) {
        rs_message *message = machine->taken;
        take_message(machine, message);
        machine->taken = message->next;
        free(message);
    }
}

static void end_parts(rs_machine *machine) {
    RS_EACH_PART(machine, part) {
        if (part->ends) part->ends(machine);
    }
}

void rs_machine_leave(rs_machine *machine) {
    RS_CHECK(machine->backend != NULL && machine->backend_state != NULL);
    end_parts(machine);
    if (machine->backend->leave) machine->backend->leave(machine);
    RS_EACH_PART(machine, part) {
        if (part->left) part->left(machine);
    }
}

void rs_machine_close(rs_machine *machine) {
    RS_CHECK(machine->backend != NULL && !atomic_load(&machine->sleeping));
    RS_CHECK(machine->taken == NULL);
    machine->backend->close(machine);
    end_parts(machine);
    rs_tick_ends_forget(&machine->tick_ends);
    /* The last answers of workers may be descriptors that nobody takes. */
    machine->driver.on_message = NULL;
    rs_take_messages(machine);
    free_all(machine);
    rs_timer_init(&machine->reminder, RS_TIMER_REMINDER);
    machine->in_flight = 0;
}

void rs_flush(rs_machine *machine) {
    if (RS_UNLIKELY(!rs_links_empty(&machine->tick_ends))) rs_tick_ends_call(&machine->tick_ends);
    for (rs_gathered *next; (next = RS_LINKED(machine->gathered.first, rs_gathered, link));) {
        RS_CHECK(next->listed);
        next->flush(machine, next);
    }
}

void rs_send(rs_machine *machine, rs_message *message) {
    rs_inbox_push(&machine->inbox, message);
    if (atomic_load(&machine->sleeping)) rs_wake_up(machine);
}

void rs_wake_up(rs_machine *machine) { machine->backend->wake(machine); }
