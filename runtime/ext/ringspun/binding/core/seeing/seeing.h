/* seeing: what a machine shows of itself: its strands and counters (inspector), its trace, and what only a simulated one can do. It
 * calls the rooms before it, and nobody calls it but Ruby. */
#ifndef RINGSPUN_BINDING_CORE_SEEING_H
#define RINGSPUN_BINDING_CORE_SEEING_H

#include "binding/core/strand/strand.h"

void rsb_init_simulation(void);
void rsb_init_inspector(void);

#endif
