/* machine: the machine of a thread, and what asks for one. A machine belongs to the Ruby thread that made it. */
#ifndef RINGSPUN_BINDING_CORE_MACHINE_H
#define RINGSPUN_BINDING_CORE_MACHINE_H

#include "binding/binding.h"

/* The functions that the engine calls. Files above machine.c put in theirs when the extension is loaded. */
extern rs_driver rsb_driver;

rsb_machine *rsb_current(void);                 /* this thread's machine, made on first use; its strand may wait now */
rsb_machine *rsb_machine_of(VALUE self);        /* checked: right thread, open, able to run now */
rsb_machine *rsb_machine_any_thread(VALUE self);

/* Closed, or its thread has ended without closing it: its strands will never run again. */
static inline bool rsb_is_gone(const rsb_machine *machine) { return !machine->open || machine->thread_ended; }

/* NULL when this thread has none. Asked by every call: one load where a Ruby thread keeps its native thread. On Ruby 3.3 it may
 * not in a ractor, nor with RUBY_MN_THREADS (Feature #19842): native threads that are shared never have a machine here. */
extern __thread rsb_machine *rsb_thread_machine __attribute__((tls_model("initial-exec")));
rsb_machine *rsb_machine_of_thread(VALUE thread);
rsb_machine *rsb_existing_of_moving_thread(void);
static inline rsb_machine *rsb_existing(void) {
    return RS_LIKELY(rsb_thread_machine) ? rsb_thread_machine : rsb_existing_of_moving_thread();
}
/* Binds an object to the machine that uses it, or raises. True: it belonged to one that is gone, and who held it or waited
 * in it went with that. */
bool rsb_bind(VALUE self, VALUE *owner, rsb_machine *machine);

/* initialize_copy of what strands wait in. */
NORETURN(VALUE rsb_refuse_copy(VALUE self, VALUE original));
void rsb_after_fork(rsb_machine *machine);

/* True while no strand runs its own code: no strand at all, or one that was switched to and is not back from its wait. */
static inline bool rsb_between_strands(const rsb_machine *machine) {
    return machine->engine.running == RS_NO_INDEX || machine->engine.runs->wait != RS_WAIT_NONE;
}
/* Before a machine is asked for something outside of a wait: in a forked child it first forgets the strands of the parent. */
static inline void rsb_notice_fork(rsb_machine *machine) {
    if (RS_UNLIKELY(rsb_forks != machine->fork_count) && machine->open && rsb_existing() == machine) rsb_after_fork(machine);
}

#endif
