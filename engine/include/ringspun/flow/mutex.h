/* mutex: a lock, of which one strand is the owner. Owned by the machine's thread. Zeroed memory is a free one.
 *
 * Hand-over: a strand that frees the lock gives it to the first waiter in the same step that wakes it. A waiter that was cancelled or
 * timed out is not in the list any more, so the lock is never given to a strand that does not wait. A waiter keeps what it was given,
 * even if it is cancelled before it runs. The lock of a strand that has ended is free.
 *
 * A strand that cannot take it waits in `waiters` (RS_WAIT_MUTEX), and says afterwards how that ended (rs_mutex_waited).
 */
#ifndef RINGSPUN_MUTEX_H
#define RINGSPUN_MUTEX_H

#include "ringspun/core/machine.h"

typedef struct rs_mutex {
    rs_list waiters;
    rs_id owner;                /* RS_NO_ID: it is free */
} rs_mutex;

/* Its owner and those who waited are of a machine that has gone. */
static inline void rs_mutex_forget(rs_mutex *mutex) { *mutex = (rs_mutex){0}; }

bool rs_mutex_is_locked(const rs_machine *machine, const rs_mutex *mutex);

/* By the running strand. */
bool rs_mutex_is_mine(const rs_machine *machine, const rs_mutex *mutex);

/* For the running strand, which has the lock now; false: it is locked, perhaps by that strand itself. */
bool rs_mutex_take(rs_machine *machine, rs_mutex *mutex);

/* After a wait: whether the running strand has the lock. After a timeout it tries once more: if the machine was late, the timer has
 * fired before the strand ran that has unlocked it. */
bool rs_mutex_waited(rs_machine *machine, rs_mutex *mutex, rs_wake_kind kind);

/* The first waiter has it now. False: the running strand does not have it. */
bool rs_mutex_give(rs_machine *machine, rs_mutex *mutex);

/* A strand takes a mutex again that it has given up for a wait, however that ended: its caller will unlock it. Only the end of a
 * deadlock interrupts these waits, which are shielded. The first time it cancels all strands, so the one that holds the mutex unwinds
 * and unlocks it. The second time the others wait for this strand, so it goes on without the mutex. */
typedef struct {
    rs_wake_kind kind;          /* what ended the wait for which the mutex was given up, and what became of that since */
    uint32_t interrupts;
} rs_relock;

/* True: it is to wait, shielded, in the mutex's list, and then call rs_relock_waited. */
bool rs_relock_waits(rs_machine *machine, rs_mutex *mutex, rs_relock *relock);
void rs_relock_waited(rs_relock *relock, rs_wake_kind kind);

#endif
