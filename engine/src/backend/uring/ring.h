/* ring: one submission ring, one completion ring, and the three system calls. Knows entries, not ops. Owned by the
 * machine's thread; nothing here may be called from another one.
 *
 * The system calls go through a table, so that tests can put a kernel of their own below.
 */
#ifndef RINGSPUN_URING_RING_H
#define RINGSPUN_URING_RING_H

#include "ringspun/core/base.h"
#include "backend/uring/abi.h"

#include <stdatomic.h>

/* Each answers a result or -errno. */
typedef struct uring_system {
    int (*setup)(uint32_t entries, uring_params *params);
    int (*enter)(int fd, uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument, size_t size);
    int (*enregister)(int fd, uint32_t opcode, void *argument, uint32_t count);
} uring_system;

extern const uring_system uring_kernel;

typedef struct {
    uint32_t entries;           /* of the submission ring; halved until the kernel has memory for it */
    bool may_move;              /* the thread may go on as another thread of the kernel's */
    bool polled;                /* a thread of the kernel's watches for entries, so that none costs a system call */
    uint32_t poll_idle_ms;      /* how long it watches in vain before it sleeps; 0: as long as the kernel thinks */
    int32_t poll_cpu;           /* the processor that it keeps to; negative: any */
    uint64_t *system_calls;     /* where the ring counts them */
} uring_wishes;

typedef struct {
    const uring_system *system;
    int fd;
    uint32_t features;
    uint32_t setup_flags;
    void *rings;
    size_t rings_size;
    uring_sqe *sqes;
    size_t sqes_size;
    _Atomic uint32_t *sq_head, *sq_tail, *sq_flags;
    uint32_t sq_mask, sq_entries;
    uint32_t sq_filled;         /* our tail: entries up to here are filled, perhaps not yet shown to the kernel */
    _Atomic uint32_t *cq_head, *cq_tail;
    uint32_t cq_mask;
    const uring_cqe *cqes;
    uint64_t *system_calls;     /* counts those of io_uring_enter */
} uring_ring;

/* 0, or -errno with `why` filled: what was refused, and by which of the calls. */
int uring_ring_open(uring_ring *ring, const uring_system *system, const uring_wishes *wishes, char *why, size_t why_size);
void uring_ring_close(uring_ring *ring);

/* An answer by which a ring refuses something whatever it is about. Some ops themselves have these answers as well. */
bool uring_may_refuse(int64_t result);

/* Which opcodes the kernel knows: 0 or -errno. */
int uring_ring_probe(uring_ring *ring, bool supported[URING_OP_LAST + 1]);

/* Whether a receive from a Unix socket reports bytes that it leaves there, as the kernel does since 6.17. To try it would cost
 * five system calls. https://github.com/torvalds/linux/blob/v6.18/net/unix/af_unix.c (msg_get_inq) */
bool uring_reports_more_of_unix(void);

/* A cleared entry, or NULL when the ring is full. It is the kernel's with the next uring_ring_enter. */
uring_sqe *uring_ring_next(uring_ring *ring);

/* Entries that the kernel has not taken yet. */
static inline uint32_t uring_ring_pending(const uring_ring *ring) {
    return ring->sq_filled - atomic_load_explicit(ring->sq_head, memory_order_acquire);
}

static inline bool uring_ring_has_room(const uring_ring *ring) { return uring_ring_pending(ring) < ring->sq_entries; }

static inline bool uring_ring_has_completions(const uring_ring *ring) {
    return atomic_load_explicit(ring->cq_head, memory_order_relaxed) !=
           atomic_load_explicit(ring->cq_tail, memory_order_acquire);
}

/* The oldest completion, by copy; false when there is none. */
static inline bool uring_ring_take(uring_ring *ring, uring_cqe *cqe) {
    uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    RS_CHECK(atomic_load_explicit(ring->cq_tail, memory_order_relaxed) - head <= ring->cq_mask + 1);
    if (head == atomic_load_explicit(ring->cq_tail, memory_order_acquire)) return false;
    *cqe = ring->cqes[head & ring->cq_mask];
    atomic_store_explicit(ring->cq_head, head + 1, memory_order_release);
    return true;
}

/* Shows what is pending and harvests, without sleeping. 0 or -errno: -EBUSY and -EAGAIN pass. */
int uring_ring_flush(uring_ring *ring);

/* Whether a flush now would bring anything that is known of. */
bool uring_ring_has_more(const uring_ring *ring);

/* Whether a look finds all that has completed without a call. */
bool uring_ring_is_quiet(const uring_ring *ring);

/* Shows what is pending and harvests, and the kernel has looked at every entry when it returns 0. */
int uring_ring_hand_over(uring_ring *ring);

/* The same, and sleeps until there is room for an entry. */
int uring_ring_make_room(uring_ring *ring);

/* The same, and sleeps until there is a completion, or that delay is over (RS_NEVER: none). */
int uring_ring_wait(uring_ring *ring, int64_t delay_ns);

#endif
