/* scheduled: what a strand has begun by Fiber.schedule, for Scheduler#run inside a run. Owned by the machine's thread. A strand that ends
 * leaves what it has scheduled to the strand that has scheduled it; what nobody is left for goes on alone.
 */
#ifndef RINGSPUN_BINDING_CORE_SCHEDULED_H
#define RINGSPUN_BINDING_CORE_SCHEDULED_H

#include "binding/binding.h"

void rsb_scheduled_begins(rsb_strand *scheduler, rsb_strand *strand);

/* Waits until all that the running strand has scheduled has ended, and what that has scheduled in turn. */
void rsb_scheduled_wait(rsb_machine *machine);

void rsb_init_scheduled(void);

#endif
