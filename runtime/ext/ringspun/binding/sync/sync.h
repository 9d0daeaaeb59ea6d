/* sync: the data under a Ringspun Mutex, Semaphore, Condition or Barrier. Not embeddable in its object: waiting strands
 * point at the list. It belongs to the machine that used it first, until that machine is closed. */
#ifndef RINGSPUN_SYNC_H
#define RINGSPUN_SYNC_H

#include "binding/binding.h"

typedef struct {
    VALUE machine;
    rs_list waiters;
    rs_id owner;                /* mutex */
    rs_source for_permits;      /* semaphore: watches of selectors */
    long count;                 /* semaphore: free permits */
    long limit;                 /* semaphore: all permits; barrier: parties */
} rsb_sync;

#endif
