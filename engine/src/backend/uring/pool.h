/* pool: the machine's receive buffers, from which the kernel takes one when bytes have come and not before, so that a
 * connection on which nothing happens holds none. (One for which a thread of the kernel's waits holds one: see decision 19.) Owned
 * by the machine's thread.
 *
 * A completion uses up a whole buffer, however little there is in it.
 */
#ifndef RINGSPUN_URING_POOL_H
#define RINGSPUN_URING_POOL_H

#include "backend/uring/ring.h"

#define URING_POOL_GROUP 0
/* As much as a piece of a stream's buffer (RS_BUFFER_PIECE), and as a usual read asks for. A completion uses up a whole one: see
 * docs/decisions/19. */
#define URING_POOL_BUFFER 16384u

typedef struct uring_pool uring_pool;

/* NULL: the kernel has no such thing, or no memory for it. */
uring_pool *uring_pool_open(uring_ring *ring);

/* The ring is closed, or was the parent's. */
void uring_pool_free(uring_pool *pool);

/* One more, up to a limit. Called when the kernel had none left. */
void uring_pool_add(uring_pool *pool);

/* Where the bytes are that this completion brought. Called for each one that names a buffer. */
void *uring_pool_take(uring_pool *pool, const uring_cqe *cqe);

/* They are not needed any more. False: not one of ours. */
bool uring_pool_give_back(uring_pool *pool, const void *bytes);

#endif
