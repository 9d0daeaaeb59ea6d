/* program_locks: roles around lists: a mutex with hand-over, a bounded queue, and a mutex that knows only `unblock`. */
#include "program.h"

#include <string.h>

static rs_machine *machine_of(const worker *self) { return self->program->driver.machine; }

/* --- mutex --- */

static void unlock(worker *self) {
    rs_strand *next = rs_list_first(machine_of(self), &self->mutex->waiters);
    rs_id id = next ? rs_strand_id(next) : RS_NO_ID;
    EXPECT(self, rs_mutex_give(machine_of(self), self->mutex), (int64_t)self->mutex->owner);
    EXPECT(self, self->mutex->owner == id, (int64_t)self->mutex->owner);
}

static uint32_t *inside(worker *self) { return &self->program->inside[self->mutex - self->program->mutexes]; }

static bool start_locking(worker *self) {
    self->task.wake = RS_WAKE_VALUE;
    self->has_lock = rs_mutex_take(machine_of(self), self->mutex);
    if (self->has_lock) return false;
    int64_t deadline_ns = wait_until(self, draw_deadline(self, 30, 3 * MS));
    if (!task_park(&self->task, RS_WAIT_MUTEX, 0, deadline_ns)) return false;
    rs_list_append(machine_of(self), &self->mutex->waiters, self->task.strand, 0);
    return true;
}

/* One whose time is up may have the lock all the same. */
static void locked(worker *self) {
    if (self->has_lock) return;
    rs_wake_kind wake = self->task.wake;
    EXPECT(self, rs_mutex_is_mine(machine_of(self), self->mutex) == (wake == RS_WAKE_VALUE), wake);
    self->has_lock = rs_mutex_waited(machine_of(self), self->mutex, wake);
    EXPECT(self, rs_mutex_is_mine(machine_of(self), self->mutex) == self->has_lock, wake);
}

/* Now and then one ends with the lock: then its end gives it to the next one. */
void locker_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    self->mutex = &self->program->mutexes[draw(self, MUTEXES)];
    enclose(self);
    for (self->left = 1 + (uint32_t)draw(self, 8); self->left > 0; self->left--) {
        WAIT(self, start_locking(self));
        locked(self);
        self->leaving = !program_goes_on(self);
        if (self->has_lock) {
            EXPECT(self, ++*inside(self) == 1, *inside(self));
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, 2 * MS))));
            if (!program_goes_on(self)) self->leaving = true;
            --*inside(self);
            if (self->leaving && chance(self, 30)) break;
            unlock(self);
        }
        if (self->leaving) break;
        TASK_WAIT(task, task_yield(task));
    }
    unclose(self);
    TASK_END(task);
}

/* --- stock mutex --- */

static void forget_waiting(worker *self) {
    stock_mutex *stock = &self->program->stock;
    for (uint32_t i = 0; i < stock->waiting_len; i++) {
        if (stock->waiting[i] != self) continue;
        memmove(&stock->waiting[i], &stock->waiting[i + 1], sizeof(worker *) * (stock->waiting_len - i - 1));
        stock->waiting_len--;
        return;
    }
}

static bool start_blocking(worker *self) {
    stock_mutex *stock = &self->program->stock;
    self->unblocked = false;
    stock->waiting[stock->waiting_len++] = self;
    return task_park(&self->task, RS_WAIT_BLOCK, 0, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static void stock_unlock(worker *self) {
    stock_mutex *stock = &self->program->stock;
    EXPECT(self, stock->owner == self, 0);
    stock->owner = NULL;
    if (stock->waiting_len == 0) return;
    worker *first = stock->waiting[0];
    forget_waiting(first);
    first->unblocked = true;
    stock->unblocked++;
    rs_unblock(machine_of(self), first->task.strand);
}

void stock_locker_step(task *task) {
    worker *self = (worker *)task;
    stock_mutex *stock = &self->program->stock;
    TASK_BEGIN(task);
    enclose(self);
    for (self->left = 1 + (uint32_t)draw(self, 6); self->left > 0 && !self->leaving; self->left--) {
        while (stock->owner && !self->leaving) {
            WAIT(self, start_blocking(self));
            if (self->unblocked) stock->unblocked--;
            else forget_waiting(self);
            /* The lock may be free by now, and nobody else was told. */
            EXPECT(self, !self->unblocked || task->wake == RS_WAKE_VALUE, task->wake);
            if (!program_goes_on(self)) self->leaving = true;
        }
        if (self->leaving) break;
        stock->owner = self;
        WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, 2 * MS))));
        if (!program_goes_on(self)) self->leaving = true;
        stock_unlock(self);
        if (chance(self, 20)) rs_unblock(machine_of(self), task->strand);
        TASK_WAIT(task, task_yield(task));
    }
    unclose(self);
    TASK_END(task);
}

