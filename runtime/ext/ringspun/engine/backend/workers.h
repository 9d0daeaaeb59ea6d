/* workers: a few threads for what the backend cannot do: epoll no regular files, no fsync and no open that waits for its peer,
 * and io_uring what its kernel does not know. The pool is owned by the machine's thread; its threads have a copy of the
 * request, and answer through the inbox. Of the op they know the name, and that none of them is at it any more (rs_op.job).
 *
 * Threads start when there is work for them, up to a limit, and block all signals. A thread may stay in a system call for
 * ever (an open of a FIFO whose other side never comes). When its strand gives that up the thread does not count any more,
 * so that the others have as many as before; and it does not keep a machine from closing, but goes by itself when it comes
 * back.
 */
#ifndef RINGSPUN_WORKERS_H
#define RINGSPUN_WORKERS_H

#include "ops/op_life.h"

/* So many threads may be stuck in what nobody waits for; those after them count. */
#define RS_WORKERS_LEFT_MAX RS_OPS_LEFT_MAX

typedef struct rs_workers rs_workers;

rs_workers *rs_workers_new(rs_machine *machine, uint32_t limit);

/* Ends the threads. Those that are at a job that was left end with it, and without the machine: the job takes over what
 * the op owned. No other job runs. */
void rs_workers_free(rs_workers *workers);

/* The machine's thread ends, and nobody takes answers any more. Ends the threads, and waits for none: one that is at a job ends
 * with it, and closes what that has made. None is in the middle of an answer when this returns, so the descriptor that an answer
 * writes to, in order to wake the machine, may be closed. */
void rs_workers_leave(rs_workers *workers);

/* In a forked child, where the threads do not exist: forgets them and the jobs. */
void rs_workers_forked(rs_workers *workers);

/* Which lends it memory where it needs some. Without any it has ended already. */
void rs_workers_submit(rs_workers *workers, rs_op *op);

/* A backend's cancel verb for an op of theirs. Where no thread has begun with it, none will; a thread that may never come back
 * is left to itself. */
void rs_workers_cancel(rs_workers *workers, rs_op *op);

/* Makes up for threads that were left. Not done at once: the same cancellation may take out of line what waits there. */
void rs_workers_tend(rs_workers *workers);

#endif
