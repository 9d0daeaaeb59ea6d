/* workers: a few threads for what epoll cannot do (regular files, fsync, an open that waits for its peer). The pool is
 * owned by the machine's thread; its threads see only the request they were handed, by copy, and answer through the inbox.
 *
 * Threads start when there is work for them, up to a limit, and block all signals.
 */
#ifndef RINGSPUN_WORKERS_H
#define RINGSPUN_WORKERS_H

#include "machine.h"

typedef struct rs_workers rs_workers;

rs_workers *rs_workers_new(rs_machine *machine, uint32_t limit);

/* Ends the threads; waits for jobs that run. */
void rs_workers_free(rs_workers *workers);

/* In a forked child, where the threads do not exist: forgets them and the jobs. */
void rs_workers_forked(rs_workers *workers);

void rs_workers_submit(rs_workers *workers, rs_op *op);

/* True: no thread has begun with it, and none will. */
bool rs_workers_withdraw(rs_workers *workers, rs_op *op);

#endif
