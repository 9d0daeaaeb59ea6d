/* program_choose: a role that waits for the first of all queues at once, in one selector from its beginning to its end. It takes what
 * comes, and for a while it pushes as well. */
#include "program.h"

static rs_machine *machine_of(const worker *self) { return self->program->driver.machine; }

static void add(worker *self, uint32_t number, rs_branch_kind kind) {
    self->item = ((int64_t)self->number + 1) * 1000;
    rs_branch given = {.kind = kind, .from = &self->program->queues[number].items, .source = number,
                       .watch.item = (uint64_t)self->item};
    rs_branches_add(&self->branches, &given, NULL);
}

static void stop_pushing(worker *self) {
    RS_EACH_LINKED(&self->branches.used, rs_branch, link, branch) {
        if (branch->kind == RS_BRANCH_PUSH) rs_branches_remove(&self->branches, branch);
    }
}

static void won(worker *self, const rs_win *win) {
    item_queue *queue = &self->program->queues[win->source];
    if (win->kind == RS_BRANCH_POP) {
        took_out(self, queue, win->value);
        return;
    }
    queue->pushed += self->item;
    queue->pushed_count++;
    if (--self->left == 0) stop_pushing(self);
}

/* True: an item has been taken or pushed, or nothing will ever come any more. */
static bool look(worker *self) {
    uint64_t value = 0;
    rs_look answer;
    for (rs_branch *branch; (branch = rs_branches_look(machine_of(self), &self->branches, &value, &answer)); value = 0) {
        bool is_over = answer == RS_LOOK_CLOSED || (branch->kind == RS_BRANCH_POP && value == 0);
        if (is_over) {
            rs_branches_remove(&self->branches, branch);
            continue;
        }
        rs_win win;
        rs_branch_wins(branch, value, &win);
        won(self, &win);
        return true;
    }
    return self->branches.used_len == 0;
}

static bool start_choosing(worker *self) {
    self->task.wake = RS_WAKE_VALUE;
    if (look(self)) return false;
    rs_list *waiters = &self->branches.selector.waiters;
    return task_wait_in(&self->task, waiters, 0, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static void take_served(worker *self) {
    rs_win win;
    if (!rs_branches_take_served(machine_of(self), &self->branches, &win)) return;
    EXPECT(self, self->task.wake == RS_WAKE_VALUE, self->task.wake);
    won(self, &win);
}

void chooser_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    rs_branches_open(machine_of(self), &self->branches);
    self->left = 1 + (uint32_t)draw(self, 10);
    for (uint32_t i = 0; i < QUEUES; i++) {
        add(self, i, RS_BRANCH_POP);
        if (chance(self, 50)) add(self, i, RS_BRANCH_PUSH);
    }
    while (self->branches.used_len > 0) {
        WAIT(self, start_choosing(self));
        take_served(self);
        if (!program_goes_on(self)) break;
        if (chance(self, 30)) {
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, MS))));
            if (!program_goes_on(self)) break;
        }
    }
    rs_branches_close(&self->branches);
    rs_branches_free(&self->branches);
    unclose(self);
    TASK_END(task);
}
