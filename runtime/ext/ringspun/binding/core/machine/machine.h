/* machine: the machine of a thread, and what asks for one. A machine belongs to the Ruby thread that made it. With it comes all that
 * knows no strand yet: errors, arguments, memory, spans of time, parts. This is what other rooms may use of it; what only core
 * uses is in inner.h.
 *
 * Each file of this room calls only those before it here:
 *   errors memory values seconds limits part faults options pinned fibers runners machine
 * What one of them needs of a later one, that one registers: as a part (part.h), or for the engine (rsb_driver). */
#ifndef RINGSPUN_BINDING_CORE_MACHINE_H
#define RINGSPUN_BINDING_CORE_MACHINE_H

#include "binding/binding.h"
#include "binding/cruby/cruby.h"
#include "errors.h"
#include "fibers.h"
#include "part.h"
#include "seconds.h"

extern VALUE rsb_cMachine;

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
    return !rs_program_runs(machine->engine);
}
/* Before a machine is asked for something outside of a wait: in a forked child it first forgets the strands of the parent. */
static inline void rsb_notice_fork(rsb_machine *machine) {
    if (RS_UNLIKELY(rsb_forks != machine->fork_count) && machine->open && rsb_existing() == machine) rsb_after_fork(machine);
}
/* The strand that runs. */
static inline rsb_strand *rsb_running(rsb_machine *machine) { return rs_strand_user(rs_running(machine->engine)); }

/* --- memory.c --- */

/* Raises NoMemoryError. */
NORETURN(void rsb_fail_memory(void));
/* malloc has refused that many bytes: runs the garbage collector, after which it may have them. */
void rsb_collect_for(size_t size);
/* These raise NoMemoryError where there is no memory. The caller frees it, also when something raises before (rb_ensure). */
void *rsb_alloc(size_t size);
void *rsb_realloc(void *old, size_t size);

/* --- limits.c --- */

unsigned long long rsb_proc_number(const char *path);
/* Whether the process may open another descriptor. */
bool rsb_descriptors_left(void);

/* --- values.c --- */

/* `inspect` for messages: for any object, also one without that method, and cut where it is long. */
VALUE rsb_inspect(VALUE object);

/* Raises a UsageError that names `what` unless it is an Integer from min to max. */
int64_t rsb_integer(VALUE value, int64_t min, int64_t max, const char *what);

/* rb_get_kwargs for options that are all optional; the caller has filled `given` with Qundef. Quicker than that, and quickest for
 * the first of the names. */
void rsb_options(VALUE options, int count, const ID *names, VALUE *given);

/* Raises unless a block was given. Called first, so that nothing has been done by then. */
void rsb_need_block(const char *method);

/* `timeout:` out of an options hash, or nil. */
VALUE rsb_timeout_option(VALUE options);

void rsb_init_errors(void);
void rsb_init_values(void);
void rsb_init_pinned(void);
void rsb_init_machine(void);
void rsb_init_seconds(void);
void rsb_init_runners(void);

#endif
