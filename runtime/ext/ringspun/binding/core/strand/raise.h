/* raise: what a wait raises that ended without its value, for the running strand, and how an exception is sent to another. Called
 * by the machine's thread. */
#ifndef RINGSPUN_BINDING_CORE_RAISE_H
#define RINGSPUN_BINDING_CORE_RAISE_H

#include "binding/core/machine/machine.h"

void rsb_raise_wake(rsb_machine *machine, rs_wake_kind kind);
/* Raises what would refuse a wait of the running strand (rs_refusal), if anything does. */
void rsb_raise_refusal(rsb_machine *machine);
/* In the root: raises what was raised for the thread while a shield or a run kept it from being raised here, or its wait had ended
 * already. */
void rsb_raise_pending(rsb_machine *machine);
/* Leaves the hook: what was meant to end it is forgotten (`hook_error`). */
void rsb_leave_hook(rsb_machine *machine);
/* As `rsb_deliver`; a strand whose wait that ends runs before others that are ready. */
void rsb_deliver_first(rsb_machine *machine, rsb_strand *strand, VALUE exception);

/* Raises the error that such a result of an op is: -errno, or of the engine's own. */
NORETURN(void rsb_fail(int64_t result, const char *what, int fd));

void rsb_raise_in_root(rsb_machine *machine, VALUE error);

/* Raises the error by which another strand or evaluation has ended. In place of a TerminatedError a strand that is cancelled itself
 * gets Cancelled, so that it does not matter which of the two ends first. */
NORETURN(void rsb_raise_result(VALUE error));
/* Raises a result that is an exception. */
static inline VALUE rsb_raise_or_return(VALUE result) {
    if (RS_UNLIKELY(!RB_SPECIAL_CONST_P(result) && rb_obj_is_kind_of(result, rb_eException))) rsb_raise_result(result);
    return result;
}

#endif
