#include "ringspun/flow/queue.h"
#include "core/machine.h"

#include <stdlib.h>
#include <string.h>

void rs_queue_offer(rs_machine *machine, uint64_t item) { rs_running(machine)->hand = item; }

/* How a wait in one of its lists was ended. */
enum { CLOSED = 0, SERVED = 1 };

/* So much memory stays when it is empty. */
#define KEPT_MAX 1024
#define ALLOCATED_MIN 8

void rs_queue_forget(rs_queue *queue) {
    rs_list_forget(&queue->poppers);
    rs_list_forget(&queue->pushers);
    rs_source_drop(&queue->for_items);
    rs_source_drop(&queue->for_places);
}

void rs_queue_free(rs_queue *queue) {
    rs_source_drop(&queue->for_items);
    rs_source_drop(&queue->for_places);
    free(queue->items);
}

/* --- the ring --- */

static bool grow(rs_queue *queue) {
    size_t allocated = queue->allocated ? queue->allocated * 2 : ALLOCATED_MIN;
    uint64_t *items = allocated > SIZE_MAX / sizeof(*items) ? NULL : rs_try_realloc(queue->items, allocated * sizeof(*items));
    if (!items) return false;
    /* What stood before the first one now goes on behind what was the end. */
    memcpy(items + queue->allocated, items, queue->first * sizeof(*items));
    queue->items = items;
    queue->allocated = allocated;
    return true;
}

bool rs_queue_put(rs_queue *queue, uint64_t item) {
    if (RS_UNLIKELY(queue->len == queue->allocated) && !grow(queue)) return false;
    queue->items[(queue->first + queue->len) & (queue->allocated - 1)] = item;
    queue->len++;
    if (RS_UNLIKELY(rs_source_is_watched(&queue->for_items))) rs_source_ready(&queue->for_items);
    return true;
}

void rs_queue_emptied(rs_queue *queue) {
    RS_ASSERT(queue->len == 0);
    if (RS_LIKELY(queue->allocated <= KEPT_MAX)) return;
    free(queue->items);
    queue->items = NULL;
    queue->first = queue->allocated = 0;
}

/* --- who waits --- */

bool rs_queue_hand_over(rs_machine *machine, rs_queue *queue, uint64_t item) {
    rs_strand *popper = rs_list_first(machine, &queue->poppers);
    rs_watch *watch = RS_UNLIKELY(rs_source_is_watched(&queue->for_items)) ? rs_source_waiting(&queue->for_items, popper) : NULL;
    if (watch) {
        rs_watch_strand(watch)->hand = item;
        rs_watch_serve(watch);
        return true;
    }
    if (!popper) return false;
    popper->hand = item;
    rs_list_wake_first(machine, &queue->poppers, SERVED);
    return true;
}

bool rs_queue_take_in(rs_machine *machine, rs_queue *queue) {
    if (rs_queue_is_full(queue)) return false;
    rs_strand *pusher = rs_list_first(machine, &queue->pushers);
    rs_watch *watch = RS_UNLIKELY(rs_source_is_watched(&queue->for_places)) ? rs_source_waiting(&queue->for_places, pusher) : NULL;
    if (watch) {
        if (!rs_queue_put(queue, watch->item)) return false;
        rs_watch_serve(watch);
        return true;
    }
    if (!pusher) {
        rs_source_ready(&queue->for_places);
        return false;
    }
    if (!rs_queue_put(queue, pusher->hand)) return false;
    rs_list_wake_first(machine, &queue->pushers, SERVED);
    return true;
}

rs_queue_answer rs_queue_pushed(rs_machine *machine, rs_queue *queue, rs_wake_kind kind, int64_t result) {
    uint64_t item = rs_strand_take_hand(rs_runs(machine));
    if (kind == RS_WAKE_TIMEOUT) return queue->closed ? RS_QUEUE_WAITS : rs_queue_push(machine, queue, item);
    if (kind != RS_WAKE_VALUE) return RS_QUEUE_WAITS;
    return result == SERVED ? RS_QUEUE_DONE : RS_QUEUE_CLOSED;
}

rs_queue_answer rs_queue_popped(rs_machine *machine, rs_queue *queue, rs_wake_kind kind, int64_t result, uint64_t *item) {
    if (kind == RS_WAKE_TIMEOUT) return rs_queue_pop(machine, queue, item);
    if (kind != RS_WAKE_VALUE) return RS_QUEUE_WAITS;
    if (result != SERVED) return RS_QUEUE_CLOSED;
    *item = rs_strand_take_hand(rs_runs(machine));
    return RS_QUEUE_DONE;
}

void rs_queue_close(rs_machine *machine, rs_queue *queue) {
    queue->closed = true;
    rs_list_wake_all(machine, &queue->poppers, CLOSED);
    rs_list_wake_all(machine, &queue->pushers, CLOSED);
    rs_source_ready(&queue->for_items);
    rs_source_ready(&queue->for_places);
}

uint32_t rs_queue_waiting(rs_queue *queue) {
    uint32_t selecting = rs_source_waiting_len(&queue->for_items) + rs_source_waiting_len(&queue->for_places);
    return queue->poppers.len + queue->pushers.len + selecting;
}
