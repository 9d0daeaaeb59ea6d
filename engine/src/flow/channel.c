#include "flow/channels.h"
#include "core/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct channel_observer {
    rs_watch_observer of_watch; /* first */
    rs_link link;               /* in the channel's list, if it is in line */
    rs_channel *channel;
    rs_machine *machine;
    rs_watch *watch;            /* its machine's thread alone; NULL: it has gone */
    bool for_places;
    bool in_line;               /* the channel knows of it */
} channel_observer;

/* From the process that loaded the engine to this one. */
static uint32_t forks;

void rs_channels_forked(void) { forks++; }

rs_channel *rs_channel_new(uint32_t capacity) {
    rs_channel *channel = rs_try_alloc(sizeof(*channel));
    if (!channel) return NULL;
    *channel = (rs_channel){.references = 1, .capacity = capacity, .forks = forks};
    pthread_mutex_init(&channel->lock, NULL);
    return channel;
}

/* --- the lock --- */

/* In a child the lock may be held by a thread that is not there, and so may be whoever stands in line. */
static void forget_parent(rs_channel *channel) {
    pthread_mutex_init(&channel->lock, NULL);
    channel->forks = forks;
    channel->poppers = channel->pushers = channel->served = (rs_channel_line){0};
    channel->on_their_way = 0;
    RS_EACH_LINKED(&channel->observers, channel_observer, link, observer) {
        RS_CHECK(observer->in_line);
        observer->in_line = false;
    }
    channel->observers = (rs_links){0};
}

static void lock(rs_channel *channel) {
    if (RS_UNLIKELY(channel->forks != forks)) forget_parent(channel);
    pthread_mutex_lock(&channel->lock);
    RS_CHECK(channel->references > 0);
}

static void unlock(rs_channel *channel) { pthread_mutex_unlock(&channel->lock); }

/* With the lock, which goes with it. */
static void unlock_and_release(rs_channel *channel) {
    RS_ASSERT(channel->references > 0);
    bool last = --channel->references == 0;
    unlock(channel);
    if (!last) return;
    RS_CHECK(channel->poppers.len == 0 && channel->pushers.len == 0 && channel->served.len == 0); /* each has a reference */
    RS_CHECK(rs_links_empty(&channel->observers));
    pthread_mutex_destroy(&channel->lock);
    free(channel->values);
    free(channel);
}

void rs_channel_set_capacity(rs_channel *channel, uint32_t capacity) {
    RS_CHECK(channel->capacity == 0 && capacity > 0);
    channel->capacity = capacity;
}

uint32_t rs_channel_capacity(const rs_channel *channel) { return channel->capacity; }

size_t rs_channel_bytes(const rs_channel *channel) { return sizeof(*channel) + channel->allocated * sizeof(uint64_t); }

void rs_channel_release(rs_channel *channel) {
    lock(channel);
    unlock_and_release(channel);
}

/* --- lines, with the lock held --- */

static void append(rs_channel_line *line, rs_channel_waiter *waiter) {
    RS_CHECK(waiter->channel->references > 0 && waiter->forks == waiter->channel->forks);
    rs_links_append(&line->waiters, &waiter->link);
    line->len++;
}

static void take_out(rs_channel_line *line, rs_channel_waiter *waiter) {
    RS_CHECK(line->len > 0);
    rs_links_remove(&line->waiters, &waiter->link);
    line->len--;
}

static rs_channel_waiter *first_of(const rs_channel_line *line) {
    RS_CHECK((line->len == 0) == rs_links_empty(&line->waiters));
    return RS_LINKED(line->waiters.first, rs_channel_waiter, link);
}

static rs_channel_line *line_of(rs_channel *channel, const rs_channel_waiter *waiter) {
    RS_CHECK(waiter->channel == channel && waiter->state <= RS_WAITER_MISSED);
    if (waiter->state == RS_WAITER_POPS) return &channel->poppers;
    return waiter->state == RS_WAITER_PUSHES ? &channel->pushers : &channel->served;
}

static void wake(rs_machine *here, rs_channel_waiter *waiter) {
    RS_CHECK(waiter->state > RS_WAITER_PUSHES); /* it is in line no more */
    if (!waiter->machine) pthread_cond_signal(&waiter->changed);
    else if (waiter->machine == here) rs_wake(here, waiter->strand, waiter->ticket, RS_WAKE_VALUE, 0);
    else rs_send(waiter->machine, rs_message_new(RS_MESSAGE_NUDGE, waiter->strand, waiter->ticket));
}

