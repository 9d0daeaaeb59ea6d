/* splice: bytes from one descriptor to another that never come into the program: splice(2), tee(2), copy_file_range(2). System
 * calls only; no state of its own. Any thread may call those without a machine.
 *
 * None of them waits for bytes or room: -EAGAIN says that there are none, and not on which of the two sides. Who asked waits for
 * the readiness of either (rs_splice_waits_for) and asks again: so what waits has taken nothing, and a cancellation loses nothing.
 * Only a file's disk may be slow; a splice with a file is for somebody who may wait.
 *
 * io_uring gives every splice to a thread of the kernel's: forwarding 400 MB from socket to socket by 128 KiB took 1.7 times the
 * CPU of trying and waiting for readiness. So it gets those with files alone.
 */
#ifndef RINGSPUN_SPLICE_H
#define RINGSPUN_SPLICE_H

#include "ringspun/ops/op_life.h"

typedef enum {
    RS_SPLICE_AT_ONCE,          /* a pipe, or a non-blocking socket */
    RS_SPLICE_FILE,
    RS_SPLICE_BLOCKING          /* neither: a splice to it would wait, whatever its flags say */
} rs_splice_sort;

/* System calls where the descriptor is not the machine's own. */
rs_splice_sort rs_splice_sort_of(rs_machine *machine, int fd);

int64_t rs_splice(const rs_request *request);
int64_t rs_tee(const rs_request *request);
int64_t rs_copy_range(const rs_request *request);

#endif
