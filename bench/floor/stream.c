/*
 * Floors of the tables `pipe` and `socketpair`: every group's bytes, in the order in which its writer sends them,
 * with one write and one read per chunk and nothing else. No thread, no switch, no polling. Each write and read is a
 * system call of its own, or an entry of a ring, and one call hands over those of several groups.
 *
 *   stream pipe|socketpair GROUPS CHUNKS BYTES [ring]
 */
#include "measure.h"
#include "ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Chunks that are written before they are read. Four of 1 KB fill one page of a pipe, which the kernel then uses
 * again; one by one and the full pipe are both slower, and a floor is the fastest order that there is.
 */
enum { BATCH = 4 };

/* Entries that one call hands over. With twice as many what they wrote has left the processor's cache when it is read. */
enum { ENTRIES = 128 };

struct group {
    int reader;
    int writer;
    char *payload;
    char *buffer;
};

struct plan {
    bool sockets;
    unsigned groups;
    unsigned chunks;
    unsigned bytes;
    bool by_ring;
};

static void group_open(struct group *group, const struct plan *plan)
{
    int ends[2];

    if (plan->sockets)
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    else
        must(pipe(ends) == 0, "pipe");
    group->reader = ends[0];
    group->writer = ends[1];
}

static void send_chunk(const struct group *group, const struct plan *plan)
{
    ssize_t sent = plan->sockets ? send(group->writer, group->payload, plan->bytes, 0)
                                 : write(group->writer, group->payload, plan->bytes);
    must(sent == (ssize_t)plan->bytes, "short write");
}

static uint64_t receive_chunk(const struct group *group, const struct plan *plan)
{
    ssize_t received = plan->sockets ? recv(group->reader, group->buffer, plan->bytes, 0)
                                     : read(group->reader, group->buffer, plan->bytes);
    must(received > 0, "read");
    return (uint64_t)received;
}

static uint64_t move_by_calls(const struct group *group, const struct plan *plan, unsigned batch)
{
    uint64_t expected = (uint64_t)batch * plan->bytes;

    for (unsigned i = 0; i < batch; i++)
        send_chunk(group, plan);
    for (uint64_t received = 0; received < expected;)
        received += receive_chunk(group, plan);
    return expected;
}

static void fill(struct ring *ring, const struct plan *plan, int fd, char *bytes, bool writes)
{
    uring_sqe *sqe = ring_entry(ring);

    if (plan->sockets)
        sqe->opcode = writes ? URING_OP_SEND : URING_OP_RECV;
    else
        sqe->opcode = writes ? URING_OP_WRITE : URING_OP_READ;
    sqe->fd = fd;
    sqe->address = (uint64_t)(uintptr_t)bytes;
    sqe->len = plan->bytes;
}

/* The kernel takes entries in their order, so the bytes are there when it comes to who reads them. */
static void ask_ring(struct ring *ring, const struct group *group, const struct plan *plan, unsigned batch)
{
    for (unsigned i = 0; i < batch; i++)
        fill(ring, plan, group->writer, group->payload, true);
    for (unsigned i = 0; i < batch; i++)
        fill(ring, plan, group->reader, group->buffer, false);
}

/* Each chunk is written whole and read whole, or the sum is less. */
static uint64_t hand_over(struct ring *ring)
{
    unsigned entries = ring->filled;

    ring_enter(ring, entries);
    return ring_reap(ring, entries) / 2;
}

static uint64_t move(const struct group *groups, const struct plan *plan, struct ring *ring)
{
    uint64_t bytes = 0;

    for (unsigned done = 0; done < plan->chunks; done += BATCH) {
        unsigned batch = plan->chunks - done < BATCH ? plan->chunks - done : BATCH;

        for (unsigned g = 0; g < plan->groups; g++) {
            if (!plan->by_ring) {
                bytes += move_by_calls(&groups[g], plan, batch);
                continue;
            }
            if (ring->filled + 2 * BATCH > ENTRIES)
                bytes += hand_over(ring);
            ask_ring(ring, &groups[g], plan, batch);
        }
        if (plan->by_ring)
            bytes += hand_over(ring);
    }
    return bytes;
}

/* The descriptors are opened and closed in here, because the contenders do so in their measured region. */
static uint64_t run(struct group *groups, const struct plan *plan, struct ring *ring)
{
    uint64_t bytes;

    for (unsigned g = 0; g < plan->groups; g++)
        group_open(&groups[g], plan);
    bytes = move(groups, plan, ring);
    for (unsigned g = 0; g < plan->groups; g++) {
        close(groups[g].reader);
        close(groups[g].writer);
    }
    return bytes;
}

static uint64_t count_intact(const struct group *groups, const struct plan *plan)
{
    uint64_t intact = 0;

    for (unsigned g = 0; g < plan->groups; g++)
        intact += memcmp(groups[g].buffer, groups[g].payload, plan->bytes) == 0;
    return intact;
}

int main(int count, char **arguments)
{
    struct plan plan = {
        .sockets = count > 1 && strcmp(arguments[1], "socketpair") == 0,
        .groups = argument(arguments, count, 2),
        .chunks = argument(arguments, count, 3),
        .bytes = argument(arguments, count, 4),
        .by_ring = count > 5 && strcmp(arguments[5], "ring") == 0,
    };
    struct plan warm_up = plan;
    struct measurement measurement;
    struct ring ring;
    struct group *groups = calloc(plan.groups, sizeof(*groups));
    uint64_t bytes;

    must(groups != NULL, "calloc");
    if (plan.by_ring)
        ring_open(&ring, ENTRIES);
    for (unsigned g = 0; g < plan.groups; g++) {
        groups[g].payload = malloc(plan.bytes);
        groups[g].buffer = calloc(1, plan.bytes);
        must(groups[g].payload && groups[g].buffer, "malloc");
        payload_fill(groups[g].payload, plan.bytes, g);
    }
    warm_up.chunks = BATCH;
    run(groups, &warm_up, &ring);
    for (unsigned g = 0; g < plan.groups; g++)
        memset(groups[g].buffer, 0, plan.bytes);

    measure_begin(&measurement);
    bytes = run(groups, &plan, &ring);
    measure_end(&measurement);
    measure_report(&measurement, 1, bytes, "intact", count_intact(groups, &plan));
    return 0;
}
