/* op: one request to the kernel (or to the simulated one), and the slab that holds those in flight. Owned by the
 * machine's thread; a worker thread has a copy of the request.
 *
 * States: FREE -> FILLED -> SUBMITTED -> TERMINAL -> FREE (with the next generation). An op owns every address that the
 * kernel may touch from FILLED to TERMINAL: `keep` names what the driver must keep alive and in place, `owned` is memory
 * of the op's own. After the terminal completion the slot is free as soon as the strand has taken the result, the owner has
 * heard of it, or at once where the op has become an orphan.
 *
 * What a cancelled op may have done decides how it is cancelled (rs_op_effect): a wait that consumes nothing ends at
 * once; where data may have moved or a descriptor may have been made, its strand stays parked until the terminal
 * completion, and completion wins.
 */
#ifndef RINGSPUN_ENGINE_OP_H
#define RINGSPUN_ENGINE_OP_H

#include "ringspun/core/link.h"
#include "core/slab.h"
#include "ringspun/ops/op.h"

struct rs_job;

/* Who has an op: the strand that waits for it, a write queue, nobody any more. Its functions find the owner itself in the op's
 * `context`, but for a strand. */
typedef struct rs_op_owner {
    bool keeps;                 /* it gives the op back itself; else the op is freed when it has completed */
    /* The op has ended. */
    void (*ended)(struct rs_machine *machine, struct rs_op *op, int64_t result);
    /* Whether others have closed the descriptor, so that its number may mean something else. NULL: the op's `identity` says it. */
    bool (*is_gone)(const struct rs_op *op);
    /* Of an op that lasts, and else NULL: it has brought one result and goes on; and another op waits behind it. */
    void (*brought)(struct rs_machine *machine, struct rs_op *op, int64_t result);
    void (*give_way)(struct rs_machine *machine, struct rs_op *op);
} rs_op_owner;

typedef enum { RS_OP_FREE, RS_OP_FILLED, RS_OP_SUBMITTED, RS_OP_TERMINAL } rs_op_state;

struct rs_op {
    RS_SLOT;
    rs_request request;
    uint8_t state;
    uint8_t cancel;             /* rs_wake_kind that asked for it to end; RS_WAKE_VALUE: nobody */
    bool closing;               /* its descriptor is being closed: a cancellation ends it with -EBADF */
    bool offloaded;             /* a worker has it, or will */
    bool in_doubt;              /* the kernel may still use its memory: `owned`, `keep` and the slot are never given back */
    uint64_t identity;          /* what the number meant at first, for one that goes on by number; 0: it cannot change unseen */
    int64_t result;
    rs_id strand;
    uint64_t ticket;
    uintptr_t keep;             /* the driver's object behind the request's addresses */
    uint32_t next;              /* of those on the same descriptor: index + 1 */
    uint32_t previous;
    _Alignas(8) char of_backend[24]; /* a struct of the backend's, in its own header; zero when the op is taken */
    const rs_op_owner *owner;
    void *context;              /* the owner's */
    rs_link link;               /* in rs_ops.targeted, where it has a target; else the owner's */
    struct rs_job *_Atomic job; /* the workers', set under their lock; NULL: none of them has it */
};

/* The one place where a state changes, but for a fork. */
static inline void rs_op_become(rs_op *op, rs_op_state state) {
    bool was_next = state == RS_OP_FREE ? op->state == RS_OP_TERMINAL || op->state == RS_OP_FILLED : op->state == state - 1;
    RS_ASSERT(was_next);
    op->state = (uint8_t)state;
}

/* It brings one result after the other. */
static inline bool rs_op_lasts(const rs_op *op) {
    RS_CHECK(op->owner != NULL);
    return op->owner->brought != NULL;
}

static inline bool rs_op_owner_is_gone(const rs_op *op) {
    RS_CHECK(op->owner != NULL);
    return op->owner->is_gone && op->owner->is_gone(op);
}

/* Memory for what comes, where there is no buffer for it: freed with the op. False: there is none, and the op ends with
 * RS_NO_MEMORY. */
static inline bool rs_op_lend(rs_op *op) {
    rs_transfer *transfer = &op->request.transfer;
    if (!(op->request.options & RS_REQUEST_ANY_BUFFER) || transfer->address) return true;
    RS_CHECK(op->request.owned == NULL);
    transfer->address = op->request.owned = rs_try_alloc_uncleared(transfer->len);
    return transfer->address != NULL;
}

static inline rs_id rs_op_id(const rs_op *op) { return rs_id_make(op->index, op->generation); }

/* The op of that name if it is in flight, else NULL. */
rs_op *rs_op_find(const rs_ops *ops, rs_id id);

#endif
