/* workers: threads for what the backend cannot do: epoll no regular files, no fsync and no open that waits for its peer, and
 * io_uring what its kernel does not know. No kernel can look up a name.
 *
 * Names have a pool of their own, with many threads: a look-up lasts for as long as somebody's server likes, and needs
 * little but a thread. What a function does is told where a pool has the same one (worker_pool.h).
 */
#ifndef RINGSPUN_WORKERS_H
#define RINGSPUN_WORKERS_H

#include "backend/worker_pool.h"

typedef struct {
    rs_worker_pool *files;      /* and all the rest */
    rs_worker_pool *names;
} rs_workers;

rs_workers rs_workers_new(rs_machine *machine);
void rs_workers_free(rs_workers *workers);
void rs_workers_leave(rs_workers *workers);
void rs_workers_forked(rs_workers *workers);
void rs_workers_submit(rs_workers *workers, rs_op *op);
void rs_workers_cancel(rs_workers *workers, rs_op *op);
void rs_workers_tend(rs_workers *workers);

#endif