static void end_wait(rs_channel *channel, rs_machine *here, rs_channel_waiter *waiter, rs_waiter_state state) {
    RS_CHECK(waiter->channel == channel && state > RS_WAITER_PUSHES);
    take_out(line_of(channel, waiter), waiter);
    waiter->state = (uint8_t)state;
    waiter->order = ++channel->given;
    append(&channel->served, waiter);
    if (state == RS_WAITER_POPPED) channel->on_their_way++;
    wake(here, waiter);
}

static void notify_observers(rs_channel *channel, rs_machine *here, bool for_places) {
    RS_EACH_LINKED(&channel->observers, channel_observer, link, observer) {
        RS_CHECK(observer->in_line && observer->channel == channel);
        if (observer->for_places != for_places || observer->of_watch.notified) continue;
        if (observer->machine == here) {
            rs_watch_ready(observer->watch);
            continue;
        }
        observer->of_watch.notified = true;
        rs_send(observer->machine, rs_message_new(RS_MESSAGE_READY, RS_NO_ID, (uintptr_t)observer));
    }
}

/* --- values, with the lock held --- */

/* For one value more, whether it is kept here or given back some day by whom it is on its way to. */
static bool make_room(rs_channel *channel) {
    RS_CHECK(channel->len <= channel->allocated);
    if (channel->len + channel->on_their_way < channel->allocated) return true;
    uint32_t allocated = channel->allocated ? channel->allocated * 2 : 8;
    uint64_t *values = rs_try_alloc(sizeof(uint64_t) * allocated);
    if (!values) return false;
    for (uint32_t i = 0; i < channel->len; i++) values[i] = channel->values[(channel->first + i) % channel->allocated];
    free(channel->values);
    channel->values = values;
    channel->allocated = allocated;
    channel->first = 0;
    return true;
}

static void put_last(rs_channel *channel, uint64_t value) {
    RS_ASSERT(channel->len < channel->allocated);
    channel->values[(channel->first + channel->len++) % channel->allocated] = value;
}

static void put_first(rs_channel *channel, uint64_t value) {
    RS_ASSERT(channel->len < channel->allocated);
    channel->first = (channel->first + channel->allocated - 1) % channel->allocated;
    channel->values[channel->first] = value;
    channel->len++;
}

static uint64_t take_first(rs_channel *channel) {
    RS_ASSERT(channel->len > 0);
    uint64_t value = channel->values[channel->first];
    channel->first = (channel->first + 1) % channel->allocated;
    channel->len--;
    return value;
}

/* Something else has ended its wait, and it has not run yet. Of another machine's that cannot be known: there, what it is given
 * wins. */
static bool waits_no_more(rs_machine *here, const rs_channel_waiter *waiter) {
    if (!waiter->machine || waiter->machine != here) return false;
    const rs_strand *strand = rs_strand_find(&here->strands, waiter->strand);
    return !strand || strand->state != RS_STRAND_PARKED || strand->ticket != waiter->ticket;
}

static rs_channel_waiter *first_in(rs_channel *channel, rs_machine *here, rs_channel_line *line) {
    rs_channel_waiter *waiter;
    while ((waiter = first_of(line)) && waits_no_more(here, waiter)) {
        take_out(line, waiter);
        waiter->state = RS_WAITER_MISSED;
        append(&channel->served, waiter);
    }
    RS_CHECK(!waiter || waiter->state == RS_WAITER_POPS || waiter->state == RS_WAITER_PUSHES);
    return waiter;
}

static bool give_to_popper(rs_channel *channel, rs_machine *here, uint64_t value) {
    rs_channel_waiter *popper = first_in(channel, here, &channel->poppers);
    if (!popper) return false;
    RS_CHECK(channel->len == 0); /* else it would have taken that */
    popper->value = value;
    end_wait(channel, here, popper, RS_WAITER_POPPED);
    return true;
}

static void serve_pushers(rs_channel *channel, rs_machine *here) {
    RS_CHECK(!channel->closed || channel->pushers.len == 0);
    rs_channel_waiter *pusher;
    while (channel->len < channel->capacity && (pusher = first_in(channel, here, &channel->pushers))) {
        put_last(channel, pusher->value);
        end_wait(channel, here, pusher, RS_WAITER_PUSHED);
    }
    if (channel->len < channel->capacity) notify_observers(channel, here, true);
}

