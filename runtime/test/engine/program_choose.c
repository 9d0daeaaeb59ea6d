/* program_choose: a role that waits for the first of all queues at once, in one selector from its beginning to its end. */
#include "program.h"

static item_queue *queue_of(const worker *self, const rs_watch *watch) { return &self->program->queues[watch - self->watches]; }

/* True: an item has been taken, or nothing will ever come any more. */
static bool look(worker *self) {
    for (rs_watch *watch; (watch = rs_selector_next(&self->selector));) {
        item_queue *queue = queue_of(self, watch);
        rs_queue_answer answer = rs_queue_pop(&self->program->driver.machine, &queue->items, &self->popped);
        if (answer == RS_QUEUE_DONE) {
            took_out(self, queue, self->popped);
            return true;
        }
        if (answer == RS_QUEUE_CLOSED) rs_watch_close(watch);
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
    rs_watch *watch = rs_selector_take_served(&self->selector);
    if (!watch) return;
    EXPECT(self, self->task.wake == RS_WAKE_VALUE, self->task.wake);
    took_out(self, queue_of(self, watch), rs_strand_take_hand(self->task.strand));
}

void chooser_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    rs_selector_open(&self->program->driver.machine, &self->selector);
    for (int i = 0; i < QUEUES; i++) rs_watch_open(&self->selector, &self->watches[i], &self->program->queues[i].items.for_items);
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
