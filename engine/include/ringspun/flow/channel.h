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

#include "ringspun/core/machine.h"
#include "ringspun/flow/select.h"

struct rs_machine;
struct rs_watch;

typedef enum { RS_CHANNEL_DONE, RS_CHANNEL_WAITS, RS_CHANNEL_CLOSED, RS_CHANNEL_NO_MEMORY } rs_channel_answer;

typedef struct rs_channel_waiter rs_channel_waiter;
typedef struct rs_channel rs_channel;

/* Called in every child process, before anything there uses a channel. */
void rs_channels_forked(void);

/* NULL: there is no memory. */
rs_channel *rs_channel_new(uint32_t capacity);
/* Of one that was made with 0, and is not in use yet. */
void rs_channel_set_capacity(rs_channel *channel, uint32_t capacity);
void rs_channel_release(rs_channel *channel);
/* 0: it was not set. */
uint32_t rs_channel_capacity(const rs_channel *channel);
/* The memory that it takes. */
size_t rs_channel_bytes(const rs_channel *channel);

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

/* Memory for one wait; for a strand the ticket is that of the park which follows. NULL: there is none. */
rs_channel_waiter *rs_channel_waiter_new(struct rs_machine *machine, rs_id strand, uint64_t ticket);
void rs_channel_waiter_free(rs_channel_waiter *waiter);

/* Nobody has given it anything, and the channel is open; it may be different a moment later. */
bool rs_channel_waiter_is_in_line(const rs_channel_waiter *waiter);

/* A thread without a machine: until something happens, that time on rs_clock_ns, or an interrupt from another thread. */
void rs_channel_sleep(rs_channel_waiter *waiter, int64_t deadline_ns);
void rs_channel_interrupt(rs_channel_waiter *waiter);

/* For a watch of a selector, with which it goes. It becomes ready when there may be something, once it has looked in vain. False:
 * there is no memory, and the watch watches nothing. */
bool rs_channel_observe(rs_channel *channel, rs_watch *watch, bool for_places);
rs_channel_answer rs_channel_look(rs_watch_observer *of_watch, uint64_t *value);

/* Each value that the channel keeps, with the lock held. */
void rs_channel_each(rs_channel *channel, void (*call)(uint64_t value));

/* What may be asked at any time, and may be different a moment later. */
uint32_t rs_channel_len(rs_channel *channel);
uint32_t rs_channel_waiting(rs_channel *channel);
bool rs_channel_is_closed(rs_channel *channel);

#endif
