/* program_wander: the role that opens and closes scopes, spawns, joins, and disturbs the others. */
#include "program.h"

static rs_machine *machine_of(const worker *self) { return self->program->driver.machine; }
static rs_scope *innermost(worker *self) { return &self->scopes[self->depth - 1]; }

static void open_scope(worker *self) {
    if (self->depth == SCOPES_MAX) return;
    RS_ASSERT(rs_reserve_timer(machine_of(self)));
    rs_scope_open(machine_of(self), &self->scopes[self->depth++], draw_deadline(self, 40, 20 * MS), chance(self, 15));
    program_say(self, "opens scope", self->depth);
}

static void spawn_somebody(worker *self) {
    static const role roles[] = {ROLE_WANDERER, ROLE_PRODUCER, ROLE_SERVER, ROLE_FILER, ROLE_VICTIM, ROLE_LOCKER,
                                 ROLE_STOCK_LOCKER};
    const rs_strand *strand = self->task.strand;
    rs_scope *scope = strand->scope == &strand->own ? strand->own.parent : strand->scope;
    program_spawn(self->program, scope, roles[draw(self, sizeof(roles) / sizeof(roles[0]))]);
}

static rs_scope *some_scope(worker *self, worker *target) {
    if (target->depth == 0 || chance(self, 50)) return &target->task.strand->own;
    return &target->scopes[draw(self, target->depth)];
}

static void cancel_somebody(worker *self) {
    worker *target = draw_worker(self);
    if (chance(self, 1)) {
        program_say(self, "cancels everything", 0);
        rs_scope_cancel(machine_of(self), &self->program->arena, RS_CANCELLED_BY_CALL);
    } else if (!target->task.finished) {
        program_say(self, "cancels", target->number);
        rs_scope_cancel(machine_of(self), some_scope(self, target), RS_CANCELLED_BY_CALL);
    }
}

static void interrupt_somebody(worker *self) {
    worker *target = draw_worker(self);
    if (target->task.finished || target == self) return;
    program_say(self, "interrupts", target->number);
    rs_interrupt(machine_of(self), target->task.strand);
}

static void move_a_deadline(worker *self) {
    worker *target = draw_worker(self);
    if (target->task.finished || target->depth == 0) return;
    rs_scope *scope = &target->scopes[draw(self, target->depth)];
    int64_t deadline_ns = draw_deadline(self, 80, 20 * MS);
    program_say(self, "moves a deadline of", target->number);
    rs_scope_set_deadline(machine_of(self), scope, deadline_ns);
}

/* A wake for a wait that is over must do nothing. */
static void wake_too_late(worker *self) {
    worker *target = draw_worker(self);
    if (target->old_ticket == 0 || target->old_ticket == target->task.ticket) return;
    bool accepted = rs_wake(machine_of(self), target->task.id, target->old_ticket, RS_WAKE_VALUE, 0xDEAD);
    EXPECT(self, !accepted, target->number);
}

static void unblock_somebody(worker *self) {
    worker *target = draw_worker(self);
    if (!target->task.finished && target->role == ROLE_STOCK_LOCKER) rs_unblock(machine_of(self), target->task.strand);
}

/* Any scope of anybody, with whatever is inside. */
static void close_somewhere(worker *self) {
    worker *target = draw_worker(self);
    if (!self->program->untidy || target->task.finished || target->depth == 0) return;
    rs_scope *scope = &target->scopes[draw(self, target->depth)];
    program_say(self, "closes a scope of", target->number);
    rs_scope_close(machine_of(self), scope);
    EXPECT(self, scope->closed && scope->live == 0 && !rs_timer_is_set(&scope->timer), target->number);
}

