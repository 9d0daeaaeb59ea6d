/* scheduler: what the files of the fiber scheduler's hooks share. */
#ifndef RINGSPUN_SCHEDULER_H
#define RINGSPUN_SCHEDULER_H

#include "binding/io/io.h"

#include <ruby/fiber/scheduler.h>

/* The machine that serves a hook of this thread. NULL: nothing may park now, because a signal handler or a finalizer has called
 * while the machine switches, or this is a worker thread: what the hook is for is done by a plain call, which blocks the thread. */
rsb_machine *rsb_hook_machine(VALUE self);
/* The same for what only this thread's strands can do: raises where nothing may park, and names `what` there. */
rsb_machine *rsb_parking_machine(VALUE self, const char *what);

/* When a number of seconds as Kernel#sleep takes it is over, never for nil. */
int64_t rsb_interval_end(rsb_machine *machine, VALUE seconds);

/* Runs the block with the fiber marked as blocking, so that no hook is called. */
VALUE rsb_blocking(rb_block_call_func_t body, VALUE argument);

/* For a strand that waits on what another closes. */
bool rsb_is_open_as(VALUE io, int fd);
NORETURN(void rsb_fail_closed(void));
/* In a simulation: what is waited for is outside, where its time does not pass. */
NORETURN(void rsb_fail_outside_time(const char *hook));

extern VALUE rsb_cScheduler;

void rsb_init_scheduler(void);
void rsb_init_scheduler_io(void);
void rsb_init_scheduler_select(void);
void rsb_init_scheduler_calls(void);

#endif
