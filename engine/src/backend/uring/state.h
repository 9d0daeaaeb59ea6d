/* state: what the files of the backend on io_uring share. */
#ifndef RINGSPUN_URING_STATE_H
#define RINGSPUN_URING_STATE_H

#include "backend/lost.h"
#include "backend/op_line.h"
#include "backend/retry.h"
#include "backend/uring/entry.h"
#include "backend/uring/pool.h"
#include "backend/uring/ring.h"
#include "backend/workers.h"
#include "core/machine.h"
#include "ops/descriptors.h"

/* Names of completions that belong to no op: an op's generation is never 0. */
#define NAME_IGNORED ((rs_id)0)
#define NAME_WAKE ((rs_id)1)
/* Beside the name of an op: the answer to its cancellation. */
#define NAME_CANCEL ((rs_id)1 << 31)

/* What this backend has of a descriptor. */
typedef struct {
    uint32_t sides;             /* on which an op has been asked for: 1 << rs_op_side */
} uring_descriptor;

_Static_assert(sizeof(uring_descriptor) <= sizeof(((rs_descriptor *)0)->of_backend), "a descriptor has room for it");

typedef struct {
    uring_ring ring;
    int wake;
    bool is_open;               /* the ring */
    int lost;                   /* what a call without which the ring is of no use has answered for good: -errno; 0: nothing */
    const char *lost_by;        /* which one */
    rs_fruitless looks, waits;
    bool wake_armed;
    uring_cqe *backlog;         /* completions that were taken out of the ring, and whose ops do not know of them yet */
    uint32_t backlog_len;
    uint32_t backlog_capacity;
    uint32_t backlog_served;
    rs_retry retry;
    rs_op_line line;            /* ops that wait for an entry, or whose cancellations do, in the order in which they came */
    rs_op_line next_on_side;    /* ops behind which others wait from now on */
    rs_op_line missed;          /* ops whose cancellation found nothing to cancel */
    rs_workers workers;
    uring_pool *pool;           /* made when the first op asks for it */
    bool no_pool;
    int64_t cancel_again_ns;    /* when it is asked again for those; 0: there are none */
    bool supported[URING_OP_LAST + 1]; /* as the kernel has said, and has not refused since */
    uint32_t others;            /* ops in the kernel for which a thread of its own may wait for ever */
    uint32_t others_most;       /* so many more threads the kernel may have by now */
    bool cancel_refused;        /* an entry cancels nothing: a call does it */
    bool wake_once;             /* a poll that lasts was refused: the one for the wake is asked for anew each time */
    bool poll_first;
    uint32_t in_vain;           /* looks with new entries that have brought nothing, one after the other */
    uint32_t idle_looks;        /* with new entries, and with nobody to run */
    bool left_to_sleep;         /* the last look has left them to the sleep */
} uring_state;

static inline uring_state *uring_state_of(rs_machine *machine) { return machine->backend_state; }

/* True: the kernel has the op, or gets it with the next submission. */
static inline bool uring_is_in_kernel(const rs_op *op) {
    const uring_op *own = uring_of(op);
    RS_CHECK(own->waits_for_entry + own->waits_behind + own->retry.waits <= 1);
    bool elsewhere = own->waits_for_entry || own->waits_behind || own->retry.waits;
    return op->state == RS_OP_SUBMITTED && !op->offloaded && !elsewhere;
}

/* --- exchange.c --- */

/* From the ring into the backlog, as far as there is memory for more. */
void uring_fetch(uring_state *state);

/* Calls that until it is no longer answered EBUSY, or the ring is lost. */
void uring_ask(uring_state *state, int (*call)(uring_ring *ring));
void uring_flush(uring_state *state);
void uring_hand_over(uring_state *state);
void uring_lose_entry(uring_state *state, int answer);

/* NULL: the ring is full. */
uring_sqe *uring_next_entry(uring_state *state);

/* The poll by which others wake the machine. False: the ring is full. */
bool uring_arm_wake(uring_state *state);

/* --- submit.c --- */

void uring_limit_workers(rs_machine *machine, uring_state *state);
bool uring_takes_untried(const rs_machine *machine, const rs_request *request);
void uring_arm(rs_machine *machine, rs_op *op);
void uring_release(rs_machine *machine, rs_op *op);

/* False: the ring is full. */
bool uring_fill_entry(rs_machine *machine, rs_op *op);

/* Into the ring, or in line for a free entry. */
void uring_submit(rs_machine *machine, rs_op *op);

/* The op has ended. */
void uring_finish(rs_machine *machine, rs_op *op, int64_t result);

/* Without the ring's doing what the op is for: by a worker, or by readiness and a try. */
void uring_take_other_way(rs_machine *machine, rs_op *op);

/* --- refusal.c --- */

/* True: that answer may be a refusal of the ring's, and the kernel is asked. The op goes on. */
bool uring_doubts(rs_machine *machine, rs_op *op, int64_t result);

/* What the kernel says to that. True: the first answer is the op's own, and stands in `result`. False: the ring does no such things,
 * and the op goes on in another way. */
bool uring_is_own_answer(rs_machine *machine, rs_op *op, int64_t *result);

/* Asks the kernel to cancel an op (NULL: all), where an entry cannot. False: it has missed it. */
bool uring_cancel_by_call(rs_machine *machine, const rs_op *op);

/* --- cancel.c --- */

void uring_cancel(rs_machine *machine, rs_op *op);

/* The answer to a cancellation of that op; NULL: the op has ended. */
void uring_note_cancel(rs_machine *machine, rs_op *op, int32_t result);

/* Asks again for those that were missed, when it is time. */
void uring_cancel_again(rs_machine *machine);

#endif
