/* turn: how long a strand runs before others do. Owned by the machine's thread.
 *
 * A strand whose ops all succeed at once never parks. Now and then it must let the others run, and see that it was cancelled: when,
 * is said here. Whoever does something without parking asks, and yields where the answer is yes (rs_yield). A turn ends with a park.
 *
 * What a strand moves through a pipe or socket is work for another, so its turn ends after a number of ops or bytes. Writes to a
 * file wait for nobody, so there it is time that counts: ending such a turn early only makes one more strand need a stack at the
 * same time. A turn does not end while the strand holds a lock, if it can be helped: whoever wants the lock meanwhile queues up, and
 * from then on every unlock is a switch. It ends on the way to the next lock.
 */
#ifndef RINGSPUN_TURN_H
#define RINGSPUN_TURN_H

#include "ringspun/core/strand.h"

struct rs_machine;

typedef struct {
    uint32_t ops;               /* that the strand did without parking */
    uint32_t over : 1;          /* and that is enough */
    uint32_t quiet_writes : 31; /* of these ops, writes that are work for nobody: to files and to devices that are memory */
    uint64_t bytes;             /* that they moved */
    int64_t timed_from_ns;      /* 0: time does not count yet */
} rs_turn;

/* Counts one more op that may not park. True: before it the others are to run. */
bool rs_turn_ends(struct rs_machine *machine);

/* A turn ends, and the others are to run: what that raises before; RS_WAKE_VALUE: nothing. To give way is no wait, so a strand that
 * is cancelled goes on afterwards, for what it does may be its `ensure` block. But one that has met no wait for many turns meets its
 * cancellation here, once. Asked once a turn. */
rs_wake_kind rs_turn_refusal(struct rs_machine *machine);

/* The same before a look that does not wait: who looks again and again, and computes between, has nothing better to do. */
bool rs_turn_ends_at_look(struct rs_machine *machine);

/* True: before the running strand takes a lock (rs_lock_taken), the others are to run. */
bool rs_turn_ends_at_lock(const struct rs_machine *machine);

/* For a strand that runs before its caller goes on (rs_spawn_first): for the others the caller's turn has not ended with that, and
 * what it did before counts on. */
rs_turn rs_turn_pause(struct rs_machine *machine);
void rs_turn_go_on(struct rs_machine *machine, const rs_turn *paused);

#endif
