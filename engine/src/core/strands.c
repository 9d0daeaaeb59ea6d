#include "core/strands.h"

void rs_strands_init(rs_strands *strands, uint32_t limit) {
    rs_run_queue empty = {.head = RS_NO_INDEX, .tail = RS_NO_INDEX};
    *strands = (rs_strands){.woken = empty, .others = empty, .last_order = RS_ORDER_TICK, .tick_order = RS_ORDER_TICK};
    rs_slab_init(&strands->slab, sizeof(rs_strand), limit);
}

rs_strand *rs_strand_at(const rs_strands *strands, uint32_t index) { return rs_strands_slot(strands, index); }
uint32_t rs_strands_names(const rs_strands *strands) { return rs_slab_len(&strands->slab); }
uint32_t rs_strands_live(const rs_strands *strands) { return strands->slab.used; }

void rs_strands_free(rs_strands *strands) {
    rs_slab_free(&strands->slab);
    *strands = (rs_strands){.slab = strands->slab};
}

rs_strand *rs_strand_take(rs_strands *strands) {
    rs_strand *strand = rs_slab_take(&strands->slab);
    if (!strand) return NULL;
    RS_CHECK(strand->generation != 0);
    rs_strand_become(strand, RS_STRAND_NEW);
    strand->run_next = strand->op = RS_NO_INDEX;
    rs_timer_init(&strand->timer, RS_TIMER_PARK);
    return strand;
}

void rs_strand_release(rs_strands *strands, rs_strand *strand) {
    RS_ASSERT(strand->state != RS_STRAND_FREE && !strand->queued);
    RS_ASSERT(!rs_timer_is_set(&strand->timer) && strand->waiter.list == NULL);
    RS_CHECK(rs_links_empty(&strand->open_scopes) && !rs_source_is_watched(&strand->watched));
    rs_strand_become(strand, RS_STRAND_FREE);
    strand->user = NULL;
    rs_slab_give(&strands->slab, strand);
}

rs_strand *rs_strand_find(const rs_strands *strands, rs_id id) {
    uint32_t index = rs_id_index(id);
    if (index >= rs_slab_len(&strands->slab)) return NULL;
    rs_strand *strand = rs_strands_slot(strands, index);
    RS_CHECK(strand->index == index);
    if (strand->generation != rs_id_generation(id) || strand->state == RS_STRAND_FREE) return NULL;
    return strand;
}

rs_strand *rs_strands_next(const rs_strands *strands, const rs_strand *strand) {
    for (uint32_t index = strand ? strand->index + 1 : 0; index < rs_slab_len(&strands->slab); index++) {
        rs_strand *next = rs_strands_slot(strands, index);
        if (next->state == RS_STRAND_FREE) continue;
        RS_CHECK(next->index == index && next->generation != 0);
        return next;
    }
    return NULL;
}

static inline rs_strand *at(const rs_strands *strands, uint32_t index) {
    return index == RS_NO_INDEX ? NULL : rs_strands_slot(strands, index);
}

/* Of those in the run queue each is new or ready. */
static inline void push(rs_strands *strands, rs_run_queue *queue, rs_strand *strand) {
    RS_ASSERT(!strand->queued);
    RS_CHECK(strand->state == RS_STRAND_NEW || strand->state == RS_STRAND_READY);
    RS_CHECK((queue->head == RS_NO_INDEX) == (queue->tail == RS_NO_INDEX));
    strand->queued = true;
    strand->run_next = RS_NO_INDEX;
    strand->ready_order = ++strands->last_order;
    if (queue->tail == RS_NO_INDEX) queue->head = strand->index;
    else rs_strands_slot(strands, queue->tail)->run_next = strand->index;
    queue->tail = strand->index;
    strands->run_len++;
}

static inline void push_front(rs_strands *strands, rs_run_queue *queue, rs_strand *strand, uint64_t order) {
    RS_ASSERT(!strand->queued);
    RS_CHECK(strand->state == RS_STRAND_NEW || strand->state == RS_STRAND_READY);
    strand->queued = true;
    strand->ready_order = order;
    strand->run_next = queue->head;
    RS_CHECK((queue->head == RS_NO_INDEX) == (queue->tail == RS_NO_INDEX));
    if (queue->tail == RS_NO_INDEX) queue->tail = strand->index;
    queue->head = strand->index;
    strands->run_len++;
}

void rs_run_push(rs_strands *strands, rs_strand *strand) { push(strands, &strands->others, strand); }

void rs_run_push_woken(rs_strands *strands, rs_strand *strand) {
    push(strands, &strands->woken, strand);
    strands->woken_len++;
    RS_CHECK(strands->woken_len <= strands->run_len);
}

void rs_run_push_front(rs_strands *strands, rs_strand *strand) {
    push_front(strands, &strands->woken, strand, RS_ORDER_FRONT);
    strands->woken_len++;
    RS_CHECK(strands->woken_len <= strands->run_len);
}

/* Woken, behind that other one, and as early as that. */
static void push_behind(rs_strands *strands, rs_strand *first, rs_strand *strand) {
    RS_ASSERT(!strand->queued && first->queued);
    strand->queued = true;
    strand->ready_order = first->ready_order;
    strand->run_next = first->run_next;
    first->run_next = strand->index;
    if (strands->woken.tail == first->index) strands->woken.tail = strand->index;
    strands->run_len++;
    strands->woken_len++;
    RS_CHECK(strands->woken_len <= strands->run_len);
}

void rs_run_push_second(rs_strands *strands, rs_strand *strand) {
    rs_strand *first = rs_strands_slot(strands, strands->woken.head);
    RS_CHECK(first->ready_order == RS_ORDER_FRONT);
    push_behind(strands, first, strand);
}

