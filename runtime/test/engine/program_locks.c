/* program_locks: roles around lists: a mutex with hand-over, a bounded queue, and a mutex that knows only `unblock`. */
#include "program.h"

#include <string.h>

static rs_machine *machine_of(const worker *self) { return &self->program->driver.machine; }

/* --- mutex --- */

static void unlock(worker *self) {
    mutex *mutex = self->mutex;
    EXPECT(self, mutex->owner == self->task.id, (int64_t)mutex->owner);
    rs_strand *next = rs_list_first(machine_of(self), &mutex->waiters);
    mutex->owner = next ? rs_strand_id(next) : RS_NO_ID;
    if (next) rs_list_wake_first(machine_of(self), &mutex->waiters, 0);
}

static uint32_t *inside(worker *self) { return &self->program->inside[self->mutex - self->program->mutexes]; }

static bool start_locking(worker *self) {
    self->task.wake = RS_WAKE_VALUE;
    if (self->mutex->owner != RS_NO_ID) {
        return task_wait_in(&self->task, &self->mutex->waiters, 0, wait_until(self, draw_deadline(self, 30, 3 * MS)));
    }
    self->mutex->owner = self->task.id;
    return false;
}

void locker_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    self->mutex = &self->program->mutexes[draw(self, MUTEXES)];
    enclose(self);
    for (self->left = 1 + (uint32_t)draw(self, 8); self->left > 0; self->left--) {
        WAIT(self, start_locking(self));
        EXPECT(self, (task->wake == RS_WAKE_VALUE) == (self->mutex->owner == task->id), task->wake);
        self->leaving = !program_goes_on(self);
        if (self->mutex->owner == task->id) {
            EXPECT(self, ++*inside(self) == 1, *inside(self));
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, 2 * MS))));
            if (!program_goes_on(self)) self->leaving = true;
            --*inside(self);
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

static void entered(item_queue *queue, int64_t item) {
    queue->pushed += item;
    queue->pushed_count++;
}

static bool start_pushing(worker *self) {
    item_queue *queue = self->queue;
    self->task.wake = RS_WAKE_VALUE;
    self->task.result = 0;
    rs_watch *watch = rs_source_waiting(&queue->for_items, rs_list_first(machine_of(self), &queue->poppers));
    if (watch) {
        entered(queue, self->item);
        chooser_of(watch)->item = self->item;
        rs_watch_serve(watch);
        return false;
    }
    if (queue->poppers.len > 0) {
        entered(queue, self->item);
        rs_list_wake_first(machine_of(self), &queue->poppers, self->item);
        return false;
    }
    if (queue->len < QUEUE_CAPACITY) {
        entered(queue, self->item);
        queue->items[queue->len++] = self->item;
        rs_source_ready(&queue->for_items);
        return false;
    }
    int64_t deadline_ns = wait_until(self, draw_deadline(self, 30, 3 * MS));
    return task_wait_in(&self->task, &queue->pushers, (uint64_t)self->item, deadline_ns);
}

void pusher_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    for (self->left = (uint32_t)draw(self, 20); self->left > 0 && self->queue->poppers_left > 0; self->left--) {
        self->item = ((int64_t)self->number + 1) * 1000 + self->left;
        WAIT(self, start_pushing(self));
        if (!program_goes_on(self)) break;
        if (chance(self, 30)) {
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, MS))));
            if (!program_goes_on(self)) break;
        }
    }
    if (--self->queue->pushers_left == 0) {
        rs_list_wake_all(machine_of(self), &self->queue->poppers, QUEUE_CLOSED);
        rs_source_ready(&self->queue->for_items);
    }
    unclose(self);
    TASK_END(task);
}

void refill(worker *self) {
    item_queue *queue = self->queue;
    rs_strand *first = rs_list_first(machine_of(self), &queue->pushers);
    if (!first) return;
    int64_t item = (int64_t)first->waiter.tag;
    entered(queue, item);
    queue->items[queue->len++] = item;
    rs_source_ready(&queue->for_items);
    rs_list_wake_first(machine_of(self), &queue->pushers, 0);
}

static bool start_popping(worker *self) {
    item_queue *queue = self->queue;
    self->task.wake = RS_WAKE_VALUE;
    self->task.result = QUEUE_CLOSED;
    if (queue->len > 0) {
        self->task.result = queue->items[0];
        memmove(&queue->items[0], &queue->items[1], sizeof(int64_t) * --queue->len);
        refill(self);
        return false;
    }
    if (queue->pushers_left == 0) return false;
    return task_wait_in(&self->task, &queue->poppers, 0, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static bool popped(worker *self) {
    bool goes_on = program_goes_on(self);
    if (self->task.wake != RS_WAKE_VALUE) return goes_on;
    if (self->task.result == QUEUE_CLOSED) return false;
    EXPECT(self, self->task.result >= 1000, self->task.result);
    self->queue->popped += self->task.result;
    self->queue->popped_count++;
    return true;
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
    if (--self->queue->poppers_left == 0) rs_list_wake_all(machine_of(self), &self->queue->pushers, QUEUE_CLOSED);
    unclose(self);
    TASK_END(task);
}