static bool start_joining(worker *self) {
    self->task.wake = RS_WAKE_VALUE;
    self->other = draw_worker(self);
    if (self->other->number <= self->number || self->other->task.finished) return false;
    program_say(self, "joins", self->other->number);
    rs_strand *target = self->other->task.strand;
    bool parked = task_park(&self->task, RS_WAIT_JOIN, 0, wait_until(self, draw_deadline(self, 40, 10 * MS)));
    if (parked) rs_list_append(machine_of(self), &target->joiners, self->task.strand, 0);
    return parked;
}

static bool displace(worker *self) {
    rs_displaced(machine_of(self));
    self->program->displaced = self;
    return true;
}

/* What the end of a wait means for the scopes that are open. */
static void weigh(worker *self) {
    program_ended(self);
    switch (self->task.wake) {
    case RS_WAKE_CANCEL:
        self->cancel_seen = true;
        self->gentle = false;
        if (self->depth == 0) self->leaving = true;
        break;
    case RS_WAKE_INTERRUPT:
        self->task.strand->interrupts--;
        self->gentle = false;
        self->closing = self->depth > 0 ? (uint32_t)draw(self, self->depth + 1) : 0;
        self->leaving = self->leaving || chance(self, 20);
        break;
    default: break;
    }
}

static void close_scope(worker *self) {
    rs_scope *scope = innermost(self);
    EXPECT(self, rs_scope_answers(scope) == answers(scope) || self->program->untidy, self->depth);
    if (self->cancel_seen && rs_scope_answers(scope)) self->cancel_seen = false;
    rs_scope_close(machine_of(self), scope);
    self->depth--;
    if (self->closing > 0) self->closing--;
    if (self->cancel_seen && self->depth == 0) self->leaving = true;
    program_say(self, "has closed scope", self->depth + 1);
}

static bool must_close(const worker *self) {
    return self->depth > 0 && (self->closing > 0 || self->cancel_seen || self->leaving);
}

static bool wait_gently(worker *self) { return task_wait_for_scope(&self->task, innermost(self), 0); }

static bool wait_sternly(worker *self) {
    rs_scope_cancel(machine_of(self), innermost(self), RS_CANCELLED_BY_CALL);
    return task_wait_for_scope(&self->task, innermost(self), RS_PARK_SHIELDED);
}

static void act(worker *self, uint64_t which) {
    switch (which) {
    case 4: case 5: open_scope(self); break;
    case 6: self->closing = self->depth > 0; break;
    case 7: spawn_somebody(self); break;
    case 8: cancel_somebody(self); break;
    case 9: interrupt_somebody(self); break;
    case 10: move_a_deadline(self); break;
    case 11: wake_too_late(self); break;
    case 12: unblock_somebody(self); break;
    case 13: close_somewhere(self); break;
    default: break;
    }
}

void wanderer_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    for (self->left = 3 + (uint32_t)draw(self, 25); self->left > 0 || self->depth > 0; self->left -= self->left > 0) {
        self->gentle = true;
        if (self->left == 0) {
            self->leaving = true;
        } else {
            self->item = (int64_t)draw(self, 15);
            if (self->item < 2) {
                WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, 5 * MS))));
                weigh(self);
            } else if (self->item == 2) {
                TASK_WAIT(task, task_yield(task));
            } else if (self->item == 3) {
                WAIT(self, start_joining(self));
                if (task->wake == RS_WAKE_VALUE && self->other->number > self->number) {
                    EXPECT(self, self->other->task.finished, self->other->number);
                }
                weigh(self);
            } else if (self->item == 14) {
                TASK_WAIT(task, displace(self));
            } else {
                act(self, (uint64_t)self->item);
            }
        }
        while (must_close(self)) {
            while (innermost(self)->live > 0 && self->gentle) {
                WAIT(self, wait_gently(self));
                weigh(self);
            }
            while (innermost(self)->live > 0) {
                WAIT_SHIELDED(self, wait_sternly(self));
                EXPECT(self, task->wake == RS_WAKE_VALUE, task->wake);
            }
            close_scope(self);
        }
        if (self->leaving) break;
    }
    TASK_END(task);
}
