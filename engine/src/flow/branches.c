#include "ringspun/flow/branches.h"
#include "core/machine.h"
#include "ops/op_life.h"
#include "ops/platform.h"

#include <errno.h>
#include <stdlib.h>

/* So many stay to be used again. */
#define SPARE_MAX 8

void rs_branches_open(rs_machine *machine, rs_branches *branches) {
    *branches = (rs_branches){.closed = false};
    rs_selector_open(machine, &branches->selector);
}

static void free_all(rs_links *links) {
    RS_EACH_LINKED(links, rs_branch, link, branch) free(branch);
    *links = (rs_links){0};
}

static void free_branches(rs_branches *branches) {
    free_all(&branches->used);
    free_all(&branches->spare);
    branches->used_len = branches->spare_len = 0;
}

/* One may be left of a strand of the parent process. */
static void leave_served(rs_branches *branches, rs_branch *branch) {
    free(branches->left);
    branches->left = branch;
}

static void unuse(rs_branches *branches, rs_branch *branch) {
    RS_CHECK(branches->used_len > 0);
    rs_links_remove(&branches->used, &branch->link);
    branches->used_len--;
}

void rs_branches_close(rs_branches *branches) {
    if (branches->closed) return;
    branches->closed = true;
    rs_selector_close(&branches->selector);
    rs_branch *served = (rs_branch *)branches->selector.served;
    if (served && served != branches->left) {
        unuse(branches, served);
        leave_served(branches, served);
    }
    free_branches(branches);
}

void rs_branches_free(rs_branches *branches) {
    rs_selector_abandon(&branches->selector);
    free_branches(branches);
    leave_served(branches, NULL);
}

/* --- which there are --- */

static rs_branch *take_memory(rs_branches *branches) {
    rs_branch *branch = RS_LINKED(branches->spare.first, rs_branch, link);
    if (!branch) return rs_try_alloc(sizeof(*branch));
    rs_links_remove(&branches->spare, &branch->link);
    branches->spare_len--;
    return branch;
}

static rs_source *source_of(const rs_branch *branch, rs_source *of_driver) {
    switch (branch->kind) {
    case RS_BRANCH_POP: return &((rs_queue *)branch->from)->for_items;
    case RS_BRANCH_PUSH: return &((rs_queue *)branch->from)->for_places;
    case RS_BRANCH_ACQUIRE: return &((rs_semaphore *)branch->from)->for_permits;
    default: return of_driver;
    }
}

rs_branch *rs_branches_add(rs_branches *branches, const rs_branch *given, rs_source *source) {
    RS_CHECK(!branches->closed && (!source || given->kind == RS_BRANCH_RESULT || given->kind == RS_BRANCH_STREAM));
    rs_branch *branch = take_memory(branches);
    if (!branch) return NULL;
    *branch = *given;
    rs_watch_open(&branches->selector, &branch->watch, source_of(given, source));
    branch->watch.item = given->watch.item;
    rs_links_prepend(&branches->used, &branch->link);
    branches->used_len++;
    bool pushes = given->kind == RS_BRANCH_PUSH_CHANNEL;
    bool of_channel = pushes || given->kind == RS_BRANCH_POP_CHANNEL;
    if (!of_channel || RS_LIKELY(rs_channel_observe(given->from, &branch->watch, pushes))) return branch;
    rs_branches_remove(branches, branch);
    return NULL;
}

void rs_branches_remove(rs_branches *branches, rs_branch *branch) {
    bool is_served = branches->selector.served == &branch->watch;
    rs_watch_close(&branch->watch);
    unuse(branches, branch);
    if (is_served) {
        leave_served(branches, branch);
    } else if (branches->spare_len == SPARE_MAX) {
        free(branch);
    } else {
        rs_links_prepend(&branches->spare, &branch->link);
        branches->spare_len++;
    }
}

uint32_t rs_branches_remove_all(rs_branches *branches, uint64_t source) {
    uint32_t before = branches->used_len;
    RS_EACH_LINKED(&branches->used, rs_branch, link, branch) {
        if (branch->source == source) rs_branches_remove(branches, branch);
    }
    return before - branches->used_len;
}

static void call_with(const rs_branch *branch, void (*call)(uint64_t word)) {
    call(branch->source);
    call(branch->block);
    call(branch->watch.item);
}

void rs_branches_clear(rs_branches *branches) {
    RS_EACH_LINKED(&branches->used, rs_branch, link, branch) rs_branches_remove(branches, branch);
    RS_CHECK(branches->used_len == 0);
}

void rs_branches_each(const rs_branches *branches, void (*call)(uint64_t word)) {
    RS_EACH_LINKED(&branches->used, rs_branch, link, branch) call_with(branch, call);
    if (branches->left) call_with(branches->left, call);
}

/* --- a choice --- */

