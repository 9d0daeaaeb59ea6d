/* sync: the data under a Ringspun Mutex, Semaphore, Condition or Barrier. Not embeddable in its object: waiting strands
 * point at the list. It belongs to the machine that used it first, until that machine is closed. */
#ifndef RINGSPUN_SYNC_H
#define RINGSPUN_SYNC_H

#include "binding/binding.h"

/* What a strand in a list waits with: which list it is. */
typedef enum {
    RSB_FOR_NOTHING, RSB_FOR_MUTEX, RSB_FOR_SEMAPHORE, RSB_FOR_CONDITION, RSB_FOR_BARRIER, RSB_FOR_ITEM, RSB_FOR_PLACE,
    RSB_FOR_CLOSE, RSB_FOR_ACCEPT_QUEUE, RSB_FOR_ROOM, RSB_FOR_SELECT, RSB_FOR_KINDS
} rsb_for;

typedef struct {
    VALUE machine;
    rs_list waiters;
    rs_id owner;                /* mutex */
    rs_source for_permits;      /* semaphore: watches of selectors */
    long count;                 /* semaphore: free permits */
    long limit;                 /* semaphore: all permits; barrier: parties */
} rsb_sync;

/* That strand ends: the mutexes that it still holds go to who waits for them. */
void rsb_give_up_locks(rsb_machine *machine, rs_id owner);

/* Binds an object to the machine that uses it, or raises. True: it belonged to one that is gone, and who held it or waited
 * in it went with that. */
bool rsb_bind(VALUE self, VALUE *owner, rsb_machine *machine);

/* initialize_copy of what strands wait in. */
NORETURN(VALUE rsb_refuse_copy(VALUE self, VALUE original));

/* `timeout:` out of an options hash, or nil. */
VALUE rsb_timeout_option(VALUE options);

#endif
