/* program_check: a second opinion on what may wait, what may end a wait, and what is left at the end. It reads the scopes'
 * causes, shields and deadlines only, and nothing that the engine derives from them. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* A cancelled op ends after its late cancellation, or after the retries and delays that it was in. */
#define CANCELS_WITHIN(faults) (10 * (faults).delay_max_ns + 10 * MS)
#define UNTOUCHED 0xA5

static bool chain_is_cancelled(const rs_scope *scope) {
    for (; scope; scope = scope->parent) {
        if (scope->cause != RS_NOT_CANCELLED) return true;
        if (scope->shield) return false;
    }
    return false;
}

static bool chain_is_overdue(const rs_scope *scope, int64_t now_ns) {
    for (; scope; scope = scope->parent) {
        if (scope->cause == RS_NOT_CANCELLED && scope->deadline_ns <= now_ns) return true;
        if (scope->shield) return false;
    }
    return false;
}

static bool is_shielded_from_interrupts(const rs_scope *scope) {
    for (uint32_t owner = scope->owner; scope && scope->owner == owner; scope = scope->parent) {
        if (scope->shield) return true;
    }
    return false;
}

static bool is_interrupted(const rs_strand *strand) {
    return strand->interrupts > 0 && !is_shielded_from_interrupts(strand->scope);
}

bool answers(const rs_scope *scope) {
    return scope->cause != RS_NOT_CANCELLED && (scope->shield || !chain_is_cancelled(scope->parent));
}

int64_t wait_until(worker *self, int64_t deadline_ns) {
    self->deadline_ns = deadline_ns;
    return deadline_ns;
}

bool program_waits(worker *self, bool parked, bool shielded) {
    rs_strand *strand = self->task.strand;
    bool cancelled = chain_is_cancelled(strand->scope);
    EXPECT(self, strand->scope->effective == cancelled || (self->program->untidy && !cancelled), strand->wait);
    if (!parked) return false;
    self->program->parks++;
    if (shielded) return true;
    EXPECT(self, !chain_is_cancelled(strand->scope), strand->wait);
    EXPECT(self, !is_interrupted(strand), strand->wait);
    return true;
}

/* How the wait ended must have a reason. */
void program_ended(worker *self) {
    rs_machine *machine = self->program->driver.machine;
    rs_strand *strand = self->task.strand;
    switch (self->task.wake) {
    case RS_WAKE_CANCEL: EXPECT(self, chain_is_cancelled(strand->scope) || self->program->untidy, 0); break;
    case RS_WAKE_INTERRUPT: EXPECT(self, is_interrupted(strand), strand->interrupts); break;
    case RS_WAKE_TIMEOUT: EXPECT(self, self->deadline_ns <= rs_now(machine), self->deadline_ns); break;
    default: break;
    }
    EXPECT(self, strand->hand == 0, (int64_t)strand->hand);
    if (self->task.ticket) self->old_ticket = self->task.ticket;
    self->deadline_ns = RS_NEVER;
    self->overdue_since_ns = 0;
}

bool program_goes_on(worker *self) {
    program_ended(self);
    if (self->task.wake == RS_WAKE_INTERRUPT) {
        self->task.strand->interrupts--;
        return chance(self, 50);
    }
    return self->task.wake != RS_WAKE_CANCEL;
}

/* --- memory --- */

uint8_t *buffer_take(worker *self, uint64_t len) {
    if (self->buffer) {
        for (uint64_t i = 0; i < self->buffer_len; i++) {
            if (self->buffer[i] != UNTOUCHED) {
                program_fail(self, "memory was written to after its op had ended, at", (int64_t)i);
                break;
            }
        }
        free(self->buffer);
    }
    self->buffer_len = len;
    self->buffer = calloc(1, len);
    return self->buffer;
}

void buffer_give(worker *self) { memset(self->buffer, UNTOUCHED, self->buffer_len); }

uint8_t stream_byte(uint64_t at) { return (uint8_t)(at * 31 + at / 251); }

/* --- scopes around a role's work, and for cleaning up --- */

void enclose(worker *self) {
    if (!chance(self, 30)) return;
    rs_machine *machine = self->program->driver.machine;
    RS_ASSERT(rs_reserve_timer(machine));
    rs_scope_open(machine, &self->scopes[self->depth++], draw_deadline(self, 50, 30 * MS), chance(self, 10));
}

void unclose(worker *self) {
    while (self->depth > 0) rs_scope_close(self->program->driver.machine, &self->scopes[--self->depth]);
}

void clean_begin(worker *self) {
    self->ending = true;
    self->shield_cleaning = chance(self, 50);
    if (!self->shield_cleaning) return;
    rs_machine *machine = self->program->driver.machine;
    RS_ASSERT(rs_reserve_timer(machine));
    rs_scope_open(machine, &self->cleaning, RS_NEVER, true);
}

void clean_end(worker *self) {
    if (self->shield_cleaning) rs_scope_close(self->program->driver.machine, &self->cleaning);
    self->shield_cleaning = false;
}

bool clean_request(worker *self, rs_request request) {
    if (self->shield_cleaning) return task_request(&self->task, &request, RS_NEVER);
    return task_request_shielded(&self->task, &request);
}

void clean_closed(worker *self) {
    EXPECT(self, self->task.wake == RS_WAKE_VALUE, self->task.wake);
    EXPECT(self, self->task.result == 0, self->task.result);
    program_ended(self);
}