bool rs_branches_enter(rs_machine *machine, rs_branches *branches) {
    if (branches->waiting != RS_NO_ID && rs_strand_find(&machine->strands, branches->waiting)) return false;
    branches->waiting = rs_strand_id(rs_runs(machine));
    return true;
}

static rs_look look_at_queue(rs_queue_answer answer) {
    static const rs_look looks[] = {[RS_QUEUE_DONE] = RS_LOOK_WON, [RS_QUEUE_WAITS] = RS_LOOK_NOTHING,
                                    [RS_QUEUE_CLOSED] = RS_LOOK_CLOSED, [RS_QUEUE_NO_MEMORY] = RS_LOOK_NO_MEMORY};
    return looks[answer];
}

static rs_look look_at_channel(rs_channel_answer answer) {
    static const rs_look looks[] = {[RS_CHANNEL_DONE] = RS_LOOK_WON, [RS_CHANNEL_WAITS] = RS_LOOK_NOTHING,
                                    [RS_CHANNEL_CLOSED] = RS_LOOK_CLOSED, [RS_CHANNEL_NO_MEMORY] = RS_LOOK_NO_MEMORY};
    return looks[answer];
}

/* A pop from what is closed and empty wins. */
static rs_look look_for_pop(rs_look look) { return look == RS_LOOK_CLOSED ? RS_LOOK_WON : look; }

static rs_look look_at(rs_machine *machine, rs_branch *branch, uint64_t *value) {
    uint64_t pushed = branch->watch.item;
    switch (branch->kind) {
    case RS_BRANCH_POP: return look_for_pop(look_at_queue(rs_queue_pop(machine, branch->from, value)));
    case RS_BRANCH_POP_CHANNEL: return look_for_pop(look_at_channel(rs_channel_look(branch->watch.observer, value)));
    case RS_BRANCH_PUSH:
        *value = branch->source;
        return look_at_queue(rs_queue_push(machine, branch->from, pushed));
    case RS_BRANCH_PUSH_CHANNEL:
        *value = branch->source;
        return look_at_channel(rs_channel_look(branch->watch.observer, &pushed));
    case RS_BRANCH_ACQUIRE:
        *value = branch->source;
        return rs_semaphore_take(branch->from) ? RS_LOOK_WON : RS_LOOK_NOTHING;
    default: return RS_LOOK_ASK;
    }
}

rs_branch *rs_branches_look(rs_machine *machine, rs_branches *branches, uint64_t *value, rs_look *answer) {
    uint64_t none = *value;
    for (rs_watch *watch; (watch = rs_selector_next(&branches->selector));) {
        rs_branch *branch = (rs_branch *)watch;
        *value = none;
        *answer = look_at(machine, branch, value);
        if (*answer != RS_LOOK_NOTHING) return branch;
        rs_watch_idle(watch);
    }
    return NULL;
}

/* The result of an op may be old: what was there may have been read since. So the descriptor is polled again, unless the backend cannot
 * do that without an op. An error is believed: a descriptor that is being closed still polls as open, but takes no op. */
rs_look rs_branch_look_at(rs_machine *machine, rs_branch *branch, int fd, uint32_t events, int64_t *error) {
    RS_CHECK(branch->kind >= RS_BRANCH_STREAM);
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = events};
    int64_t result = rs_watch_take_result(&branch->watch);
    bool refused = result < 0 && result != -ECANCELED;
    if (result == 0 || (rs_tries_first(machine) && !refused)) result = rs_try(machine, &request);
    if (result > 0) return RS_LOOK_WON;
    if (result < 0 && result != -EAGAIN && result != -ECANCELED) {
        *error = result;
        return RS_LOOK_FAILED;
    }
    rs_watch_idle(&branch->watch);
    return rs_watch_arm(&branch->watch, fd, events) ? RS_LOOK_NOTHING : RS_LOOK_LIMIT;
}

bool rs_branches_take_served(rs_machine *machine, rs_branches *branches, rs_win *win) {
    rs_branch *branch = (rs_branch *)rs_selector_take_served(&branches->selector);
    if (!branch) return false;
    uint64_t handed = rs_strand_take_hand(rs_runs(machine));
    rs_branch_wins(branch, branch->kind == RS_BRANCH_POP ? handed : branch->source, win);
    leave_served(branches, NULL);
    return true;
}

/* If the backend polls nothing without an op, a wait with a deadline of now lets the ops complete. */
static bool must_park_to_look(const rs_machine *machine) { return machine->unawaited > 0 && !rs_tries_first(machine); }

bool rs_select_waits(rs_machine *machine, const rs_select *select, int64_t *until_ns) {
    if (select->last || (select->never_waits && !must_park_to_look(machine))) return false;
    *until_ns = select->never_waits ? rs_now(machine) : select->deadline_ns;
    return true;
}
