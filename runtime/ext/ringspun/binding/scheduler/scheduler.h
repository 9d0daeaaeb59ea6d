/* scheduler: Ringspun::Scheduler, the fiber scheduler. What its files share. */
#ifndef RINGSPUN_SCHEDULER_H
#define RINGSPUN_SCHEDULER_H

#include "binding/io/io.h"

#include <ruby/fiber/scheduler.h>

typedef struct {
    VALUE machine;              /* the machine that it serves; nil: none yet */
    bool own;                   /* that machine was made for it, and is closed with it */
    bool stays;                 /* it belongs to a Ringspun.run, which waits for its strands itself */
    bool closed;
} rsb_scheduler;

rsb_scheduler *rsb_scheduler_of(VALUE self);
/* It serves this thread's machine from now on. */
void rsb_scheduler_bind(VALUE self);

/* The machine that serves a hook of this thread. NULL: nothing may park now, because a signal handler or a finalizer has called
 * the hook while the machine switches, or this is a worker thread. The hook makes a plain call then, which blocks the thread. */
rsb_machine *rsb_hook_machine(VALUE self);
/* The same for hooks that cannot do without: raises an error with `what` instead of NULL. */
rsb_machine *rsb_parking_machine(VALUE self, const char *what);

/* The strand that waits in the hook `block` in that fiber; NULL: none does. */
rs_strand *rsb_blocked_in(rsb_machine *machine, VALUE fiber);

/* The deadline after a number of seconds, as Kernel#sleep takes it; nil: RS_NEVER. */
int64_t rsb_interval_end(rsb_machine *machine, VALUE seconds);

/* Runs the block in Fiber.blocking, so that CRuby calls no hook. */
VALUE rsb_blocking(rb_block_call_func_t body, VALUE argument);

/* True if the IO still has that descriptor. The second raises an IOError for an IO that another strand has closed. */
bool rsb_is_open_as(VALUE io, int fd);
NORETURN(void rsb_fail_closed(void));
/* In a simulation: raises for a wait with a limit for something real, because virtual time does not pass meanwhile. */
NORETURN(void rsb_fail_outside_time(const char *hook));

/* The kind of an IO's descriptor is looked up once, and kept in the IO; to ask the IO for it takes a tenth of a transfer. The third
 * tells the engine what is known, before a transfer. */
VALUE rsb_sort_look_up(rsb_machine *machine, VALUE io, int fd);
VALUE rsb_sort_of(rsb_machine *machine, VALUE io, int fd);
void rsb_sort_restore(rsb_machine *machine, VALUE sort, int fd);

extern VALUE rsb_cScheduler, rsb_fiber_class;

void rsb_init_scheduler(void);
void rsb_init_scheduler_close(void);
void rsb_init_scheduler_io(void);
void rsb_init_scheduler_sort(void);
void rsb_init_scheduler_select(void);
void rsb_init_scheduler_calls(void);

#endif
