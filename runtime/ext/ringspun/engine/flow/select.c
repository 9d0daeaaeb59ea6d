#include "flow/channel.h"
#include "ops/op_life.h"

#include <errno.h>

void rs_selector_open(rs_machine *machine, rs_selector *selector) {
    *selector = (rs_selector){.machine = machine, .next = machine->selectors};
    if (selector->next) selector->next->previous = selector;
    machine->selectors = selector;
}

static void append_ready(rs_watch *watch) {
    rs_selector *selector = watch->selector;
    watch->ready = true;
    watch->next_ready = NULL;
    watch->previous_ready = selector->last_ready;
    if (watch->previous_ready) watch->previous_ready->next_ready = watch;
    else selector->first_ready = watch;
    selector->last_ready = watch;
    selector->ready_len++;
}

void rs_watch_idle(rs_watch *watch) {
    rs_selector *selector = watch->selector;
    if (!watch->ready) return;
    watch->ready = false;
    if (watch->previous_ready) watch->previous_ready->next_ready = watch->next_ready;
    else selector->first_ready = watch->next_ready;
    if (watch->next_ready) watch->next_ready->previous_ready = watch->previous_ready;
    else selector->last_ready = watch->previous_ready;
    watch->next_ready = watch->previous_ready = NULL;
    selector->ready_len--;
}

void rs_watch_ready(rs_watch *watch) {
    if (!watch->ready) append_ready(watch);
    rs_selector *selector = watch->selector;
    if (selector->waiters.len > 0) rs_list_wake_first(selector->machine, &selector->waiters, 0);
}

rs_watch *rs_selector_next(rs_selector *selector) {
    rs_watch *watch = selector->first_ready;
    if (!watch || !watch->next_ready) return watch;
    rs_watch_idle(watch);
    append_ready(watch);
    return watch;
}

void rs_selector_shuffle(rs_selector *selector) {
    if (selector->ready_len < 2) return;
    uint64_t *random = &selector->machine->select_random;
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    for (uint64_t turns = *random % selector->ready_len; turns > 0; turns--) rs_selector_next(selector);
}

void rs_watch_open(rs_selector *selector, rs_watch *watch, rs_source *source) {
    RS_ASSERT(selector->machine != NULL);
    *watch = (rs_watch){.selector = selector, .source = source, .older = selector->watches};
    if (watch->older) watch->older->newer = watch;
    selector->watches = watch;
    if (source) {
        watch->next = source->watches;
        if (watch->next) watch->next->previous = watch;
        source->watches = watch;
    }
    rs_watch_ready(watch);
}

static void leave_source(rs_watch *watch) {
    if (!watch->source) return;
    if (watch->next) watch->next->previous = watch->previous;
    if (watch->previous) watch->previous->next = watch->next;
    else watch->source->watches = watch->next;
    watch->next = watch->previous = NULL;
    watch->source = NULL;
}

/* Its end is nobody's news from now on. */
static rs_op *disown_op(rs_machine *machine, rs_watch *watch) {
    rs_op *op = watch->op ? rs_op_find(&machine->ops, watch->op) : NULL;
    watch->op = 0;
    if (!op) return NULL;
    op->owner = NULL;
    op->abandoned = true;
    machine->watch_ops--;
    watch->selector->ops--;
    return op;
}

static void leave_selector(rs_watch *watch) {
    rs_selector *selector = watch->selector;
    rs_watch_idle(watch);
    leave_source(watch);
    if (watch->observer) rs_channel_forget(watch->observer);
    watch->observer = NULL;
    if (watch->newer) watch->newer->older = watch->older;
    else selector->watches = watch->older;
    if (watch->older) watch->older->newer = watch->newer;
}

void rs_watch_close(rs_watch *watch) {
    rs_machine *machine = watch->selector->machine;
    leave_selector(watch);
    rs_op *op = disown_op(machine, watch);
    if (op) rs_op_cancel(machine, op, RS_WAKE_CANCEL);
}

static void leave_machine(rs_selector *selector) {
    if (selector->next) selector->next->previous = selector->previous;
    if (selector->previous) selector->previous->next = selector->next;
    else selector->machine->selectors = selector->next;
    selector->machine = NULL;
    selector->next = selector->previous = NULL;
}

void rs_selector_close(rs_selector *selector) {
    if (!selector->machine) return;
    while (selector->watches) rs_watch_close(selector->watches);
    rs_list_wake_all(selector->machine, &selector->waiters, 0);
    leave_machine(selector);
}

