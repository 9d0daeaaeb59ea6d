/*
 * Floor of the table `batch`: 32 recv entries in a bare ring, submitted by one call, and their 32 completions. No op, no
 * strand, no list of what is in flight: what is left is the kernel's own cost.
 *
 *   ring_batch ready|armed BATCHES
 *
 * `ready`: each socket holds a byte, which recv looks at and leaves there, so the kernel completes every entry while it is
 * submitted. `armed`: the sockets are empty; one byte comes to each after all were submitted.
 */
#include "measure.h"
#include "backend/uring/abi.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 32 };

struct ring {
    int fd;
    uring_sqe *sqes;
    const uring_cqe *cqes;
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
};

static int set_up(uint32_t flags, uring_params *params)
{
    memset(params, 0, sizeof(*params));
    params->flags = flags;
    return (int)syscall(URING_SYS_SETUP, BATCH, params);
}

static void ring_open(struct ring *ring)
{
    uring_params params;
    uint32_t *array;
    char *base;
    size_t size;

    /* As little as the kernel can be asked to do; before Linux 6.1, what there is. */
    ring->fd = set_up(URING_SETUP_SUBMIT_ALL | URING_SETUP_SINGLE_ISSUER | URING_SETUP_DEFER_TASKRUN, &params);
    if (ring->fd < 0 && errno == EINVAL)
        ring->fd = set_up(0, &params);
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
    array = (uint32_t *)(base + params.sq.array);
    for (uint32_t i = 0; i < params.sq_entries; i++)
        array[i] = i;
}

static void enter(const struct ring *ring, unsigned submit, unsigned wait_for)
{
    long taken = syscall(URING_SYS_ENTER, ring->fd, submit, wait_for, URING_ENTER_GETEVENTS, NULL, 0);

    must(taken == (long)submit, "io_uring_enter");
}

static void fill(const struct ring *ring, const int *readers, char *bytes, unsigned flags)
{
    uint32_t tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);

    for (unsigned i = 0; i < BATCH; i++) {
        uring_sqe *sqe = &ring->sqes[(tail + i) & ring->sq_mask];

        memset(sqe, 0, sizeof(*sqe));
        sqe->opcode = URING_OP_RECV;
        sqe->fd = readers[i];
        sqe->address = (uint64_t)(uintptr_t)&bytes[i];
        sqe->len = 1;
        sqe->priority = URING_RECVSEND_POLL_FIRST; /* as one who has just tried */
        sqe->op_flags = flags;
        sqe->user_data = i;
    }
    atomic_store_explicit(ring->sq_tail, tail + BATCH, memory_order_release);
}

static uint64_t reap(const struct ring *ring)
{
    uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    uint64_t received = 0;

    must(tail - head == BATCH, "a completion is missing");
    for (; head != tail; head++)
        received += ring->cqes[head & ring->cq_mask].result == 1;
    atomic_store_explicit(ring->cq_head, head, memory_order_release);
    return received;
}

static uint64_t run(const struct ring *ring, const int *readers, const int *writers, bool armed, unsigned batches)
{
    char bytes[BATCH];
    uint64_t received = 0;

    for (unsigned batch = 0; batch < batches; batch++) {
        fill(ring, readers, bytes, armed ? 0 : MSG_PEEK);
        enter(ring, BATCH, armed ? 0 : BATCH);
        if (armed) {
            for (unsigned i = 0; i < BATCH; i++)
                must(send(writers[i], "x", 1, 0) == 1, "send");
            enter(ring, 0, BATCH);
        }
        received += reap(ring);
    }
    return received;
}

int main(int count, char **arguments)
{
    bool armed = count > 1 && strcmp(arguments[1], "armed") == 0;
    unsigned batches = argument(arguments, count, 2);
    int readers[BATCH], writers[BATCH];
    struct measurement measurement;
    struct ring ring;
    uint64_t received;

    ring_open(&ring);
    for (unsigned i = 0; i < BATCH; i++) {
        int ends[2];

        must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "socketpair");
        readers[i] = ends[0];
        writers[i] = ends[1];
        must(armed || send(writers[i], "x", 1, 0) == 1, "send");
    }
    run(&ring, readers, writers, armed, 1);

    measure_begin(&measurement);
    received = run(&ring, readers, writers, armed, batches);
    measure_end(&measurement);
    measurement.operations = (uint64_t)batches * BATCH;
    measure_report(&measurement, 1, received, "received", received);
    return 0;
}
