/* outside: see outside.c. A wait lies on the stack of its strand, and is in the machine's list as long as that is parked. */
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

/* Parks; it may come back too early, and whoever was woken beside may have taken what there was. Raises what cancels or interrupts
 * the strand. */
void rsb_wait_outside(rsb_machine *machine, rsb_outside_wait *wait);
/* Makes ready the strands for which something has come; false: none. */
bool rsb_wake_outside(rsb_machine *machine);

#endif
