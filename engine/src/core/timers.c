#include "core/timers.h"

#include <stdlib.h>

static inline bool before(const rs_timer *a, const rs_timer *b) {
    RS_CHECK(a->order != b->order);
    if (a->deadline_ns != b->deadline_ns) return a->deadline_ns < b->deadline_ns;
    return a->order < b->order;
}

static inline void place(rs_timers *timers, uint32_t position, rs_timer *timer) {
    RS_CHECK(position < timers->len);
    timers->heap[position] = timer;
    timer->position = position;
}

static void sift_up(rs_timers *timers, uint32_t position, rs_timer *timer) {
    while (position > 0) {
        uint32_t parent = (position - 1) / 4;
        if (!before(timer, timers->heap[parent])) break;
        place(timers, position, timers->heap[parent]);
        position = parent;
    }
    place(timers, position, timer);
}

static void sift_down(rs_timers *timers, uint32_t position, rs_timer *timer) {
    RS_CHECK(position < timers->len);
    for (;;) {
        uint32_t first = position * 4 + 1;
        if (first >= timers->len) break;
        uint32_t last = first + 4 < timers->len ? first + 4 : timers->len;
        uint32_t least = first;
        for (uint32_t child = first + 1; child < last; child++) {
            if (before(timers->heap[child], timers->heap[least])) least = child;
        }
        if (!before(timers->heap[least], timer)) break;
        place(timers, position, timers->heap[least]);
        position = least;
    }
    RS_CHECK(position == 0 || !before(timer, timers->heap[(position - 1) / 4]));
    place(timers, position, timer);
}

void rs_timers_free(rs_timers *timers) {
    RS_CHECK(timers->len <= timers->capacity);
    free(timers->heap);
    *timers = (rs_timers){0};
}

static uint32_t larger(const rs_timers *timers) { return timers->capacity ? timers->capacity * 2 : 64; }

bool rs_timers_reserve(rs_timers *timers, uint32_t count) {
    RS_CHECK(timers->len <= timers->capacity);
    while (timers->capacity < count) {
        rs_timer **heap = rs_try_realloc(timers->heap, sizeof(rs_timer *) * larger(timers));
        if (!heap) return false;
        timers->heap = heap;
        timers->capacity = larger(timers);
    }
    return true;
}

void rs_timer_init(rs_timer *timer, rs_timer_kind kind) {
    timer->position = RS_NO_INDEX;
    timer->kind = kind;
    timer->deadline_ns = RS_NEVER;
}

void rs_timer_set(rs_timers *timers, rs_timer *timer, int64_t deadline_ns) {
    if (rs_timer_is_set(timer)) rs_timer_clear(timers, timer);
    if (deadline_ns == RS_NEVER) return;
    bool room = rs_timers_reserve(timers, timers->len + 1); /* most often whoever may be told of no memory has done it */
    RS_ASSERT(room);
    timer->deadline_ns = deadline_ns;
    timer->order = timers->next_order++;
    sift_up(timers, timers->len++, timer);
}

void rs_timer_clear(rs_timers *timers, rs_timer *timer) {
    if (!rs_timer_is_set(timer)) return;
    uint32_t position = timer->position;
    RS_ASSERT(position < timers->len && timers->heap[position] == timer);
    timer->position = RS_NO_INDEX;
    rs_timer *last = timers->heap[--timers->len];
    if (last == timer) return;
    if (position > 0 && before(last, timers->heap[(position - 1) / 4])) sift_up(timers, position, last);
    else sift_down(timers, position, last);
}

rs_timer *rs_timers_pop_due(rs_timers *timers, int64_t now_ns) {
    if (timers->len == 0 || timers->heap[0]->deadline_ns > now_ns) return NULL;
    rs_timer *timer = timers->heap[0];
    rs_timer_clear(timers, timer);
    RS_CHECK(timers->len == 0 || !before(timers->heap[0], timer)); /* they come in order */
    return timer;
}
