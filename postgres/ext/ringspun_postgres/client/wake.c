#include "client/wake.h"

#include <sys/socket.h>
#include <unistd.h>

void rpg_wake(rpg_request *request) {
    rpg_lane *lane = request->lane;
    if (!NIL_P(request->thread)) {
        rb_thread_wakeup_alive(request->thread);
    } else if (RB_LIKELY(!lane->threads.active)) {
        ringspun->wake_here(request->waker, 0);
    } else {
        lane->threads.calls = true;
        if (!request->done || request->roused || request == lane->attendant || request == lane->listener) return;
        rpg_requests_append(&lane->threads.roused, request);
        request->roused = true;
    }
}

/* --- the threads' number of the socket --- */

void rpg_threads_close_number(rpg_lane *lane) {
    if (lane->threads.fd >= 0) close(lane->threads.fd);
    lane->threads.fd = -1;
}

/* A thread that waits there closes it itself. */
void rpg_threads_end(rpg_lane *lane) {
    if (lane->threads.receives) shutdown(lane->threads.fd, SHUT_RD);
    else rpg_threads_close_number(lane);
}

void rpg_threads_forget(rpg_lane *lane) {
    lane->threads.active = lane->threads.receives = lane->threads.calls = false;
    for (rpg_request *each = lane->threads.roused.first; each; each = each->next) each->parked = false;
}

void rpg_threads_free(rpg_lane *lane) {
    rpg_threads_close_number(lane);
    rpg_out_free(&lane->threads.in);
}
