#include "ringspun/flow/select.h"
#include "core/machine.h"
#include "flow/selectors.h"
#include "ops/descriptors.h"
#include "ops/op_life.h"

#include <errno.h>

void rs_selector_open(rs_machine *machine, rs_selector *selector) {
    *selector = (rs_selector){.machine = machine};
    rs_links_prepend(&rs_selectors_in(machine)->all, &selector->link);
}

rs_selector *rs_selectors_any(const rs_machine *machine) { return RS_LINKED(rs_selectors_in(machine)->all.first, rs_selector, link); }

static void append_ready(rs_watch *watch) {
    RS_CHECK(!watch->ready);
    watch->ready = true;
    rs_links_append(&watch->selector->ready, &watch->of_ready);
    watch->selector->ready_len++;
}

void rs_watch_idle(rs_watch *watch) {
    if (!watch->ready) return;
    RS_CHECK(watch->selector->ready_len > 0);
    watch->ready = false;
    rs_links_remove(&watch->selector->ready, &watch->of_ready);
    watch->selector->ready_len--;
}

void rs_watch_ready(rs_watch *watch) {
    if (!watch->ready) append_ready(watch);
    rs_selector *selector = watch->selector;
    RS_CHECK(selector->machine != NULL && selector->waiters.len <= 1);
    if (selector->waiters.len > 0) rs_list_wake_first(selector->machine, &selector->waiters, 0);
}

rs_watch *rs_selector_next(rs_selector *selector) {
    RS_CHECK((selector->ready_len == 0) == rs_links_empty(&selector->ready));
    rs_watch *watch = RS_LINKED(selector->ready.first, rs_watch, of_ready);
    if (selector->ready_len < 2) return watch;
    rs_watch_idle(watch);
    append_ready(watch);
    return watch;
}

void rs_selector_shuffle(rs_selector *selector) {
    if (selector->ready_len < 2) return;
    uint64_t *random = &rs_selectors_in(selector->machine)->random;
    RS_CHECK(*random != 0);
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    for (uint64_t steps = *random % selector->ready_len; steps > 0; steps--) rs_selector_next(selector);
}

static void source_ready(rs_watcher *watcher) { rs_watch_ready((rs_watch *)watcher); }

void rs_watch_open(rs_selector *selector, rs_watch *watch, rs_source *source) {
    RS_CHECK(selector->machine != NULL);
    *watch = (rs_watch){.selector = selector};
    rs_links_prepend(&selector->watches, &watch->of_selector);
    rs_watcher_init(&watch->watcher, source, source_ready);
    rs_watch_ready(watch);
}

static rs_watch *newest_watch(const rs_selector *selector) { return RS_LINKED(selector->watches.first, rs_watch, of_selector); }

/* Its end is nobody's news from now on. */
static rs_op *disown_op(rs_machine *machine, rs_watch *watch) {
    rs_op *op = watch->op ? rs_op_find(rs_ops_in(machine), watch->op) : NULL;
    watch->op = 0;
    if (!op) return NULL;
    RS_CHECK(op->context == watch && machine->unawaited > 0 && watch->selector->ops > 0);
    rs_op_orphan(op);
    machine->unawaited--;
    watch->selector->ops--;
    return op;
}

static void leave_selector(rs_watch *watch) {
    RS_CHECK(watch->selector->machine != NULL);
    rs_watch_idle(watch);
    rs_watcher_leave(&watch->watcher);
    if (watch->observer) watch->observer->forget(watch->observer);
    watch->observer = NULL;
    rs_links_remove(&watch->selector->watches, &watch->of_selector);
}

void rs_watch_close(rs_watch *watch) {
    rs_machine *machine = watch->selector->machine;
    leave_selector(watch);
    rs_op *op = disown_op(machine, watch);
    if (op) rs_op_cancel(machine, op, RS_WAKE_CANCEL);
}

static void leave_machine(rs_selector *selector) {
    RS_ASSERT(rs_links_empty(&selector->watches) && selector->ready_len == 0);
    rs_links_remove(&rs_selectors_in(selector->machine)->all, &selector->link);
    selector->machine = NULL;
}

void rs_selector_close(rs_selector *selector) {
    if (!selector->machine) return;
    for (rs_watch *watch; (watch = newest_watch(selector));) rs_watch_close(watch);
    RS_ASSERT(selector->ops == 0);
    rs_list_wake_all(selector->machine, &selector->waiters, 0);
    leave_machine(selector);
}

void rs_selector_abandon(rs_selector *selector) {
    if (!selector->machine) return;
    for (rs_watch *watch; (watch = newest_watch(selector));) {
        leave_selector(watch);
        if (disown_op(selector->machine, watch)) rs_gather(selector->machine, &rs_selectors_in(selector->machine)->unseen);
    }
    RS_ASSERT(selector->ops == 0);
    leave_machine(selector);
}

uint32_t rs_end_orphan_ops(rs_machine *machine) {
    rs_ungather(machine, &rs_selectors_in(machine)->unseen);
    return rs_ops_end_orphans(machine);
}