/* --- the machine at rest --- */

static void check_parked(worker *self, const rs_strand *strand, int64_t now_ns) {
    rs_machine *machine = self->program->driver.machine;
    bool op = strand->wait == RS_WAIT_OP;
    if (!op && self->deadline_ns <= now_ns) program_fail(self, "its deadline has passed and it waits", strand->wait);
    if (strand->park_flags & RS_PARK_SHIELDED) return;
    if (chain_is_overdue(strand->scope, now_ns)) program_fail(self, "its scope's deadline has passed", strand->wait);
    bool overdue = chain_is_cancelled(strand->scope) || is_interrupted(strand) || self->deadline_ns <= now_ns;
    if (!overdue) return;
    if (!op) {
        program_fail(self, "it is cancelled or interrupted, and waits", strand->wait);
        return;
    }
    if (!self->overdue_since_ns) self->overdue_since_ns = now_ns;
    const rs_op *request = rs_op_at(rs_ops_in(machine), strand->op);
    EXPECT(self, request->cancel != RS_WAKE_VALUE || request->closing, request->request.kind);
    if (now_ns - self->overdue_since_ns > CANCELS_WITHIN(self->program->faults)) {
        program_fail(self, "its op does not end although it is cancelled", request->request.kind);
    }
}

static void check_shared(program *program) {
    worker *somebody = &program->workers[0];
    rs_machine *machine = program->driver.machine;
    for (int i = 0; i < MUTEXES; i++) {
        const rs_mutex *mutex = &program->mutexes[i];
        EXPECT(somebody, rs_mutex_is_locked(machine, mutex) || mutex->waiters.len == 0, i);
    }
    for (int i = 0; i < QUEUES; i++) {
        const rs_queue *queue = &program->queues[i].items;
        EXPECT(somebody, queue->len == 0 || queue->poppers.len == 0, i);
        EXPECT(somebody, queue->len == 0 || !rs_source_waiting(&queue->for_items, NULL), i);
        EXPECT(somebody, queue->len == QUEUE_CAPACITY || queue->pushers.len == 0, i);
        EXPECT(somebody, queue->len == QUEUE_CAPACITY || !rs_source_waiting(&queue->for_places, NULL), i);
    }
    EXPECT(somebody, program->stock.unblocked == 0, program->stock.unblocked);
    EXPECT(somebody, program->stock.owner || program->stock.waiting_len == 0, program->stock.waiting_len);
    EXPECT(somebody, rs_descriptors_in(machine)->closers.len == 0 || machine->in_flight > 0, rs_descriptors_in(machine)->closers.len);
}

/* Nothing is ready, so whoever waits has to wait. */
void check_at_rest(program *program) {
    rs_machine *machine = program->driver.machine;
    int64_t now_ns = rs_now(machine);
    uint32_t alive = 0;
    for (uint32_t i = 0; i < program->worker_count; i++) {
        worker *self = &program->workers[i];
        if (self->task.finished) continue;
        alive++;
        const rs_strand *strand = self->task.strand;
        EXPECT(self, strand->state == RS_STRAND_PARKED, strand->state);
        if (strand->state == RS_STRAND_PARKED) check_parked(self, strand, now_ns);
    }
    EXPECT(&program->workers[0], alive + 1 == rs_strands_live(&machine->strands), rs_strands_live(&machine->strands));
    check_shared(program);
}

static int64_t left;
static void add_left(uint64_t item) { left += (int64_t)item; }

void check_end(program *program) {
    rs_machine *machine = program->driver.machine;
    worker *somebody = &program->workers[0];
    EXPECT(somebody, machine->in_flight == 0, machine->in_flight);
    EXPECT(somebody, rs_ops_in(machine)->slab.used == 0, rs_ops_in(machine)->slab.used);
    EXPECT(somebody, machine->timers.len == 0, machine->timers.len);
    EXPECT(somebody, rs_links_empty(&rs_selectors_in(machine)->all), 0);
    EXPECT(somebody, rs_strands_live(&machine->strands) == 1, rs_strands_live(&machine->strands));
    EXPECT(somebody, rs_descriptors_in(machine)->closers.len == 0, rs_descriptors_in(machine)->closers.len);
    EXPECT(somebody, machine->backend_deadline_ns == RS_NEVER, machine->backend_deadline_ns);
    EXPECT(somebody, rs_sim_open_descriptors(machine) == 0, rs_sim_open_descriptors(machine));
    /* Every park was ended by one accepted wake; the root has parked twice. */
    EXPECT(somebody, machine->metrics.wakes == program->parks + 2, (int64_t)(machine->metrics.wakes - program->parks));
    for (int i = 0; i < QUEUES; i++) {
        item_queue *queue = &program->queues[i];
        left = 0;
        rs_queue_each(&queue->items, add_left);
        EXPECT(somebody, queue->pushed_count == queue->popped_count + queue->items.len, (int64_t)queue->items.len);
        EXPECT(somebody, queue->pushed == queue->popped + left, i);
        EXPECT(somebody, !rs_source_is_watched(&queue->items.for_items) && !rs_source_is_watched(&queue->items.for_places), i);
    }
    for (uint32_t i = 0; i < program->worker_count; i++) {
        worker *self = &program->workers[i];
        if (self->buffer) buffer_take(self, 1);
        free(self->buffer);
    }
}
