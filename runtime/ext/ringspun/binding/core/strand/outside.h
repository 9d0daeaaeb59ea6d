/* outside: waits of simulated strands for something real; see outside.c. A wait lies on the stack of its strand, and is in the
 * machine's list while the strand is parked. */
#ifndef RINGSPUN_OUTSIDE_H
#define RINGSPUN_OUTSIDE_H

#include "binding/binding.h"

#include <poll.h>
#include <sys/wait.h>

typedef struct rsb_outside_wait {
    rs_strand *strand;
    struct rsb_outside_wait *next;
    struct pollfd *polls;       /* for one of these descriptors; NULL: for a child process */
    long count;
    idtype_t type;              /* which child, as waitid(2) takes it */
    id_t id;
    int options;
} rsb_outside_wait;

/* Parks until one of the descriptors is ready or the child has changed. The caller looks again: a wake may be spurious, or
 * another strand may have been faster. Raises what cancels or interrupts the strand. */
void rsb_wait_outside(rsb_machine *machine, rsb_outside_wait *wait);
void rsb_init_outside(void);

#endif