void rs_run_push_behind_front(rs_strands *strands, rs_strand *strand) {
    rs_strand *before = NULL, *next = at(strands, strands->woken.head);
    for (; next && next->ready_order == RS_ORDER_FRONT; next = at(strands, next->run_next)) before = next;
    if (before) push_behind(strands, before, strand);
    else rs_run_push_front(strands, strand);
}

void rs_run_push_front_of_others(rs_strands *strands, rs_strand *strand) {
    push_front(strands, &strands->others, strand, RS_ORDER_TICK);
}

static inline rs_strand *pop(rs_strands *strands, rs_run_queue *queue, rs_strand *strand) {
    RS_CHECK(strand->queued && queue->head == strand->index && strands->run_len > 0);
    queue->head = strand->run_next;
    if (queue->head == RS_NO_INDEX) queue->tail = RS_NO_INDEX;
    strand->run_next = RS_NO_INDEX;
    strand->queued = false;
    strands->run_len--;
    RS_CHECK(queue->head == RS_NO_INDEX || rs_strands_slot(strands, queue->head)->queued);
    return strand;
}

static inline rs_strand *pop_woken(rs_strands *strands, rs_strand *strand) {
    RS_CHECK(strands->woken_len > 0 && strands->woken_len <= strands->run_len && strands->passes_left <= strands->woken_len);
    if (strands->passes_left > 0) strands->passes_left--;
    if (strands->passes_due > 0) strands->passes_due--;
    strands->woken_len--;
    return pop(strands, &strands->woken, strand);
}

static inline rs_strand *pop_other(rs_strands *strands, rs_strand *strand) {
    RS_CHECK(strands->run_len > strands->woken_len);
    strands->passes_left = strands->passes_due;
    strands->passes_due = 0;
    strands->passable = strands->passes_left == 0;
    return pop(strands, &strands->others, strand);
}

rs_strand *rs_run_pop(rs_strands *strands) {
    rs_strand *woken = at(strands, strands->woken.head), *other = at(strands, strands->others.head);
    RS_CHECK((woken || other) == (strands->run_len > 0) && !woken == (strands->woken_len == 0));
    if (!other) return woken ? pop_woken(strands, woken) : NULL;
    if (!woken) return pop_other(strands, other);
    bool passes = strands->passes_left > 0 || woken->ready_order < other->ready_order;
    return passes ? pop_woken(strands, woken) : pop_other(strands, other);
}

void rs_run_prefer_woken(rs_strands *strands) {
    RS_CHECK(strands->woken_len <= strands->run_len);
    if (strands->passable) strands->passes_left = strands->woken_len;
    else strands->passes_due = strands->woken_len;
    strands->passable = false;
}

bool rs_run_is_due(const rs_strands *strands) {
    rs_strand *woken = at(strands, strands->woken.head), *other = at(strands, strands->others.head);
    RS_CHECK(strands->tick_order <= strands->last_order);
    return (woken && woken->ready_order <= strands->tick_order) || (other && other->ready_order <= strands->tick_order);
}

rs_run_queue rs_run_set_aside(rs_strands *strands) {
    rs_run_queue aside = strands->woken;
    RS_CHECK((aside.head == RS_NO_INDEX) == (aside.tail == RS_NO_INDEX));
    strands->woken = (rs_run_queue){.head = RS_NO_INDEX, .tail = RS_NO_INDEX};
    return aside;
}

void rs_run_put_behind(rs_strands *strands, const rs_run_queue *aside) {
    rs_run_queue *queue = &strands->woken;
    for (rs_strand *strand = at(strands, queue->head); strand; strand = at(strands, strand->run_next)) {
        RS_CHECK(strand->queued);
        strand->ready_order = RS_ORDER_TICK;
    }
    if (aside->head == RS_NO_INDEX) return;
    if (queue->tail == RS_NO_INDEX) queue->head = aside->head;
    else rs_strands_slot(strands, queue->tail)->run_next = aside->head;
    queue->tail = aside->tail;
}

rs_strand *rs_run_last(const rs_strands *strands) {
    if (strands->last_order <= strands->tick_order) return NULL;
    uint32_t tails[] = {strands->woken.tail, strands->others.tail};
    for (int i = 0; i < 2; i++) {
        if (tails[i] == RS_NO_INDEX) continue;
        rs_strand *strand = rs_strands_slot(strands, tails[i]);
        RS_CHECK(strand->queued && strand->run_next == RS_NO_INDEX);
        if (strand->ready_order == strands->last_order) return strand;
    }
    return NULL;
}

void rs_run_forget(rs_strands *strands) {
    while (rs_run_pop(strands)) {}
    RS_CHECK(strands->run_len == 0 && strands->woken_len == 0);
}

const char *rs_wait_name(uint32_t wait) {
    static const char *const names[RS_WAIT_KINDS] = {
        [RS_WAIT_NONE] = "nothing", [RS_WAIT_YIELD] = "its next turn", [RS_WAIT_SLEEP] = "a time to pass",
        [RS_WAIT_OP] = "an op", [RS_WAIT_LIST] = "a list", [RS_WAIT_JOIN] = "a strand to end",
        [RS_WAIT_SCOPE] = "the strands of a scope to end", [RS_WAIT_SUSPEND] = "Machine#schedule",
        [RS_WAIT_BLOCK] = "unblock", [RS_WAIT_WAKER] = "an extension to wake it",
        [RS_WAIT_EVALUATION] = "an evaluation", [RS_WAIT_CHANNEL] = "a Channel", [RS_WAIT_MUTEX] = "a Mutex",
    };
    return wait < RS_WAIT_KINDS ? names[wait] : "?";
}
