#include "ringspun/flow/semaphore.h"

void rs_semaphore_forget(rs_semaphore *semaphore) {
    rs_list_forget(&semaphore->waiters);
    rs_source_drop(&semaphore->for_permits);
    semaphore->free = semaphore->permits;
}

bool rs_semaphore_give(rs_machine *machine, rs_semaphore *semaphore) {
    bool is_watched = rs_source_is_watched(&semaphore->for_permits);
    if (RS_UNLIKELY(is_watched)) {
        rs_watch *watch = rs_source_waiting(&semaphore->for_permits, rs_list_first(machine, &semaphore->waiters));
        if (watch) {
            rs_watch_serve(watch);
            return true;
        }
    }
    if (rs_list_wake_first(machine, &semaphore->waiters, 0) != RS_NO_ID) return true;
    if (semaphore->free == semaphore->permits) return false;
    semaphore->free++;
    if (RS_UNLIKELY(is_watched)) rs_source_ready(&semaphore->for_permits);
    return true;
}
