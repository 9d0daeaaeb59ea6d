/* program_choose: a role that waits for the first of all queues at once, in one selector from its beginning to its end. */
#include "program.h"

#include <string.h>

item_queue *queue_of(const rs_watch *watch) {
    worker *self = chooser_of(watch);
    return &self->program->queues[watch - self->watches];
}

worker *chooser_of(const rs_watch *watch) { return (worker *)((char *)watch->selector - offsetof(worker, selector)); }

static void take(worker *self, item_queue *queue, int64_t item) {
    EXPECT(self, item >= 1000, item);
    queue->popped += item;
    queue->popped_count++;
}

/* True: an item has been taken, or nothing will ever come any more. */
static bool look(worker *self) {
    for (rs_watch *watch; (watch = rs_selector_next(&self->selector));) {
        item_queue *queue = queue_of(watch);
        if (queue->len > 0) {
            take(self, queue, queue->items[0]);
            memmove(&queue->items[0], &queue->items[1], sizeof(int64_t) * --queue->len);
            self->queue = queue;
            refill(self);
            return true;
        }
        if (queue->pushers_left == 0) rs_watch_close(watch);
        else rs_watch_idle(watch);
    }
    return rs_links_empty(&self->selector.watches);
}

static bool start_choosing(worker *self) {
    self->task.wake = RS_WAKE_VALUE;
    if (look(self)) return false;
    return task_wait_in(&self->task, &self->selector.waiters, 0, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static void take_served(worker *self) {
    rs_watch *watch = self->selector.served;
    if (!watch) return;
    EXPECT(self, self->task.wake == RS_WAKE_VALUE, self->task.wake);
    self->selector.served = NULL;
    take(self, queue_of(watch), self->item);
}

void chooser_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    rs_selector_open(&self->program->driver.machine, &self->selector);
    for (int i = 0; i < QUEUES; i++) rs_watch_open(&self->selector, &self->watches[i], &self->program->queues[i].for_items);
    while (!rs_links_empty(&self->selector.watches)) {
        WAIT(self, start_choosing(self));
        take_served(self);
        if (!program_goes_on(self)) break;
        if (chance(self, 30)) {
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, MS))));
            if (!program_goes_on(self)) break;
        }
    }
    rs_selector_close(&self->selector);
    unclose(self);
    TASK_END(task);
}
