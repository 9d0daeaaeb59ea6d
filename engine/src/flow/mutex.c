#include "flow/mutexes.h"
#include "core/machine.h"

bool rs_mutex_is_locked(const rs_machine *machine, const rs_mutex *mutex) {
    return mutex->owner != RS_NO_ID && rs_strand_find(&machine->strands, mutex->owner) != NULL;
}

bool rs_mutex_is_mine(const rs_machine *machine, const rs_mutex *mutex) {
    return mutex->owner == rs_strand_id(rs_runs(machine));
}

bool rs_mutex_take(rs_machine *machine, rs_mutex *mutex) {
    if (rs_mutex_is_locked(machine, mutex)) return false;
    rs_strand *strand = rs_runs(machine);
    mutex->owner = rs_strand_id(strand);
    rs_lock_taken(strand);
    return true;
}

bool rs_mutex_give(rs_machine *machine, rs_mutex *mutex) {
    if (RS_UNLIKELY(!rs_mutex_is_mine(machine, mutex))) return false;
    rs_lock_given(rs_runs(machine));
    mutex->owner = rs_list_wake_first(machine, &mutex->waiters, 0);
    return true;
}

bool rs_mutex_waited(rs_machine *machine, rs_mutex *mutex, rs_wake_kind kind) {
    if (kind == RS_WAKE_TIMEOUT) return rs_mutex_take(machine, mutex);
    if (kind != RS_WAKE_VALUE) return false;
    RS_ASSERT(rs_mutex_is_mine(machine, mutex));
    rs_lock_taken(rs_runs(machine));
    return true;
}

bool rs_relock_waits(rs_machine *machine, rs_mutex *mutex, rs_relock *relock) {
    bool is_mine = rs_mutex_is_mine(machine, mutex);
    if (is_mine) rs_lock_taken(rs_runs(machine));
    if (is_mine || rs_mutex_take(machine, mutex)) return false;
    if (relock->interrupts < 2) return true;
    relock->kind = RS_WAKE_CANCEL;
    return false;
}

void rs_relock_waited(rs_relock *relock, rs_wake_kind kind) {
    relock->interrupts++;
    if (kind != RS_WAKE_VALUE) relock->kind = kind;
}

/* The locks of a strand are only counted, because locking must be cheap and ending with a lock is a bug of the program. This finds
 * those with waiters through the waiters. */
static void hand_on(rs_machine *machine, const rs_strand *ended) {
    rs_id owner = rs_strand_id(ended);
    RS_EACH_STRAND(&machine->strands, strand) {
        if (strand->state != RS_STRAND_PARKED || strand->wait != RS_WAIT_MUTEX) continue;
        rs_mutex *mutex = (rs_mutex *)((char *)strand->waiter.list - offsetof(rs_mutex, waiters));
        if (mutex->owner == owner) mutex->owner = rs_list_wake_first(machine, &mutex->waiters, 0);
    }
}

const rs_part rs_mutexes_part = {.holder_ends = hand_on};
