/* mutexes: the machine's part for them, which keeps nothing. */
#ifndef RINGSPUN_MUTEXES_H
#define RINGSPUN_MUTEXES_H

#include "core/part.h"
#include "ringspun/flow/mutex.h"

/* When a strand ends that holds some, their waiters get them. */
extern const rs_part rs_mutexes_part;

#endif
