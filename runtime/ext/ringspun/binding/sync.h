/* sync: the data under a Ringspun Mutex, Semaphore, Condition or Barrier. Not embeddable in its object: waiting strands
 * point at the list. It belongs to the machine that used it first, until that machine is closed. */
#ifndef RINGSPUN_SYNC_H
#define RINGSPUN_SYNC_H

#include "binding.h"

typedef struct {
    VALUE machine;
    rs_list waiters;
    rs_id owner;                /* mutex */
    long count;                 /* semaphore: free permits */
    long limit;                 /* semaphore: all permits; barrier: parties */
} rsb_sync;

/* That strand ends: the mutexes that it still holds go to who waits for them. */
void rsb_give_up_locks(rsb_machine *machine, rs_id owner);

/* Binds an object to the machine that uses it, or raises. */
void rsb_bind(VALUE self, VALUE *owner, rsb_machine *machine);

/* initialize_copy of what strands wait in. */
NORETURN(VALUE rsb_refuse_copy(VALUE self, VALUE original));

/* `timeout:` out of an options hash, or nil. */
VALUE rsb_timeout_option(VALUE options);

#endif
