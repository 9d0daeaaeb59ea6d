/* splice: bytes between descriptors that never come into the program, one bound after the other. What waits is the readiness of one
 * side (RS_OP_POLL), which takes nothing: cancelled or out of time, nothing is lost. */
#ifndef RINGSPUN_BINDING_SPLICE_H
#define RINGSPUN_BINDING_SPLICE_H

#include "io.h"
#include "engine/kernel/splice.h"

typedef struct {
    rsb_machine *machine;
    VALUE from, to;
    rs_request request;
    uint32_t from_generation, to_generation;
    bool offload;               /* a file is among them */
    int64_t deadline_ns;
    const char *what;
} rsb_mover;

/* For descriptors of which the program says that they are open. */
rsb_mover rsb_mover_of(rsb_machine *machine, uint8_t kind, VALUE from, VALUE to, const char *what);

/* After others have run: raises unless both numbers still mean what they meant. */
void rsb_mover_check(const rsb_mover *mover);

/* False: a splice between those would keep the thread. */
bool rsb_mover_fits(const rsb_mover *mover);

/* So many bytes at most. What was moved, 0 at the end, RSB_TIME_IS_UP or -errno; raises what cancels the strand, and a
 * ClosedError when one of the two has been closed while it waited. */
int64_t rsb_move(rsb_mover *mover, uint64_t len);

/* The same, or -EAGAIN when it would wait; for what is no file. */
int64_t rsb_move_at_once(rsb_mover *mover, uint64_t len);

NORETURN(void rsb_fail_move(const rsb_mover *mover, int64_t result));

#endif
