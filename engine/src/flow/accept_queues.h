/* accept queues: those of a machine. */
#ifndef RINGSPUN_ACCEPT_QUEUES_H
#define RINGSPUN_ACCEPT_QUEUES_H

#include "ringspun/flow/accept_queue.h"

typedef struct rs_accept_queues {
    rs_links all;
    uint32_t len;
    bool multishot;             /* the backend has ops that last */
} rs_accept_queues;

extern const rs_part rs_accept_queues_part;

#endif
