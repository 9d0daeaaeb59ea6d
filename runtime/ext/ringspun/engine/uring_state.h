/* uring_state: what the files of the backend on io_uring share. */
#ifndef RINGSPUN_URING_STATE_H
#define RINGSPUN_URING_STATE_H

#include "retry.h"
#include "uring_entry.h"
#include "uring_pool.h"
#include "uring_ring.h"
#include "workers.h"

/* Names of completions that belong to no op: an op's generation is never 0. */
#define NAME_IGNORED ((rs_id)0)
#define NAME_WAKE ((rs_id)1)
/* Beside the name of an op: the answer to its cancellation. */
#define NAME_CANCEL ((rs_id)1 << 31)

/* In op.backend_word, above those of uring_entry. */
#define WAITS_FOR_ENTRY ((uint64_t)1 << 35)     /* the ring was full */
#define CANCEL_WAITS_FOR_ENTRY ((uint64_t)1 << 36)
#define WAITS_FOR_TURN ((uint64_t)1 << 37)      /* another op on the same side of the descriptor came before */
#define HAS_TURN ((uint64_t)1 << 38)
#define CANCEL_MISSED ((uint64_t)1 << 42)

typedef struct {
    rs_id *names;
    uint32_t len;
    uint32_t capacity;
} name_list;

typedef struct {
    uring_ring ring;
    int wake;
    bool is_open;
    bool wake_armed;
    bool in_line;               /* some op waits for a free entry */
    uring_cqe *stash;           /* taken out of the ring and not yet told */
    uint32_t stash_len;
    uint32_t stash_capacity;
    uint32_t stash_told;
    rs_retry retry;
    name_list turns;            /* ops whose turn has come */
    rs_workers *workers;
    uring_pool *pool;           /* made when the first op asks for it */
    bool no_pool;
    int64_t cancel_again_ns;    /* when those that the kernel has missed are asked for again; 0: there are none */
    bool supported[URING_OP_LAST + 1];
    bool poll_first;
} uring_state;

static inline uring_state *uring_state_of(rs_machine *machine) { return machine->backend_state; }

static inline bool uring_is_unwanted(const rs_op *op) { return op->cancel != RS_WAKE_VALUE || op->closing; }

/* Into the ring, or in line for a free entry. */
void uring_submit(rs_machine *machine, rs_op *op);

/* The op has ended. */
void uring_finish(rs_machine *machine, rs_op *op, int64_t result);

/* What the kernel says of an op that is in it. */
void uring_tell(rs_machine *machine, rs_op *op, const uring_cqe *cqe);

/* One try of our own. False: the op goes on waiting. */
bool uring_try_again(rs_machine *machine, rs_op *op);

#endif
