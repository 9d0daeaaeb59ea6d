/* wake: who is told that something has come: a strand, or a plain thread that asks by itself (Lane#ask in thread.c). Threads run no
 * machine: what is sent leaves at once, and the one that reads waits for the socket without the GVL.
 *
 * The socket is the stream's, and the lane is of one machine, as ever. At each moment one request at most is the lane's reader, and
 * its strand or thread alone takes bytes from the socket. Whoever leaves while others wait hands that on: to a thread by waking it, to
 * a strand through the machine. Threads have a number of their own for the socket, so that none of them meets another file when the
 * stream is closed under it.
 *
 * All that is the machine's, which a thread must not touch, it leaves to be done: strands to wake, what the kernel did not take, a
 * cancellation. It rings the bell, and a strand of the machine calls Lane#rouse.
 */
#ifndef RINGSPUN_PG_WAKE_H
#define RINGSPUN_PG_WAKE_H

#include "client/lane.h"

/* Ends the wait of a request's strand or thread: it is served, or is to read. */
void rpg_wake(rpg_request *request);

/* No thread uses its number of the socket, and none will. */
void rpg_threads_close_number(rpg_lane *lane);

/* The lane has ended: no thread uses its number of the socket any more. */
void rpg_threads_end(rpg_lane *lane);

/* In a forked child, which has none of those threads. */
void rpg_threads_forget(rpg_lane *lane);

/* When a lane is freed. */
void rpg_threads_free(rpg_lane *lane);

#endif