static void stand_in_line(rs_channel *channel, rs_channel_waiter *waiter, rs_waiter_state state) {
    RS_ASSERT(waiter->channel == NULL);
    waiter->channel = channel;
    waiter->state = (uint8_t)state;
    channel->references++;
    append(line_of(channel, waiter), waiter);
    rs_machine *machine = waiter->machine;
    if (!machine) return;
    rs_links_prepend(&rs_channel_waiters_in(machine)->all, &waiter->of_machine);
}

static rs_channel_answer push(rs_channel *channel, rs_machine *here, uint64_t value, rs_channel_waiter *waiter) {
    RS_CHECK(channel->capacity > 0);
    if (channel->closed) return RS_CHANNEL_CLOSED;
    if (RS_UNLIKELY(!make_room(channel))) return RS_CHANNEL_NO_MEMORY;
    if (give_to_popper(channel, here, value)) return RS_CHANNEL_DONE;
    if (channel->len < channel->capacity) {
        put_last(channel, value);
        notify_observers(channel, here, false);
        return RS_CHANNEL_DONE;
    }
    if (!waiter) return RS_CHANNEL_WAITS;
    waiter->value = value;
    stand_in_line(channel, waiter, RS_WAITER_PUSHES);
    return RS_CHANNEL_WAITS;
}

static rs_channel_answer pop(rs_channel *channel, rs_machine *here, uint64_t *value, rs_channel_waiter *waiter) {
    RS_CHECK(channel->len == 0 || channel->poppers.len == 0);
    if (channel->len > 0) {
        *value = take_first(channel);
        serve_pushers(channel, here);
        return RS_CHANNEL_DONE;
    }
    if (channel->closed && channel->on_their_way == 0) return RS_CHANNEL_CLOSED;
    if (waiter) stand_in_line(channel, waiter, RS_WAITER_POPS);
    return RS_CHANNEL_WAITS;
}

/* --- for all --- */

rs_channel_answer rs_channel_push(rs_channel *channel, rs_machine *here, uint64_t value, rs_channel_waiter *waiter) {
    RS_CHECK(!waiter || waiter->machine == here);
    lock(channel);
    rs_channel_answer answer = push(channel, here, value, waiter);
    unlock(channel);
    return answer;
}

rs_channel_answer rs_channel_pop(rs_channel *channel, rs_machine *here, uint64_t *value, rs_channel_waiter *waiter) {
    RS_CHECK(!waiter || waiter->machine == here);
    lock(channel);
    rs_channel_answer answer = pop(channel, here, value, waiter);
    unlock(channel);
    return answer;
}

static void give_back(rs_channel *channel, rs_machine *here, uint64_t value) {
    if (give_to_popper(channel, here, value)) return;
    put_first(channel, value);
    notify_observers(channel, here, false);
}

/* Closed, empty, and nothing can be given back any more. */
static void end_poppers_at_the_end(rs_channel *channel, rs_machine *here) {
    if (!channel->closed || channel->len > 0 || channel->on_their_way > 0) return;
    RS_CHECK(channel->pushers.len == 0);
    while (channel->poppers.len > 0) end_wait(channel, here, first_of(&channel->poppers), RS_WAITER_CLOSED);
    notify_observers(channel, here, false);
}

/* Of a waiter that was served; of one of the parent a child has forgotten everything. */
static void leave_served(rs_channel *channel, rs_machine *here, rs_channel_waiter *waiter, bool takes) {
    RS_CHECK(line_of(channel, waiter) == &channel->served);
    take_out(&channel->served, waiter);
    if (waiter->state != RS_WAITER_POPPED) return;
    RS_CHECK(channel->on_their_way > 0);
    channel->on_their_way--;
    if (!takes) give_back(channel, here, waiter->value);
    end_poppers_at_the_end(channel, here);
}

void rs_channel_close(rs_channel *channel, rs_machine *here) {
    lock(channel);
    channel->closed = true;
    while (channel->pushers.len > 0) end_wait(channel, here, first_of(&channel->pushers), RS_WAITER_CLOSED);
    notify_observers(channel, here, true);
    end_poppers_at_the_end(channel, here);
    unlock(channel);
}

