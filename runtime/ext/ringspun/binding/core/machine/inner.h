/* inner: what the rooms of core share of this one, and no room above core uses. */
#ifndef RINGSPUN_BINDING_CORE_MACHINE_INNER_H
#define RINGSPUN_BINDING_CORE_MACHINE_INNER_H

#include "machine.h"
#include "runners.h"

/* --- machine.c --- */

extern ID rsb_id_machine; /* the instance variable of a thread that has its machine */
void rsb_set_existing(rsb_machine *machine, VALUE thread);
/* No other thread may wake the machine from now on. True if none is about to do so. */
bool rsb_close_to_wakers(rsb_machine *machine);
/* The scope of the outermost run; outside of all, that of the strands that belong to none. */
static inline rs_scope *rsb_outermost_run(rsb_machine *machine) {
    return RS_UNLIKELY(machine->outermost->closed) ? &machine->outside : machine->outermost; /* closed: it is ending */
}

/* --- options.c --- */

extern bool rsb_whole_ticks; /* machines run in whole ticks (rs_machine_run_in_whole_ticks) */
void rsb_open_engine(rsb_machine *machine, VALUE options);
/* `what` names the system call that failed. */
NORETURN(void rsb_fail_to_open(rsb_machine *machine, int error, const char *what));

/* --- errors.c --- */

/* An error that ends the program and not only the strand. */
bool rsb_concerns_root(VALUE error);

/* --- pinned.c --- */

/* The machine's thread has ended, or the machine is closed: it stays for as long as its ops use memory of objects. Calls nothing
 * of Ruby's. */
void rsb_pin_if_used(rsb_machine *machine);
void rsb_unpin(rsb_machine *machine);

/* --- limits.c --- */

/* Names the limit that keeps CRuby from making a stack for a fiber; may raise. */
VALUE rsb_stack_limit(void);

/* --- faults.c --- */

uint64_t rsb_seed(VALUE seed);
void rsb_simulation_options(VALUE options, rs_options *chosen, struct rs_sim_faults *faults);

#endif
