/* workers: threads for what the backend cannot do: epoll no regular files, no fsync and no open that waits for its peer, and
 * io_uring what its kernel does not know. No kernel can look up a name.
 *
 * What waits for somebody else needs little but a thread, and may need it for ever. So names have a pool of their own with many
 * threads, for a look-up lasts for as long as somebody's server likes, and opens have one, for a FIFO's waits for its other end; they
 * share it with waits for children. None of them keeps work on files from its threads. What a function does is told where a pool has the same one (worker_pool.h).
 */
#ifndef RINGSPUN_WORKERS_H
#define RINGSPUN_WORKERS_H

#include "backend/worker_pool.h"

typedef struct {
    rs_worker_pool *files;      /* and all the rest */
    rs_worker_pool *opens;
    rs_worker_pool *names;
} rs_workers;

/* False: there is no memory, and nothing to free. */
bool rs_workers_open(rs_machine *machine, rs_workers *workers);
void rs_workers_free(rs_workers *workers);
void rs_workers_leave(rs_workers *workers);
void rs_workers_forked(rs_workers *workers);
void rs_workers_submit(rs_workers *workers, rs_op *op);
void rs_workers_cancel(rs_workers *workers, rs_op *op);
void rs_workers_tend(rs_workers *workers);

#endif
