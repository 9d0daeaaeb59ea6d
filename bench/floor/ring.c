#include "ring.h"
#include "measure.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set_up(unsigned entries, uint32_t flags, uring_params *params)
{
    memset(params, 0, sizeof(*params));
    params->flags = flags;
    return (int)syscall(URING_SYS_SETUP, entries, params);
}

void ring_open(struct ring *ring, unsigned entries)
{
    uring_params params;
    uint32_t *array;
    char *base;
    size_t size;

    /* As little as the kernel can be asked to do; before Linux 6.1, what there is. */
    ring->fd = set_up(entries, URING_SETUP_SUBMIT_ALL | URING_SETUP_SINGLE_ISSUER | URING_SETUP_DEFER_TASKRUN, &params);
    if (ring->fd < 0 && errno == EINVAL)
        ring->fd = set_up(entries, 0, &params);
    if (ring->fd < 0)
        unavailable("this host refuses io_uring");
    size = params.cq.cqes + params.cq_entries * sizeof(uring_cqe);
    base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, URING_MAP_RINGS);
    ring->sqes = mmap(NULL, params.sq_entries * sizeof(uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      ring->fd, URING_MAP_SQES);
    must(base != MAP_FAILED && (void *)ring->sqes != MAP_FAILED, "mmap");
    ring->cqes = (const uring_cqe *)(base + params.cq.cqes);
    ring->sq_tail = (_Atomic uint32_t *)(base + params.sq.tail);
    ring->cq_head = (_Atomic uint32_t *)(base + params.cq.head);
    ring->cq_tail = (_Atomic uint32_t *)(base + params.cq.tail);
    ring->sq_mask = params.sq_entries - 1;
    ring->cq_mask = params.cq_entries - 1;
    ring->filled = 0;
    array = (uint32_t *)(base + params.sq.array);
    for (uint32_t i = 0; i < params.sq_entries; i++)
        array[i] = i;
}

uring_sqe *ring_entry(struct ring *ring)
{
    uint32_t tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    uring_sqe *sqe = &ring->sqes[(tail + ring->filled) & ring->sq_mask];

    must(ring->filled++ <= ring->sq_mask, "the ring is full");
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

void ring_enter(struct ring *ring, unsigned wait_for)
{
    uint32_t tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    long taken;

    atomic_store_explicit(ring->sq_tail, tail + ring->filled, memory_order_release);
    taken = syscall(URING_SYS_ENTER, ring->fd, ring->filled, wait_for, URING_ENTER_GETEVENTS, NULL, 0);
    must(taken == (long)ring->filled, "io_uring_enter");
    ring->filled = 0;
}

uint64_t ring_reap(struct ring *ring, unsigned count)
{
    uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    uint64_t sum = 0;

    must(tail - head == count, "a completion is missing");
    for (; head != tail; head++) {
        must(ring->cqes[head & ring->cq_mask].result >= 0, "an entry has failed");
        sum += (uint64_t)ring->cqes[head & ring->cq_mask].result;
    }
    atomic_store_explicit(ring->cq_head, head, memory_order_release);
    return sum;
}
