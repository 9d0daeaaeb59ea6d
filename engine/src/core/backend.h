/* backend: the verbs by which the engine talks to a kernel. One shared test suite runs over every implementation.
 *
 * The loop calls those that look and sleep; op_life (ops/op_life.h) calls those about an op, which core knows by name alone.
 *
 *   open    prepares it; returns 0 or -errno
 *   close   gives everything back; no op is in flight but those that may be left (rs_op_may_be_left)
 *   arm     takes over a FILLED op, which it may complete at once (rs_op_complete); never fails otherwise
 *   cancel  asks for the end of a SUBMITTED op; its terminal completion may come before it returns, or later. No other
 *           op completes in there, for callers walk lists of ops
 *   poll    harvests what has completed, without sleeping
 *   peek    the same as a wait that is over at once, and as cheap as can be where nothing has come: true when something has, or
 *           a poll would hand something over. NULL: to look again and again is no use
 *   wait    sleeps until something completes, the deadline, or a wake; touches no strand and no op, so that the binding
 *           may release its interpreter lock around it; what it fetched is harvested by the next poll
 *   wake    ends a wait; the one verb that any thread may call
 *   release what an op of RS_REQUEST_ANY_BUFFER has brought is not needed any more. NULL: nothing to do
 *   leave   the machine's thread ends and it was not closed: no op in flight may touch memory any more when this returns, but for
 *           those that are in doubt, and no descriptor of its own is left open. Only close follows, from another thread. NULL: nothing
 *           to do
 *   forked  in a child process: gives back what is inherited, without touching what the parent still uses, and starts
 *           afresh. The ops are still those of the parent, and none is completed
 */
#ifndef RINGSPUN_BACKEND_H
#define RINGSPUN_BACKEND_H

#include "ringspun/core/base.h"

struct rs_machine;
struct rs_op;
struct rs_request;

typedef struct rs_backend {
    const char *name;
    const struct rs_platform *platform; /* what its descriptors belong to (ops/platform.h) */
    bool hints;                 /* an op costs less than a try in vain: what is known of a descriptor may save the try */
    bool simulated;             /* only its own events complete an op, the next at backend_deadline_ns */
    int64_t (*coarse_clock)(void); /* rs_clock_ns as it last ticked, for a fraction of the price */
    void (*give_way)(void);     /* lets others run that are ready on this processor; NULL where there is no peek */
    /* Whether it does that request as well where nobody has tried it (rs_ask). NULL: it does none of them so. */
    bool (*takes_untried)(const struct rs_machine *machine, const struct rs_request *request);
    int (*open)(struct rs_machine *machine);
    void (*close)(struct rs_machine *machine);
    void (*arm)(struct rs_machine *machine, struct rs_op *op);
    void (*cancel)(struct rs_machine *machine, struct rs_op *op);
    void (*poll)(struct rs_machine *machine);
    bool (*peek)(struct rs_machine *machine);
    void (*wait)(struct rs_machine *machine, int64_t deadline_ns);
    void (*wake)(struct rs_machine *machine);
    void (*release)(struct rs_machine *machine, struct rs_op *op);
    void (*leave)(struct rs_machine *machine);
    int (*forked)(struct rs_machine *machine);
} rs_backend;

#endif
