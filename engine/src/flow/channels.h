/* channels: what a channel and a wait at one are made of, and the waiters of a machine. */
#ifndef RINGSPUN_CHANNELS_H
#define RINGSPUN_CHANNELS_H

#include "core/machine.h"
#include "ringspun/flow/channel.h"

#include <pthread.h>

typedef enum { RS_WAITER_POPS, RS_WAITER_PUSHES, RS_WAITER_POPPED, RS_WAITER_PUSHED, RS_WAITER_CLOSED,
               RS_WAITER_MISSED } rs_waiter_state;

struct rs_channel_waiter {
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
};

typedef struct { rs_links waiters; uint32_t len; } rs_channel_line;

/* Of a machine's strands. */
typedef struct rs_channel_waiters { rs_links all; } rs_channel_waiters;

extern const rs_part rs_channel_waiters_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_channel_waiters_at;

static inline rs_channel_waiters *rs_channel_waiters_in(const rs_machine *machine) {
    return (rs_channel_waiters *)((char *)machine + rs_channel_waiters_at);
}

struct rs_channel {
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
};

#endif
