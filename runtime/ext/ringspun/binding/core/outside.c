/* outside: waits of simulated strands for something real: a real IO, or a child process. They have no op, so the loop polls them
 * (idle.c): before each jump of virtual time, so that a strand reads what another has written before virtual time goes on, and
 * repeatedly while nothing else can happen.
 */
#include "core.h"

#include <errno.h>

/* An end or an error makes a descriptor ready for a reader or writer, but not for one that waits for POLLPRI only. */
static bool descriptor_is_ready(const struct pollfd *descriptor) {
    if (descriptor->revents & (descriptor->events | POLLNVAL)) return true;
    return descriptor->revents && descriptor->events != POLLPRI;
}

static bool one_is_ready(const rsb_outside_wait *wait) {
    if (poll(wait->polls, (nfds_t)wait->count, 0) < 0) return errno != EINTR;
    for (long at = 0; at < wait->count; at++) {
        if (descriptor_is_ready(&wait->polls[at])) return true;
    }
    return false;
}

static bool child_has_changed(const rsb_outside_wait *wait) {
    siginfo_t info = {.si_pid = 0};
    int changes = WEXITED | (wait->options & (WUNTRACED | WCONTINUED));
    if (waitid(wait->type, wait->id, &info, changes | WNOHANG | WNOWAIT) != 0) return errno != EINTR;
    return info.si_pid != 0;
}

static bool is_ready(const rsb_outside_wait *wait) { return wait->polls ? one_is_ready(wait) : child_has_changed(wait); }

static void leave_list(rsb_machine *machine, rsb_outside_wait *wait) {
    for (rsb_outside_wait **at = &machine->outside_waits; *at; at = &(*at)->next) {
        if (*at != wait) continue;
        *at = wait->next;
        return;
    }
}

void rsb_wait_outside(rsb_machine *machine, rsb_outside_wait *wait) {
    rsb_check_stack();
    wait->strand = rs_running(&machine->engine);
    wait->next = machine->outside_waits;
    machine->outside_waits = wait;
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_BLOCK, 0, RS_NEVER, NULL, NULL, NULL);
    leave_list(machine, wait);
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
}

bool rsb_wake_outside(rsb_machine *machine) {
    bool woken = false;
    for (rsb_outside_wait *wait = machine->outside_waits; wait; wait = wait->next) {
        if (wait->strand->state != RS_STRAND_PARKED || !is_ready(wait)) continue;
        rs_unblock(&machine->engine, wait->strand);
        woken = true;
    }
    return woken;
}
