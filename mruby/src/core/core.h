/* core: machines, strands and scopes as objects; switching, waiting and raising; checks of arguments. This is what other rooms may use
 * of it. The state owns its machines (machine.h), a machine its strands' values (kept_alive.h), its fibers (workers.h) and what other
 * rooms keep for it (part.h). All of it is the state's thread's.
 *
 * A strand runs on a worker fiber, whose body is bytecode (WORKER in mrblib), and is switched to by straight transfer (switch.c).
 *
 * A method that waits is a C function whose last act is rsm_park or rsm_next: what comes after the wait is the strand's epilogue,
 * which whoever switches to the strand calls when mrb->c is the strand's already. So an epilogue may raise.
 */
#ifndef RINGSPUN_MRUBY_CORE_H
#define RINGSPUN_MRUBY_CORE_H

#include "kept_alive.h"
#include "machine.h"
#include "part.h"
#include "turn.h"

static inline rsm_strand *rsm_running(rsm_machine *machine) { return rs_strand_user(rs_running(machine->engine)); }

/* What a strand of Machine#spin belongs to: the innermost run around the running strand, else the root. */
static inline rs_scope *rsm_run_scope(rsm_machine *machine) {
    rs_scope *run = rs_scope_run_here(machine->engine);
    return run ? run : rs_strand_own(rs_root(machine->engine));
}

/* The engine has made no strand: there are as many as there may be, or no memory for one. */
mrb_noreturn void rsm_fail_strand_limit(mrb_state *mrb, const rsm_machine *machine);

/* Whether the running method was given nothing. Callers that hand on what they were given may say so with empty ones. */
static inline bool rsm_is_plain(mrb_state *mrb) { return mrb_get_argc(mrb) == 0 && mrb->c->ci->nk == 0; }

/* A variable of an object of ours, also of one that the program has frozen. */
static inline void rsm_force_variable(mrb_state *mrb, mrb_value object, mrb_sym name, mrb_value value) {
    mrb_obj_iv_set_force(mrb, mrb_obj_ptr(object), name, value);
}

/* As an Integer; as a Float where it does not fit. */
static inline mrb_value rsm_integer(mrb_state *mrb, uint64_t number) {
    return number <= (uint64_t)MRB_INT_MAX ? mrb_int_value(mrb, (mrb_int)number) : mrb_float_value(mrb, (mrb_float)number);
}

static inline struct mrb_context *rsm_context_of(mrb_value fiber) { return ((struct RFiber *)mrb_ptr(fiber))->cxt; }

/* --- errors.c --- */

/* A class of ours: "UsageError" and the like. */
struct RClass *rsm_class(mrb_state *mrb, const char *name);

/* The method of that name of a class of ours, which is bytecode of mrblib. */
struct RProc *rsm_method_of(mrb_state *mrb, const char *class_name, const char *name);

/* A new one of that class of ours. */
mrb_value rsm_error(mrb_state *mrb, const char *class, const char *message);

/* --- arguments.c --- */

/* An Integer within these limits, or a UsageError about `what`. */
int64_t rsm_int_arg(mrb_state *mrb, mrb_value value, int64_t min, int64_t max, const char *what);
/* That of an `initialize` with one argument: Class#new hands on an empty Hash of options, which mrb_get_arg1 takes for one. */
mrb_value rsm_only_arg(mrb_state *mrb);
/* The block of a method that takes nothing else, or a UsageError. */
mrb_value rsm_block_arg(mrb_state *mrb, const char *method);
void rsm_check_string(mrb_state *mrb, mrb_value value, const char *what);

/* --- raise.c --- */

/* Raises the error in that strand where it waits, or will wait. `first`: it runs next. */
void rsm_deliver(mrb_state *mrb, rsm_machine *machine, rs_strand *strand, mrb_value error, bool first);

/* The error is not raised any more there. */
void rsm_undeliver(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, mrb_value error);

/* The error that has ended a wait; nil for RS_WAKE_VALUE. */
mrb_value rsm_wake_error(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind);

/* Raises it. */
void rsm_raise_wake(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind);

/* Raises the error by which another strand or evaluation has ended. In place of a TerminatedError a strand that is cancelled itself
 * gets Cancelled, so that it does not matter which of the two ends first. */
mrb_noreturn void rsm_raise_result(mrb_state *mrb, rsm_machine *machine, mrb_value error);

/* --- boundary.c --- */

/* Raises where the running strand may not wait now, because a C function of the virtual machine lies between; to be called before
 * the wait has begun. */
void rsm_check_boundary(mrb_state *mrb);

/* The fiber that the running strand began on. */
const struct mrb_context *rsm_first_context(mrb_state *mrb);

/* --- switch.c --- */

/* That strand, which ran until now, has begun to park, and waits from here on. */
mrb_value rsm_park(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rsm_epilogue epilogue);

/* That strand, which ran until now, waits while `first` begins, which runs by the engine's word already. */
mrb_value rsm_run_first(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_strand *first, rsm_epilogue epilogue);

/* Goes on with the strand whose turn it is. */
mrb_value rsm_next(mrb_state *mrb, rsm_machine *machine);

/* --- wait.c --- */

/* nil: never. Errors name the argument by `what`. */
int64_t rsm_deadline(mrb_state *mrb, rsm_machine *machine, mrb_value seconds, const char *what);

/* The running strand waits in that list. If this is refused, the epilogue is called at once. */
mrb_value rsm_wait_in(mrb_state *mrb, rsm_machine *machine, rs_list *list, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns,
                      rsm_epilogue epilogue);

/* The class Machine. */
struct RClass *rsm_init_machine(mrb_state *mrb, struct RClass *module);
void rsm_init_errors(mrb_state *mrb, struct RClass *module);
void rsm_init_scope(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_strand(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_wait(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_simulation(mrb_state *mrb, struct RClass *module);

#endif
