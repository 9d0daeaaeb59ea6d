/* queue: items on their way between strands. Owned by the machine's thread. Zeroed memory is an empty one without a limit.
 *
 * An item is a word of the driver's. Whoever collects its garbage finds those in the queue by rs_queue_each, and those on their way
 * from or to a strand that waits by rs_strand.hand.
 *
 * Hand-over: a pusher gives its item to the popper that has waited longest, in the same step that wakes it. A pop gives the free
 * place to the pusher that has waited longest, and takes its item into the queue. So an item never goes to a strand that does not
 * wait any more, and the item of a cancelled pusher was never in the queue. Strands in a selector are served in the same order.
 *
 * A strand that cannot pop now waits in `poppers`, and one that cannot push in `pushers` (RS_WAIT_LIST), after rs_queue_offer. What
 * has come of that is said by rs_queue_popped and rs_queue_pushed, which are called however the wait has ended.
 */
#ifndef RINGSPUN_QUEUE_H
#define RINGSPUN_QUEUE_H

#include "ringspun/core/machine.h"
#include "ringspun/flow/select.h"

/* CLOSED, of a pop: and empty. WAITS after a wait: nothing has been done. NO_MEMORY, of a push: the same. */
typedef enum { RS_QUEUE_DONE, RS_QUEUE_WAITS, RS_QUEUE_CLOSED, RS_QUEUE_NO_MEMORY } rs_queue_answer;

typedef struct rs_queue {
    uint64_t *items;            /* a ring of `allocated`, which is 0 or a power of two */
    size_t first, len, allocated;
    int64_t max;                /* 0: no limit */
    rs_list poppers;
    rs_list pushers;
    rs_source for_items;        /* watches of selectors */
    rs_source for_places;
    bool closed;
} rs_queue;

/* Who waited is of a machine that has gone; what is inside stays. */
void rs_queue_forget(rs_queue *queue);
/* Its memory goes. */
void rs_queue_free(rs_queue *queue);

/* Puts an item in, whoever waits. False: there is no memory. */
bool rs_queue_put(rs_queue *queue, uint64_t item);
/* Gives it to who has waited longest for one, if anybody has. */
bool rs_queue_hand_over(rs_machine *machine, rs_queue *queue, uint64_t item);
/* Gives a free place to who has waited longest for one: its item is in the queue now. False: there is no such place, or nobody. */
bool rs_queue_take_in(rs_machine *machine, rs_queue *queue);
void rs_queue_emptied(rs_queue *queue);

static inline bool rs_queue_is_full(const rs_queue *queue) { return queue->max > 0 && (int64_t)queue->len >= queue->max; }

static inline rs_queue_answer rs_queue_push(rs_machine *machine, rs_queue *queue, uint64_t item) {
    if (RS_UNLIKELY(queue->closed)) return RS_QUEUE_CLOSED;
    bool is_awaited = queue->poppers.len > 0 || RS_UNLIKELY(rs_source_is_watched(&queue->for_items));
    if (is_awaited && rs_queue_hand_over(machine, queue, item)) return RS_QUEUE_DONE;
    if (RS_UNLIKELY(rs_queue_is_full(queue))) return RS_QUEUE_WAITS;
    return RS_LIKELY(rs_queue_put(queue, item)) ? RS_QUEUE_DONE : RS_QUEUE_NO_MEMORY;
}

static inline rs_queue_answer rs_queue_pop(rs_machine *machine, rs_queue *queue, uint64_t *item) {
    if (queue->len == 0) return queue->closed ? RS_QUEUE_CLOSED : RS_QUEUE_WAITS;
    *item = queue->items[queue->first];
    queue->first = (queue->first + 1) & (queue->allocated - 1);
    queue->len--;
    if (queue->pushers.len > 0 || RS_UNLIKELY(rs_source_is_watched(&queue->for_places))) rs_queue_take_in(machine, queue);
    if (queue->len == 0) rs_queue_emptied(queue);
    return RS_QUEUE_DONE;
}

/* The running strand is to wait for a place for that item. */
void rs_queue_offer(rs_machine *machine, uint64_t item);

/* After a timeout they try once more: if the machine was late, the timer has fired before the strand ran that has made room, or has
 * brought something. */
rs_queue_answer rs_queue_pushed(rs_machine *machine, rs_queue *queue, rs_wake_kind kind, int64_t result);
rs_queue_answer rs_queue_popped(rs_machine *machine, rs_queue *queue, rs_wake_kind kind, int64_t result, uint64_t *item);

/* Allows no more pushes; what is inside can still be popped. */
void rs_queue_close(rs_machine *machine, rs_queue *queue);
/* Drops what is inside. The places are given by rs_queue_take_in. */
static inline void rs_queue_clear(rs_queue *queue) { queue->first = queue->len = 0; }
/* As many fit from now on; new places are given by rs_queue_take_in. */
static inline void rs_queue_limit(rs_queue *queue, int64_t max) {
    RS_CHECK(max > 0);
    queue->max = max;
}

static inline void rs_queue_each(const rs_queue *queue, void (*call)(uint64_t item)) {
    for (size_t i = 0; i < queue->len; i++) call(queue->items[(queue->first + i) & (queue->allocated - 1)]);
}

/* What came last of all that is inside, which is not empty. */
static inline uint64_t rs_queue_last(const rs_queue *queue) {
    RS_ASSERT(queue->len > 0);
    return queue->items[(queue->first + queue->len - 1) & (queue->allocated - 1)];
}

/* Strands that wait to push or to pop, those in selectors as well. */
uint32_t rs_queue_waiting(rs_queue *queue);

#endif
