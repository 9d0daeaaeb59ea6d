/* uring_pool: the machine's receive buffers, from which the kernel takes one when bytes have come and not before, so that a
 * connection on which nothing happens holds none. Owned by the machine's thread.
 *
 * Where the kernel can (Linux 6.12), it puts what comes next behind what is in a buffer already, and gives the buffer up when it
 * is full. A buffer is handed to it again when it has given it up and all that came in it has been given back.
 */
#ifndef RINGSPUN_URING_POOL_H
#define RINGSPUN_URING_POOL_H

#include "uring_ring.h"

#define URING_POOL_GROUP 0
#define URING_POOL_BUFFER 16384u

typedef struct uring_pool uring_pool;

/* NULL: the kernel has no such thing, or no memory for it. */
uring_pool *uring_pool_open(uring_ring *ring);

/* The ring is closed, or was the parent's. */
void uring_pool_free(uring_pool *pool);

/* Where the bytes are that this completion brought. Called for each one that names a buffer, in their order. */
void *uring_pool_take(uring_pool *pool, const uring_cqe *cqe);

/* Whether a buffer ends behind so many of them. */
bool uring_pool_ends(const uring_pool *pool, const void *bytes, size_t len);

/* They are not needed any more. False: not one of ours. */
bool uring_pool_give_back(uring_pool *pool, const void *bytes);

#endif
