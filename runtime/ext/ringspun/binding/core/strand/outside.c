/* outside: waits of simulated strands for something real: a real IO, or a child process. They have no op, so the loop polls them
 * (idle.c, by the hooks of its part): before each jump of virtual time, so that a strand reads what another has written before
 * virtual time goes on, and repeatedly while nothing else can happen.
 */
#include "strand.h"

#include <errno.h>

static rsb_part part;

/* The list of the machine's waits begins there. */
static rsb_outside_wait **waits_of(const rsb_machine *machine) { return rsb_part_data(machine, &part); }

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
    for (rsb_outside_wait **at = waits_of(machine); *at; at = &(*at)->next) {
        if (*at != wait) continue;
        *at = wait->next;
        return;
    }
}

void rsb_wait_outside(rsb_machine *machine, rsb_outside_wait *wait) {
    rsb_check_stack();
    wait->strand = rs_running(machine->engine);
    wait->next = *waits_of(machine);
    *waits_of(machine) = wait;
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_BLOCK, 0, RS_NEVER, NULL, NULL, NULL);
    leave_list(machine, wait);
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
}

static bool wake_outside(rsb_machine *machine) {
    bool woken = false;
    for (rsb_outside_wait *wait = *waits_of(machine); wait; wait = wait->next) {
        if (!rs_strand_is(wait->strand, RS_STRAND_PARKED) || !is_ready(wait)) continue;
        rs_unblock(machine->engine, wait->strand);
        woken = true;
    }
    return woken;
}

static bool one_waits(const rsb_machine *machine) { return *waits_of(machine) != NULL; }

static void outside_forked(rsb_machine *machine, rsb_strand *survivor) { *waits_of(machine) = NULL; }

static rsb_part part = {.data_size = sizeof(rsb_outside_wait *), .forked = outside_forked, .waits_for_real_things = one_waits,
                        .wakes_by_real_things = wake_outside};

void rsb_init_outside(void) { rsb_register_part(&part); }
