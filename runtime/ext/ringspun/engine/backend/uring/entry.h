/* entry: an op's request as an entry of the submission ring. Owns nothing; the entry is the caller's.
 *
 * Addresses in it are the op's: its memory stays where it is until the terminal completion.
 */
#ifndef RINGSPUN_URING_ENTRY_H
#define RINGSPUN_URING_ENTRY_H

#include "ops/op_life.h"
#include "backend/uring/abi.h"

/* In op.backend_word, above what rs_retry uses: what is asked in place of the plain request. */
#define URING_FOR_READINESS ((uint64_t)1 << 33) /* a poll, after which we try ourselves */
#define URING_FOR_WORKER ((uint64_t)1 << 34)    /* by a thread of the kernel's, without a first try on ours */
#define URING_FOR_SOCKET ((uint64_t)1 << 39)    /* a read, by what sockets have for it */
#define URING_FROM_POOL ((uint64_t)1 << 41)     /* into whichever buffer the kernel takes when bytes have come */
#define URING_POLL_FIRST ((uint64_t)1 << 40)    /* without a first try, for we have just had ours */

uint8_t uring_opcode(uint32_t kind);

/* Which of these holds for an op that was tried in vain. `poll_first`: the kernel knows of it. */
uint64_t uring_way_of(rs_machine *machine, const rs_op *op, bool poll_first);

/* Looked up for a descriptor of others. */
rs_fd_kind uring_kind_now(rs_machine *machine, const rs_op *op);

/* Into a cleared entry. */
void uring_fill(uring_sqe *sqe, const rs_op *op);

#endif