static void watch_ended(rs_machine *machine, rs_op *op, int64_t result) {
    rs_watch *watch = op->context;
    RS_ASSERT(watch->op == rs_op_id(op));
    RS_CHECK(machine->unawaited > 0 && watch->selector->ops > 0);
    machine->unawaited--;
    watch->selector->ops--;
    watch->op = 0;
    watch->result = result;
    rs_watch_ready(watch);
}

static const rs_op_owner watch_owner = {.ended = watch_ended};

bool rs_watch_arm(rs_watch *watch, int fd, uint32_t events) {
    RS_CHECK(watch->selector->machine != NULL && (!watch->op || watch->selector->ops > 0));
    if (watch->op) return true;
    rs_machine *machine = watch->selector->machine;
    if (machine->unawaited >= RS_WATCH_OPS_MAX) return false;
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = events};
    rs_op *op = rs_op_take(rs_ops_in(machine), &request);
    if (RS_UNLIKELY(!op)) {
        watch->result = RS_NO_MEMORY;
        rs_watch_ready(watch);
        return true;
    }
    machine->unawaited++;
    watch->selector->ops++;
    op->owner = &watch_owner;
    op->context = watch;
    watch->op = rs_op_id(op);
    rs_op_launch(machine, op);
    return true;
}

rs_strand *rs_watch_strand(const rs_watch *watch) {
    RS_CHECK(watch->selector->waiters.len <= 1);
    return rs_list_first(watch->selector->machine, &watch->selector->waiters);
}

#define RS_EACH_WATCH(source, watch) RS_EACH_LINKED(&(source)->watchers, rs_watch, watcher.link, watch)

rs_watch *rs_source_waiting(const rs_source *source, const rs_strand *than) {
    rs_watch *found = NULL;
    uint64_t ticket = than ? than->ticket : UINT64_MAX;
    RS_EACH_WATCH(source, watch) {
        RS_CHECK(watch->watcher.source == source);
        const rs_strand *strand = rs_watch_strand(watch);
        if (!strand || strand->ticket >= ticket) continue;
        ticket = strand->ticket;
        found = watch;
    }
    return found;
}

uint32_t rs_source_waiting_len(rs_source *source) {
    uint32_t len = 0;
    RS_EACH_WATCH(source, watch) {
        rs_selector *selector = watch->selector;
        if (selector->counted || selector->waiters.len == 0) continue;
        selector->counted = true;
        len++;
    }
    RS_EACH_WATCH(source, watch) watch->selector->counted = false;
    return len;
}

void rs_watch_serve(rs_watch *watch) {
    rs_selector *selector = watch->selector;
    RS_CHECK(!selector->served && selector->waiters.len == 1);
    RS_CHECK(rs_watch_strand(watch)->state == RS_STRAND_PARKED);
    selector->served = watch;
    rs_list_wake_first(selector->machine, &selector->waiters, 0);
}

/* --- the part --- */

static void flush_orphans(rs_machine *machine, rs_gathered *gathered) {
    RS_CHECK(gathered == &rs_selectors_in(machine)->unseen);
    rs_end_orphan_ops(machine);
}

static void open_selectors(rs_machine *machine) {
    rs_selectors_in(machine)->unseen.flush = flush_orphans;
    rs_ops_in(machine)->slab.limit += RS_WATCH_OPS_MAX;
    rs_selectors_in(machine)->random = machine->options.seed ^ 0x9e3779b97f4a7c15u;
    if (rs_selectors_in(machine)->random == 0) rs_selectors_in(machine)->random = 1;
}

/* In a selector in which nobody waits right now an op wakes nobody. */
static bool wait_for_ops(const rs_machine *machine) {
    RS_EACH_LINKED(&rs_selectors_in(machine)->all, const rs_selector, link, selector) {
        RS_CHECK(selector->machine == machine);
        if (selector->ops > 0 && selector->waiters.len > 0) return true;
    }
    return false;
}

/* The ops belong to the parent. Whether their descriptors are ready has to be looked up again, so every watch is ready to be
 * looked at. */
static void forked(rs_machine *machine, const rs_strand *survivor) {
    (void)survivor;
    rs_ungather(machine, &rs_selectors_in(machine)->unseen);
    RS_EACH_LINKED(&rs_selectors_in(machine)->all, rs_selector, link, selector) {
        RS_CHECK(selector->machine == machine);
        selector->waiters = (rs_list){0};
        selector->ops = 0;
        selector->served = NULL; /* to a strand of the parent, which takes it there */
        RS_EACH_LINKED(&selector->watches, rs_watch, of_selector, watch) {
            watch->op = 0;
            watch->result = 0;
            if (watch->observer) watch->observer->notified = false; /* nor has the message come along */
            if (!watch->ready) append_ready(watch);
        }
    }
}

static void close_selectors(rs_machine *machine) {
    RS_EACH_LINKED(&rs_selectors_in(machine)->all, rs_selector, link, selector) {
        for (rs_watch *watch; (watch = newest_watch(selector));) {
            watch->op = 0;
            leave_selector(watch);
        }
        leave_machine(selector);
    }
}

const rs_part rs_selectors_part = {
    .open = open_selectors, .may_wake = wait_for_ops, .forked = forked, .ends = close_selectors,
};
