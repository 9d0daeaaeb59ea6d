/* entry: an op's request as an entry of the submission ring. Owns nothing; the entry is the caller's.
 *
 * Addresses in it are the op's: its memory stays where it is until the terminal completion.
 */
#ifndef RINGSPUN_URING_ENTRY_H
#define RINGSPUN_URING_ENTRY_H

#include "backend/retry.h"
#include "backend/uring/abi.h"

/* What this backend has of an op. */
typedef struct {
    rs_retry_place retry;
    /* What is asked in place of the plain request. */
    bool for_readiness : 1;     /* a poll, after which we try ourselves */
    bool by_worker : 1;         /* by a thread of the kernel's, without a first try on ours */
    bool by_recv : 1;           /* a read, by what sockets have for it */
    bool by_send : 1;           /* and a write */
    bool poll_first : 1;        /* without a first try, for we have just had ours */
    bool from_pool : 1;         /* into whichever buffer the kernel takes when bytes have come */
    bool moves_position : 1;    /* a write to a file, at the descriptor's own position */
    bool is_of_others : 1;      /* it counts in `others` */
    /* Where it is. None of these: in the kernel. */
    bool waits_for_entry : 1;   /* in `line`: the ring was full, or it is handed over with others */
    bool waits_behind : 1;      /* another op on the same side of the descriptor came before */
    bool has_side : 1;          /* of its descriptor: those that come later wait behind it */
    bool cancel_waits_for_entry : 1;
    bool cancel_missed : 1;     /* in `missed` */
    /* The ring may have refused it. */
    bool asks : 1;              /* in its place the kernel is asked whether the ring does such things */
    bool asked : 1;             /* it was: once is enough */
    int32_t doubted;            /* asks: the answer to the op itself, -errno */
    int64_t position;           /* moves_position: where it was before */
} uring_op;

_Static_assert(sizeof(uring_op) <= sizeof(((rs_op *)0)->of_backend), "an op has room for it");

static inline uring_op *uring_of(const rs_op *op) { return (void *)op->of_backend; }

uint8_t uring_opcode(uint32_t kind);

/* The same for one about our own stream that nobody has tried. */
uint8_t uring_opcode_untried(const rs_machine *machine, const rs_request *request);

/* Decides what is asked for an op that was tried in vain, or not at all. `poll_first`: the kernel knows of it. */
void uring_choose_way(rs_machine *machine, rs_op *op, bool poll_first);

/* Looked up for a descriptor of others. */
rs_fd_kind uring_kind_now(rs_machine *machine, const rs_op *op);

/* What the op as it is chosen now asks the ring for. */
uint8_t uring_opcode_now(const rs_op *op);

/* It waits for readiness from now on, and then we try ourselves. */
void uring_choose_readiness(rs_op *op);

/* Into a cleared entry. */
void uring_fill(uring_sqe *sqe, rs_op *op);

/* The kernel has written a part, because of an error, with which the next write ends. It may have left the position where it was,
 * and then the rest would be written over the part. */
void uring_correct_position(const rs_op *op, int64_t written);

#endif