void rs_selector_abandon(rs_selector *selector) {
    if (!selector->machine) return;
    for (rs_watch *watch; (watch = selector->watches);) {
        leave_selector(watch);
        if (disown_op(selector->machine, watch)) selector->machine->orphan_ops = true;
    }
    leave_machine(selector);
}

uint32_t rs_end_orphan_ops(rs_machine *machine) {
    uint32_t left = 0;
    machine->orphan_ops = false;
    RS_EACH_OP(&machine->ops, op) {
        if (op->state != RS_OP_SUBMITTED || !op->abandoned || op->request.kind != RS_OP_POLL) continue;
        rs_op_cancel(machine, op, RS_WAKE_CANCEL);
        if (op->state == RS_OP_SUBMITTED) left++;
    }
    return left;
}

static void watch_ended(rs_machine *machine, rs_op *op, int64_t result) {
    rs_watch *watch = op->context;
    machine->watch_ops--;
    watch->selector->ops--;
    watch->op = 0;
    watch->result = result;
    rs_watch_ready(watch);
}

static const rs_op_owner watch_owner = {.ended = watch_ended};

bool rs_watch_arm(rs_watch *watch, int fd, uint32_t events) {
    if (watch->op) return true;
    rs_machine *machine = watch->selector->machine;
    if (machine->watch_ops >= RS_WATCH_OPS_MAX) return false;
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .flags = events};
    rs_op *op = rs_op_take(&machine->ops, &request);
    if (RS_UNLIKELY(!op)) {
        watch->result = RS_NO_MEMORY;
        rs_watch_ready(watch);
        return true;
    }
    machine->watch_ops++;
    watch->selector->ops++;
    op->owner = &watch_owner;
    op->context = watch;
    watch->op = rs_op_id(op);
    rs_op_launch(machine, op);
    return true;
}

bool rs_selectors_wait_for_ops(const rs_machine *machine) {
    for (const rs_selector *selector = machine->selectors; selector; selector = selector->next) {
        if (selector->ops > 0 && selector->waiters.len > 0) return true;
    }
    return false;
}

void rs_source_ready(rs_source *source) {
    for (rs_watch *watch = source->watches; watch; watch = watch->next) rs_watch_ready(watch);
}

void rs_source_drop(rs_source *source) {
    while (source->watches) leave_source(source->watches);
}

rs_strand *rs_watch_strand(const rs_watch *watch) {
    return rs_list_first(watch->selector->machine, &watch->selector->waiters);
}

rs_watch *rs_source_waiting(const rs_source *source, const rs_strand *than) {
    rs_watch *found = NULL;
    uint64_t ticket = than ? than->ticket : UINT64_MAX;
    for (rs_watch *watch = source->watches; watch; watch = watch->next) {
        const rs_strand *strand = rs_watch_strand(watch);
        if (!strand || strand->ticket >= ticket) continue;
        ticket = strand->ticket;
        found = watch;
    }
    return found;
}

uint32_t rs_source_waiting_len(rs_source *source) {
    uint32_t len = 0;
    for (rs_watch *watch = source->watches; watch; watch = watch->next) {
        rs_selector *selector = watch->selector;
        if (selector->counted || selector->waiters.len == 0) continue;
        selector->counted = true;
        len++;
    }
    for (rs_watch *watch = source->watches; watch; watch = watch->next) watch->selector->counted = false;
    return len;
}

void rs_watch_serve(rs_watch *watch) {
    rs_selector *selector = watch->selector;
    RS_ASSERT(!selector->served);
    selector->served = watch;
    rs_list_wake_first(selector->machine, &selector->waiters, 0);
}

/* The ops have stayed behind, and what their ends would have told has to be looked for. */
void rs_selectors_forked(rs_machine *machine) {
    machine->watch_ops = 0;
    machine->orphan_ops = false;
    for (rs_selector *selector = machine->selectors; selector; selector = selector->next) {
        selector->waiters = (rs_list){0};
        selector->ops = 0;
        selector->served = NULL; /* to a strand of the parent, which takes it there */
        for (rs_watch *watch = selector->watches; watch; watch = watch->older) {
            watch->op = 0;
            watch->result = 0;
            if (watch->observer) watch->observer->notified = false; /* nor has the message come along */
            if (!watch->ready) append_ready(watch);
        }
    }
}

void rs_selectors_close_all(rs_machine *machine) {
    while (machine->selectors) {
        rs_selector *selector = machine->selectors;
        for (rs_watch *watch; (watch = selector->watches);) {
            watch->op = 0;
            leave_selector(watch);
        }
        leave_machine(selector);
    }
}