void rs_channel_each(rs_channel *channel, void (*call)(uint64_t value)) {
    lock(channel);
    RS_CHECK(channel->len <= channel->allocated);
    for (uint32_t i = 0; i < channel->len; i++) call(channel->values[(channel->first + i) % channel->allocated]);
    RS_EACH_LINKED(&channel->pushers.waiters, rs_channel_waiter, link, waiter) call(waiter->value);
    RS_EACH_LINKED(&channel->served.waiters, rs_channel_waiter, link, waiter) {
        if (waiter->state == RS_WAITER_POPPED) call(waiter->value);
    }
    unlock(channel);
}

uint32_t rs_channel_len(rs_channel *channel) {
    lock(channel);
    uint32_t len = channel->len;
    unlock(channel);
    return len;
}

uint32_t rs_channel_waiting(rs_channel *channel) {
    lock(channel);
    uint32_t waiting = channel->poppers.len + channel->pushers.len;
    unlock(channel);
    return waiting;
}

bool rs_channel_is_closed(rs_channel *channel) {
    lock(channel);
    bool closed = channel->closed;
    unlock(channel);
    return closed;
}

/* --- waiters --- */

rs_channel_waiter *rs_channel_waiter_new(rs_machine *machine, rs_id strand, uint64_t ticket) {
    RS_CHECK((machine == NULL) == (strand == RS_NO_ID));
    rs_channel_waiter *waiter = rs_try_alloc(sizeof(*waiter));
    if (!waiter) return NULL;
    *waiter = (rs_channel_waiter){.machine = machine, .strand = strand, .ticket = ticket, .forks = forks};
    if (machine) return waiter;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return waiter;
}

bool rs_channel_waiter_is_in_line(const rs_channel_waiter *waiter) {
    return waiter->state == RS_WAITER_POPS || waiter->state == RS_WAITER_PUSHES;
}

void rs_channel_waiter_free(rs_channel_waiter *waiter) {
    RS_CHECK(waiter->forks != forks || (!waiter->link.next && !waiter->link.previous)); /* in no line */
    if (!waiter->machine && waiter->forks == forks) pthread_cond_destroy(&waiter->changed);
    free(waiter);
}

static void leave_machine(rs_channel_waiter *waiter) {
    if (waiter->machine) rs_links_remove(&rs_channel_waiters_in(waiter->machine)->all, &waiter->of_machine);
}

static bool is_in_line(const rs_channel_waiter *waiter) {
    return waiter->state == RS_WAITER_POPS || waiter->state == RS_WAITER_PUSHES;
}

static rs_waiter_state leave(rs_channel_waiter *waiter, bool takes) {
    RS_CHECK(waiter->channel != NULL);
    rs_channel *channel = waiter->channel;
    lock(channel);
    if (RS_LIKELY(waiter->forks == forks)) { /* else its machine has forgotten it as well */
        if (is_in_line(waiter)) take_out(line_of(channel, waiter), waiter);
        else leave_served(channel, waiter->machine, waiter, takes);
        leave_machine(waiter);
    }
    rs_waiter_state state = (rs_waiter_state)waiter->state;
    unlock_and_release(channel);
    return state;
}

rs_channel_answer rs_channel_leave(rs_channel_waiter *waiter, uint64_t *value) {
    rs_waiter_state state = leave(waiter, true);
    if (state == RS_WAITER_POPPED && value) *value = waiter->value;
    if (state == RS_WAITER_CLOSED) return RS_CHANNEL_CLOSED;
    return state == RS_WAITER_POPPED || state == RS_WAITER_PUSHED ? RS_CHANNEL_DONE : RS_CHANNEL_WAITS;
}

void rs_channel_refuse(rs_channel_waiter *waiter) { leave(waiter, false); }

void rs_channel_sleep(rs_channel_waiter *waiter, int64_t deadline_ns) {
    RS_CHECK(waiter->machine == NULL);
    struct timespec until = {.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000};
    lock(waiter->channel);
    int error = 0;
    while (is_in_line(waiter) && !waiter->interrupted && error != ETIMEDOUT) {
        if (deadline_ns == RS_NEVER) error = pthread_cond_wait(&waiter->changed, &waiter->channel->lock);
        else error = pthread_cond_timedwait(&waiter->changed, &waiter->channel->lock, &until);
    }
    waiter->interrupted = false;
    unlock(waiter->channel);
}

