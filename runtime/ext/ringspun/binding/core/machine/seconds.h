/* seconds: spans of time that callers pass, in seconds, as nanoseconds and back, and deadlines by a machine's clock. Called
 * with the GVL held. */
#ifndef RINGSPUN_BINDING_CORE_SECONDS_H
#define RINGSPUN_BINDING_CORE_SECONDS_H

#include "binding/binding.h"

/* The one reading of a span of time that a caller passes: a real number, or what Kernel#sleep takes besides, which answers to
 * divmod, as an ActiveSupport::Duration does. Returns a plain number; nil for all else, and for NaN. */
VALUE rsb_number_of_seconds(VALUE seconds);
/* The same for a limit, which has passed when it is negative: that is 0. Raises a UsageError that names `what` for what is no
 * span of time. RS_NEVER where that is more nanoseconds than an int64_t holds. */
int64_t rsb_seconds_to_ns(VALUE seconds, const char *what);
/* The same for a setting: a negative one is refused. */
int64_t rsb_span_to_ns(VALUE seconds, const char *what);
/* As Kernel#sleep and Mutex#sleep take it, with their errors. */
int64_t rsb_interval_ns(VALUE seconds);
/* As Thread#join, Queue#pop and Timeout.timeout take it: a negative number is 0; nil and infinity are no limit. */
int64_t rsb_limit_ns(VALUE seconds);
/* nil: no limit. */
int64_t rsb_timeout_ns(VALUE seconds);

/* In nanoseconds. */
#define RSB_SECOND_NS INT64_C(1000000000)
#define RSB_MILLISECOND_NS INT64_C(1000000)

/* The way back: a Float of seconds, a struct timespec, and milliseconds as poll(2) takes them: rounded up, RS_NEVER is -1. */
VALUE rsb_seconds(int64_t ns);
static inline struct timespec rsb_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = ns / RSB_SECOND_NS, .tv_nsec = ns % RSB_SECOND_NS};
}
int rsb_milliseconds(int64_t ns);

/* The deadline after that delay from now; `machine` is NULL on a thread that has none. */
static inline int64_t rsb_deadline_after(rsb_machine *machine, int64_t delay_ns) {
    if (delay_ns == RS_NEVER) return RS_NEVER;
    return rs_deadline_after(machine ? rs_now(machine->engine) : rs_clock_ns(), delay_ns);
}
/* nil: never. */
int64_t rsb_deadline(rsb_machine *machine, VALUE seconds, const char *what);

#endif
