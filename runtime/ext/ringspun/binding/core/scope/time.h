/* time: deadlines by a machine's clock, and waits until one. Called by the machine's thread. */
#ifndef RINGSPUN_BINDING_CORE_TIME_H
#define RINGSPUN_BINDING_CORE_TIME_H

#include "binding/binding.h"

/* The deadline of the option `timeout:`, of an options Hash; and of the arguments of a method that takes no other option. */
int64_t rsb_timeout_deadline(rsb_machine *machine, VALUE options);
int64_t rsb_timeout_given(rsb_machine *machine, int argc, VALUE *argv);
static inline int64_t rsb_timeout_argument(rsb_machine *machine, int argc, VALUE *argv) {
    return RS_LIKELY(argc == 0) ? RS_NEVER : rsb_timeout_given(machine, argc, argv);
}

/* Answers how the sleep ended. The second raises what has ended it other than the time (RS_WAKE_TIMEOUT). */
rs_wake_kind rsb_sleep(rsb_machine *machine, int64_t deadline_ns);
void rsb_slept(rsb_machine *machine, rs_wake_kind kind);
/* rsb_sleep and rsb_slept in one. */
static inline void rsb_sleep_until(rsb_machine *machine, int64_t deadline_ns) {
    rsb_slept(machine, rsb_sleep(machine, deadline_ns));
}
/* The same for that long; 0 is a yield. */
void rsb_sleep_for(rsb_machine *machine, int64_t delay_ns);

/* Runs the body. `late`: the deadline has cancelled it, and the caller is to raise a TimeoutError. */
VALUE rsb_until(rsb_machine *machine, int64_t deadline_ns, VALUE (*body)(VALUE), VALUE argument, bool *late);
/* The same, where the deadline raises that (class or exception, message) once, at a wait inside. */
VALUE rsb_until_raised(rsb_machine *machine, int64_t deadline_ns, const VALUE *raises, VALUE (*body)(VALUE), VALUE argument);

#endif