void rs_channel_interrupt(rs_channel_waiter *waiter) {
    RS_CHECK(waiter->machine == NULL);
    lock(waiter->channel);
    waiter->interrupted = true;
    pthread_cond_signal(&waiter->changed);
    unlock(waiter->channel);
}

/* Given back from the last that was given out to the first, so that they stand in front in their order again. */
static rs_channel_waiter *last_given(const rs_channel_waiters *waiters) {
    rs_channel_waiter *last = NULL;
    RS_EACH_LINKED(&waiters->all, rs_channel_waiter, of_machine, waiter) {
        RS_CHECK(!is_in_line(waiter));
        if (!last || waiter->order > last->order) last = waiter;
    }
    return last;
}

/* No strand of it looks any more. */
static void end_waiters(rs_machine *machine) {
    RS_EACH_LINKED(&rs_channel_waiters_in(machine)->all, rs_channel_waiter, of_machine, waiter) {
        lock(waiter->channel);
        bool in_line = is_in_line(waiter);
        if (in_line) take_out(line_of(waiter->channel, waiter), waiter);
        unlock(waiter->channel);
        if (!in_line) continue;
        leave_machine(waiter);
        rs_channel_release(waiter->channel);
        rs_channel_waiter_free(waiter);
    }
    for (rs_channel_waiter *waiter; (waiter = last_given(rs_channel_waiters_in(machine)));) {
        rs_channel *channel = waiter->channel;
        lock(channel);
        leave_served(channel, machine, waiter, false);
        unlock_and_release(channel);
        leave_machine(waiter);
        rs_channel_waiter_free(waiter);
    }
}

/* --- observers --- */

static void forget(rs_watch_observer *of_watch) {
    channel_observer *observer = (channel_observer *)of_watch;
    RS_CHECK(observer->channel != NULL);
    rs_channel *channel = observer->channel;
    lock(channel);
    if (observer->in_line) rs_links_remove(&channel->observers, &observer->link);
    observer->in_line = false;
    bool notified = observer->of_watch.notified;
    observer->watch = NULL;
    unlock_and_release(channel);
    observer->channel = NULL;
    if (!notified) free(observer); /* else when its message is there */
}

bool rs_channel_observe(rs_channel *channel, rs_watch *watch, bool for_places) {
    RS_CHECK(watch->observer == NULL && watch->selector->machine != NULL);
    channel_observer *observer = rs_try_alloc(sizeof(*observer));
    if (!observer) return false;
    *observer = (channel_observer){.of_watch.forget = forget, .channel = channel, .machine = watch->selector->machine,
                                      .watch = watch, .for_places = for_places};
    watch->observer = &observer->of_watch;
    lock(channel);
    channel->references++;
    unlock(channel);
    return true;
}

static void stand_by(rs_channel *channel, channel_observer *observer) {
    RS_CHECK(observer->channel == channel && observer->watch != NULL);
    if (observer->in_line) return;
    observer->in_line = true;
    rs_links_prepend(&channel->observers, &observer->link);
}

rs_channel_answer rs_channel_look(rs_watch_observer *of_watch, uint64_t *value) {
    channel_observer *observer = (channel_observer *)of_watch;
    RS_CHECK(observer->channel != NULL && observer->watch != NULL);
    RS_CHECK(observer->machine == observer->watch->selector->machine);
    rs_channel *channel = observer->channel;
    lock(channel);
    rs_channel_answer answer = observer->for_places ? push(channel, observer->machine, *value, NULL)
                                                    : pop(channel, observer->machine, value, NULL);
    if (answer == RS_CHANNEL_WAITS) stand_by(channel, observer);
    unlock(channel);
    return answer;
}

/* --- the part --- */

static void on_ready(rs_machine *machine, const rs_message *message) {
    channel_observer *observer = (channel_observer *)message->payload;
    RS_CHECK(observer->machine == machine);
    if (!observer->channel) {
        free(observer);
        return;
    }
    lock(observer->channel);
    RS_CHECK(observer->of_watch.notified && observer->watch != NULL);
    observer->of_watch.notified = false;
    unlock(observer->channel);
    rs_watch_ready(observer->watch);
}

static void forget_waiters(rs_machine *machine, const rs_strand *survivor) {
    (void)survivor;
    *rs_channel_waiters_in(machine) = (rs_channel_waiters){0};
}

const rs_part rs_channel_waiters_part = {
    .message = RS_MESSAGE_READY, .on_message = on_ready, .forked = forget_waiters, .ends = end_waiters,
};
