/* worker_pool: threads that do ops for a machine. The pool is owned by the machine's thread; its threads have a copy of the
 * request, and answer through the inbox. They know only the name of the op, and that no other of them is at it any more (rs_op.job).
 *
 * Threads start when there is work for them, up to a limit, and block all signals. A thread may stay in a system call for
 * ever (an open of a FIFO whose other side never comes). When its strand gives that up, the thread is left: it does not keep
 * a machine from closing, but goes by itself when it comes back. By the pool's rules it counts as before, or another one may
 * take its place.
 */
#ifndef RINGSPUN_WORKER_POOL_H
#define RINGSPUN_WORKER_POOL_H

#include "backend/zones.h"
#include "ops/ops.h"
#include "ops/op_life.h"

/* So many threads may be stuck in what nobody waits for; those after them count. */
#define RS_WORKERS_LEFT_MAX RS_OPS_LEFT_MAX

typedef struct {
    uint32_t limit;             /* 0: 1 */
    bool replaces_left;         /* another thread may take the place of one that was left */
    bool by_zone;               /* its ops are name look-ups, and zones say which may begin */
    int64_t idle_ns;            /* after this long without work a thread ends; RS_NEVER: none does */
} rs_worker_rules;

typedef struct rs_worker_pool rs_worker_pool;

/* by_zone: whether a look-up of that name would begin at once. */
bool rs_worker_pool_has_place(rs_worker_pool *pool, const char *host);

/* NULL: there is no memory. */
rs_worker_pool *rs_worker_pool_new(rs_machine *machine, const rs_worker_rules *rules);

/* Ends the threads. Those that are at a job that was left end with it, and without the machine: the job takes over what
 * the op owned. No other job runs. */
void rs_worker_pool_free(rs_worker_pool *pool);

/* The machine's thread ends, and nobody takes answers any more. Ends the threads, and waits for none: one that is at a job ends
 * with it, and closes what that has made. None is in the middle of an answer when this returns, so the descriptor that an answer
 * writes to, in order to wake the machine, may be closed. */
void rs_worker_pool_leave(rs_worker_pool *pool);

/* In a forked child, where the threads do not exist: forgets them and the jobs. */
void rs_worker_pool_forked(rs_worker_pool *pool);

/* Which lends it memory where it needs some. Without any it has ended already. */
void rs_worker_pool_submit(rs_worker_pool *pool, rs_op *op);

/* A backend's cancel verb for an op of theirs. Where no thread has begun with it, none will; a thread that may never come back
 * is left to itself. */
void rs_worker_pool_cancel(rs_worker_pool *pool, rs_op *op);

/* Makes up for threads that were left. Not done at once: the same cancellation may take out of line what waits there. */
void rs_worker_pool_tend(rs_worker_pool *pool);

#endif
