/*
 * A bare ring for those floors that ask io_uring: entries are filled, one call hands all of them over and waits for as many
 * completions as it is told. No op, no strand, no list of what is in flight.
 *
 * Owned by the program's one thread. Between `ring_enter` and the next one the caller takes all completions.
 */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include "backend/uring/abi.h"

struct ring {
    int fd;
    uring_sqe *sqes;
    const uring_cqe *cqes;
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    uint32_t filled; /* entries that were filled and not handed over */
};

/* For as many entries at once, a power of two. Ends the program where the host has no io_uring. */
void ring_open(struct ring *ring, unsigned entries);

/* A cleared entry; there must be room. */
uring_sqe *ring_entry(struct ring *ring);

/* All that were filled, by one call, which returns when there are as many completions as that. */
void ring_enter(struct ring *ring, unsigned wait_for);

/* The results of as many completions, which must be there, added up. An error ends the program. */
uint64_t ring_reap(struct ring *ring, unsigned count);

#endif
