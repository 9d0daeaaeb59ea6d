/* await: how a strand waits for a result, with a limit, in a wait that may be resumed (ops/resume.h). Owned by the machine's thread.
 *
 * The driver switches between the two, and raises and returns what the outcome says.
 */
#ifndef RINGSPUN_AWAIT_H
#define RINGSPUN_AWAIT_H

#include "ringspun/ops/resume.h"

/* The running strand parks until it is woken through the list (of whom it waits for; NULL: none), its time is up, or it is resumed.
 * The ticket; 0: it must not wait now, as rs_park_begin says. */
uint64_t rs_await_begin(rs_machine *machine, rs_list *list, int64_t deadline_ns);

typedef enum {
    RS_AWAIT_LOOK,              /* the result is there, or else the time is up. If the machine is late both are so: then it counts */
    RS_AWAIT_RESUMED,           /* with the value that the driver keeps for the strand */
    RS_AWAIT_RAISES             /* what has ended or refused the wait is to be raised */
} rs_await_outcome;

/* Of the running strand, whose wait has ended, or was refused, like that. */
rs_await_outcome rs_await_end(rs_machine *machine, rs_wake_kind kind);

#endif
