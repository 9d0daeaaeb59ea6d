/* accept queues: what one is made of, and those of a machine. */
#ifndef RINGSPUN_ACCEPT_QUEUES_H
#define RINGSPUN_ACCEPT_QUEUES_H

#include "core/machine.h"
#include "ringspun/flow/accept_queue.h"

struct rs_accept_queue {
    rs_link link;               /* in the list of the machine's */
    rs_request request;
    rs_id op;                   /* in flight; 0: none */
    rs_list waiters;            /* its strand, while it waits */
    int64_t *results;           /* not taken yet */
    uint32_t first, len, capacity;
    uint32_t ahead;             /* the most of them, but for those that come while the op ends */
    int64_t error;              /* what has ended the op, given behind the results; 0: nothing */
    uint32_t generation;        /* of the listener */
    bool shared;                /* somebody else waits there as well: ask for one after the other from now on */
    bool left;                  /* by its strand: it lasts until it is empty */
};

typedef struct rs_accept_queues {
    rs_links all;
    uint32_t len;
    bool multishot;             /* the backend has ops that last */
} rs_accept_queues;

extern const rs_part rs_accept_queues_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_accept_queues_at;

static inline rs_accept_queues *rs_accept_queues_in(const rs_machine *machine) {
    return (rs_accept_queues *)((char *)machine + rs_accept_queues_at);
}

#endif