/* --- queue --- */

static bool start_pushing(worker *self) {
    rs_queue *queue = &self->queue->items;
    self->task.wake = RS_WAKE_VALUE;
    self->queue_answer = rs_queue_push(machine_of(self), queue, (uint64_t)self->item);
    if (self->queue_answer != RS_QUEUE_WAITS) return false;
    rs_queue_offer(machine_of(self), (uint64_t)self->item);
    return task_wait_in(&self->task, &queue->pushers, 0, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static bool pushed(worker *self) {
    rs_wake_kind wake = self->task.wake;
    if (self->queue_answer == RS_QUEUE_WAITS) {
        self->queue_answer = rs_queue_pushed(machine_of(self), &self->queue->items, wake, self->task.result);
        EXPECT(self, wake == RS_WAKE_TIMEOUT || (wake == RS_WAKE_VALUE) == (self->queue_answer != RS_QUEUE_WAITS), self->queue_answer);
    }
    if (self->queue_answer == RS_QUEUE_DONE) {
        self->queue->pushed += self->item;
        self->queue->pushed_count++;
    }
    return program_goes_on(self) && self->queue_answer != RS_QUEUE_CLOSED;
}

void pusher_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    for (self->left = (uint32_t)draw(self, 20); self->left > 0 && self->queue->poppers_left > 0; self->left--) {
        self->item = ((int64_t)self->number + 1) * 1000 + self->left;
        WAIT(self, start_pushing(self));
        if (!pushed(self)) break;
        if (chance(self, 30)) {
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, MS))));
            if (!program_goes_on(self)) break;
        }
    }
    if (--self->queue->pushers_left == 0) rs_queue_close(machine_of(self), &self->queue->items);
    unclose(self);
    TASK_END(task);
}

void took_out(worker *self, item_queue *queue, uint64_t item) {
    EXPECT(self, item >= 1000, (int64_t)item);
    queue->popped += (int64_t)item;
    queue->popped_count++;
}

static bool start_popping(worker *self) {
    rs_queue *queue = &self->queue->items;
    self->task.wake = RS_WAKE_VALUE;
    self->queue_answer = rs_queue_pop(machine_of(self), queue, &self->popped);
    if (self->queue_answer != RS_QUEUE_WAITS) return false;
    return task_wait_in(&self->task, &queue->poppers, 0, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static bool popped(worker *self) {
    rs_wake_kind wake = self->task.wake;
    if (self->queue_answer == RS_QUEUE_WAITS) {
        self->queue_answer = rs_queue_popped(machine_of(self), &self->queue->items, wake, self->task.result, &self->popped);
        EXPECT(self, wake == RS_WAKE_TIMEOUT || (wake == RS_WAKE_VALUE) == (self->queue_answer != RS_QUEUE_WAITS), self->queue_answer);
    }
    if (self->queue_answer == RS_QUEUE_DONE) took_out(self, self->queue, self->popped);
    return program_goes_on(self) && self->queue_answer != RS_QUEUE_CLOSED;
}

void popper_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    for (;;) {
        WAIT(self, start_popping(self));
        if (!popped(self)) break;
        if (chance(self, 30)) {
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, MS))));
            if (!program_goes_on(self)) break;
        }
    }
    if (--self->queue->poppers_left == 0) rs_queue_close(machine_of(self), &self->queue->items);
    unclose(self);
    TASK_END(task);
}
