/* accept queue: an op that lasts and brings one connection after the other (a multishot accept), and those that nobody has taken
 * yet. Owned by the machine's thread. Only for backends that have ops which last.
 *
 * The strand waits in the accept queue's list and not for the op, so a cancellation ends its wait at once and loses nothing: what
 * has come stays here. It belongs to the listener, as if it were in the kernel's queue: whoever accepts next takes it, and with
 * the listener it is closed. The op is armed when the strand waits for the first time, asked to end when so many connections lie
 * here as were allowed, or somebody else wants to accept there as well, and armed anew when the strand waits again.
 */
#ifndef RINGSPUN_ACCEPT_QUEUE_H
#define RINGSPUN_ACCEPT_QUEUE_H

#include "ringspun/ops/op_life.h"

typedef struct rs_accept_queue rs_accept_queue;

/* Whether there may be one on that descriptor: it must be the machine's own, or others might close it unseen. Strands that were
 * suspended in one and never go on keep theirs, so there is a limit. */
bool rs_accept_queue_fits(const rs_machine *machine, int fd);

/* NULL: there is no memory. */
rs_accept_queue *rs_accept_queue_open(rs_machine *machine, const rs_request *request, uint32_t ahead);

/* Where its strand waits; and of such a list, what is asked for. */
rs_list *rs_accept_queue_waiters(rs_accept_queue *queue);
const rs_request *rs_accept_queue_request(const rs_list *waiters);

/* The next result, the error behind the last one, or -EAGAIN: wait in its list and ask again. */
int64_t rs_accept_queue_take(rs_accept_queue *queue);

/* Before a wait: what it waits for is under way. False: there is something to take, or the op has ended at once. */
bool rs_accept_queue_arm(rs_machine *machine, rs_accept_queue *queue);

/* Its op is in flight. */
bool rs_accept_queue_is_armed(const rs_accept_queue *queue);

/* Somebody else waits there as well, and the op has ended for it: from now on each accept is an op of its own. */
bool rs_accept_queue_gives_way(const rs_accept_queue *queue);

/* Asks the op to end. True while it has not: wait in its list and ask again. */
bool rs_accept_queue_stop(rs_machine *machine, rs_accept_queue *queue);

/* Its strand goes; what nobody has taken stays. No op is in flight. */
void rs_accept_queue_close(rs_machine *machine, rs_accept_queue *queue);

/* All that there are, one after the other: the one behind `queue` (NULL: the first), or NULL. */
rs_accept_queue *rs_accept_queues_next(const rs_machine *machine, const rs_accept_queue *queue);

/* Of any accept queue on that listener: the next connection, or -EAGAIN; and whether there is one. */
int64_t rs_accept_queue_take_any(rs_machine *machine, int fd);
bool rs_accept_queue_has(const rs_machine *machine, int fd);

/* In a child, where the parent's connections are copies that would keep them open. Calls nothing but close(2). */
void rs_accept_queue_close_copies(rs_machine *machine);

#endif
