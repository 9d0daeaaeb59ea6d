/* fibers: finds the strand of a fiber. Only the machine's thread calls these functions, or another one that holds the GVL.
 *
 * There is a table of fibers only while somebody asks, so that strands of programs that never do pay nothing for it. It is made by
 * the first question, and given up when many strands have entered a fiber and nobody has asked. Nothing is taken out of it: an entry
 * counts only as long as its strand lives and still names that fiber.
 */
#ifndef RINGSPUN_FIBERS_H
#define RINGSPUN_FIBERS_H

#include "binding/binding.h"

/* The strand that runs in that fiber, or waits there; NULL: none. */
rsb_strand *rsb_strand_of_fiber(rsb_machine *machine, VALUE fiber);

void rsb_fibers_enter(rsb_machine *machine, const rsb_strand *strand, VALUE fiber);
void rsb_fibers_forget(rsb_machine *machine);

/* The strand names another fiber from now on. */
static inline void rsb_note_fiber(rsb_machine *machine, const rsb_strand *strand, VALUE fiber) {
    if (RS_UNLIKELY(machine->fibers != NULL)) rsb_fibers_enter(machine, strand, fiber);
}

#endif
