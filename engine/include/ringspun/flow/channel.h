/* channel: values on their way between machines, and threads without one. Any thread may call what is here, with the machine that
 * it runs (NULL: none); a lock that is held for a few stores, and for the wake of who waits, is all that they share.
 *
 * First in, first out, so many at most. A value goes to the waiter that has waited longest in the same step as its wake, and a free
 * place to who waits to push; so nobody overtakes, and what a waiter has been given is its own, whatever ended its wait: it looks
 * by rs_channel_leave. A waiter that will never look, because its thread or its machine ends, gives back what it got, to the next
 * one in line or the front (rs_channel_refuse, and the end of the part). As long as that may happen a closed channel is not at its
 * end: who pops waits.
 *
 * Selectors have observers at a channel. They are notified when there may be something, and take it when they look.
 *
 * A waiter or an observer keeps the channel's memory. A child process has none of the parent's, and its copy of the values.
 */
#ifndef RINGSPUN_CHANNEL_H
#define RINGSPUN_CHANNEL_H

#include "ringspun/core/link.h"
#include "ringspun/core/part.h"
#include "ringspun/flow/select.h"

#include <pthread.h>

struct rs_machine;
struct rs_watch;
struct rs_channel;

typedef enum { RS_CHANNEL_DONE, RS_CHANNEL_WAITS, RS_CHANNEL_CLOSED, RS_CHANNEL_NO_MEMORY } rs_channel_answer;

typedef enum { RS_WAITER_POPS, RS_WAITER_PUSHES, RS_WAITER_POPPED, RS_WAITER_PUSHED, RS_WAITER_CLOSED,
               RS_WAITER_MISSED } rs_waiter_state;

typedef struct rs_channel_waiter {
    rs_link link;               /* in line, or among those that have been given something */
    rs_link of_machine;         /* its thread alone */
    struct rs_channel *channel;
    struct rs_machine *machine; /* NULL: a thread, which sleeps (rs_channel_sleep) */
    rs_id strand;
    uint64_t ticket;
    uint64_t value;
    uint64_t order;             /* in which values were given out */
    uint32_t forks;
    uint8_t state;
    bool interrupted;
    pthread_cond_t changed;
} rs_channel_waiter;

typedef struct { rs_links waiters; uint32_t len; } rs_channel_line;

/* Of a machine's strands. */
typedef struct rs_channel_waiters { rs_links all; } rs_channel_waiters;

extern const rs_part rs_channel_waiters_part;

typedef struct rs_channel {
    pthread_mutex_t lock;       /* of all that follows */
    uint32_t references;
    uint32_t forks;
    uint64_t *values;           /* a ring; larger than the limit only when something was given back */
    uint32_t first, len, allocated;
    uint32_t capacity;
    uint64_t given;
    uint32_t on_their_way;      /* popped for waiters that have not left yet */
    rs_channel_line poppers, pushers, served;
    rs_links observers;
    bool closed;
} rs_channel;

/* Called in every child process, before anything there uses a channel. */
void rs_channels_forked(void);

rs_channel *rs_channel_new(uint32_t capacity);
/* Of one that was made with 0, and is not in use yet. */
void rs_channel_set_capacity(rs_channel *channel, uint32_t capacity);
void rs_channel_release(rs_channel *channel);

/* DONE: *value is popped, or the value is pushed. WAITS: the waiter is in line now; without one (NULL), it cannot be done now.
 * NO_MEMORY, of a push: nothing has been done. */
rs_channel_answer rs_channel_push(rs_channel *channel, struct rs_machine *here, uint64_t value, rs_channel_waiter *waiter);
rs_channel_answer rs_channel_pop(rs_channel *channel, struct rs_machine *here, uint64_t *value, rs_channel_waiter *waiter);

/* The waiter is not in line any more. WAITS: it got nothing. */
rs_channel_answer rs_channel_leave(rs_channel_waiter *waiter, uint64_t *value);
/* The same for who cannot take along what it may have been given: that is given back. */
void rs_channel_refuse(rs_channel_waiter *waiter);

/* Pushes fail from now on, and pops when all is gone. */
void rs_channel_close(rs_channel *channel, struct rs_machine *here);

/* Memory for one wait; for a strand the ticket is that of the park which follows. */
rs_channel_waiter *rs_channel_waiter_new(struct rs_machine *machine, rs_id strand, uint64_t ticket);
void rs_channel_waiter_free(rs_channel_waiter *waiter);

/* A thread without a machine: until something happens, that time on rs_clock_ns, or an interrupt from another thread. */
void rs_channel_sleep(rs_channel_waiter *waiter, int64_t deadline_ns);
void rs_channel_interrupt(rs_channel_waiter *waiter);

/* For a watch of a selector, with which it goes. It becomes ready when there may be something, once it has looked in vain. */
void rs_channel_observe(rs_channel *channel, rs_watch *watch, bool for_places);
rs_channel_answer rs_channel_look(rs_watch_observer *of_watch, uint64_t *value);

/* Each value that the channel keeps, with the lock held. */
void rs_channel_each(rs_channel *channel, void (*call)(uint64_t value));

/* What may be asked at any time, and may be different a moment later. */
uint32_t rs_channel_len(rs_channel *channel);
uint32_t rs_channel_waiting(rs_channel *channel);
bool rs_channel_is_closed(rs_channel *channel);

#endif
