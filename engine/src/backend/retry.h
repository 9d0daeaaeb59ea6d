/* retry: ops for which the kernel has no notice. A Unix socket whose listener's queue is full cannot connect, and counts as
 * ready all the time, as does one that sends to somebody whose queue is full; all that is left is to try again. Owned by the
 * machine's thread; one for each backend that needs it.
 *
 * https://man7.org/linux/man-pages/man2/connect.2.html (EAGAIN)
 * https://github.com/torvalds/linux/blob/v6.18/net/unix/af_unix.c (unix_poll, unix_dgram_poll)
 *
 * What such a backend has of an op (rs_op.of_backend) begins with an rs_retry_place.
 */
#ifndef RINGSPUN_RETRY_H
#define RINGSPUN_RETRY_H

#include "ops/op_life.h"

typedef struct {
    uint32_t next;              /* op index + 1 */
    bool waits;
} rs_retry_place;

typedef struct {
    uint32_t first;             /* op index + 1 */
} rs_retry;

static inline rs_retry_place *rs_retry_place_of(const rs_op *op) { return (void *)op->of_backend; }

static inline bool rs_retry_has(const rs_op *op) { return rs_retry_place_of(op)->waits; }

/* Whether an op that would wait although its descriptor was ready is one of those. */
bool rs_retry_fits(const rs_op *op);

/* The op is tried again a little later. */
void rs_retry_later(rs_machine *machine, rs_retry *retry, rs_op *op);
void rs_retry_forget(rs_machine *machine, rs_retry *retry, rs_op *op);

/* Calls `again` for each op whose time has come; false puts it off once more. */
void rs_retry_serve(rs_machine *machine, rs_retry *retry, bool (*again)(rs_machine *machine, rs_op *op));

#endif
