#include "core/machine.h"
#include "ops/descriptors.h"
#include "ringspun/kernel/descriptor_kinds.h"
#include "kernel/wake.h"
#include "backend/lost.h"
#include "kernel/op_table.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The others are the kernel's words for later, and for a wait that has ended. */
bool rs_is_lost(int64_t answer) {
    if (answer >= 0) return false;
    switch (-answer) {
    case EINTR: case EAGAIN: case EBUSY: case ETIME: case ENOMEM: case EBADR: return false;
    default: return true;
    }
}

/* After as many answers in vain the thread naps between two of them. When those that mean later have gone on for a second as
 * well, no kernel will answer otherwise. Sooner it may: tests an_enter_without_memory_for_a_while and
 * an_enter_that_is_interrupted_often of test_uring.c. */
#define FRUITLESS_MAX 64
#define FRUITLESS_NS 1000000000
#define NAP_NS 2000000

/* Who was interrupted after that long has waited; a profiler's signals may come for ever. */
#define WAITED_NS 1000000

bool rs_is_lost_by_now(rs_fruitless *fruitless, int64_t answer) {
    if (RS_LIKELY(answer >= 0 || answer == -ETIME)) {
        fruitless->count = 0;
        return false;
    }
    if (rs_is_lost(answer)) return true;
    int64_t now_ns = rs_clock_ns();
    RS_CHECK(now_ns >= fruitless->at_ns);
    bool later = answer != -EINTR;
    if (!later && now_ns - fruitless->at_ns > WAITED_NS) fruitless->count = 0;
    if (fruitless->count++ == 0 || !later) fruitless->since_ns = now_ns;
    fruitless->at_ns = now_ns;
    return later && fruitless->count > FRUITLESS_MAX && now_ns - fruitless->since_ns >= FRUITLESS_NS;
}

void rs_nap_if_fruitless(rs_fruitless *fruitless, int wake, int64_t delay_ns) {
    RS_CHECK(delay_ns >= 0);
    if (RS_LIKELY(fruitless->count <= FRUITLESS_MAX)) return;
    rs_sleep_without(wake, delay_ns < NAP_NS ? delay_ns : NAP_NS);
    fruitless->at_ns = rs_clock_ns();
}

void rs_note_lost(rs_machine *machine, const char *call, int64_t answer) {
    RS_CHECK(answer < 0);
    snprintf(machine->refusal_text, sizeof(machine->refusal_text), "%s was answered %s", call, strerror((int)-answer));
}

/* A file that others opened is looked at, as that is all that can be asked about it. */
bool rs_op_does_without(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED);
    if (!rs_op_calls[op->request.kind].execute) return false;
    if (rs_op_kinds[op->request.kind].side == RS_SIDE_NONE) return true;
    rs_fd_kind kind = rs_descriptor_kind(rs_descriptors_in(machine), op->request.fd);
    if (kind == RS_FD_UNKNOWN) kind = rs_descriptor_classify(op->request.fd);
    return rs_fd_is_file(kind);
}

/* Where even that is refused: as often it looks for who has woken it. */
#define LOOK_NS 10000000

void rs_sleep_without(int wake, int64_t delay_ns) {
    RS_CHECK(delay_ns >= 0);
    struct timespec delay = {.tv_sec = delay_ns / 1000000000, .tv_nsec = delay_ns % 1000000000};
    struct pollfd descriptor = {.fd = wake, .events = POLLIN};
    int count = ppoll(&descriptor, 1, delay_ns == RS_NEVER ? NULL : &delay, NULL);
    if (count < 0 && errno != EINTR) {
        struct timespec nap = {.tv_nsec = delay_ns < LOOK_NS ? (long)delay_ns : LOOK_NS};
        nanosleep(&nap, NULL);
    }
    if (count > 0) rs_wake_clear(wake);
}
