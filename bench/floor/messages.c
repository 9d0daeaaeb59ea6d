/*
 * Floors of the tables `echo`, `armed` and `idle`: every message with one send and one recv, one after the other, and
 * nothing else. No thread, no switch, no polling. Each send and recv is a system call of its own, or an entry of a ring:
 * one call hands over those of several pairs, and only what has come is sent back.
 *
 *   messages PAIRS ROUNDS BYTES LEGS [ring]      LEGS: 1 for one way, 2 for there and back
 */
#include "measure.h"
#include "ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Pairs whose entries one call hands over. */
enum { TOGETHER = 64 };

struct pair {
    int ends[2];
    char *payload;
};

struct plan {
    unsigned pairs;
    unsigned rounds;
    unsigned bytes;
    unsigned legs;
};

static void raise_limit(void)
{
    struct rlimit limit;

    must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

static void move(int from, int to, const char *bytes, char *buffer, unsigned length)
{
    must(send(from, bytes, length, 0) == (ssize_t)length, "short send");
    must(recv(to, buffer, length, 0) == (ssize_t)length, "short recv");
}

/* What comes back is what was received, as an echo's is. Answers how many came as they were sent. */
static uint64_t run(const struct pair *pairs, const struct plan *plan, char *buffer)
{
    uint64_t intact = 0;

    for (unsigned round = 0; round < plan->rounds; round++)
        for (unsigned i = 0; i < plan->pairs; i++) {
            const struct pair *pair = &pairs[i];

            move(pair->ends[0], pair->ends[1], pair->payload, buffer, plan->bytes);
            if (plan->legs == 2)
                move(pair->ends[1], pair->ends[0], buffer, buffer, plan->bytes);
            intact += memcmp(buffer, pair->payload, plan->bytes) == 0;
        }
    return intact;
}

static void fill(struct ring *ring, uint8_t opcode, int fd, const char *bytes, unsigned length)
{
    uring_sqe *sqe = ring_entry(ring);

    sqe->opcode = opcode;
    sqe->fd = fd;
    sqe->address = (uint64_t)(uintptr_t)bytes;
    sqe->len = length;
}

/* The kernel takes entries in their order, so a message is there when it comes to who receives it. */
static uint64_t trip(struct ring *ring, const struct pair *pairs, unsigned together, const struct plan *plan, char *buffers)
{
    uint64_t intact = 0;

    for (unsigned leg = 0; leg < plan->legs; leg++) {
        for (unsigned i = 0; i < together; i++) {
            char *buffer = buffers + (size_t)i * plan->bytes;

            fill(ring, URING_OP_SEND, pairs[i].ends[leg], leg ? buffer : pairs[i].payload, plan->bytes);
            fill(ring, URING_OP_RECV, pairs[i].ends[!leg], buffer, plan->bytes);
        }
        ring_enter(ring, 2 * together);
        must(ring_reap(ring, 2 * together) == 2ull * together * plan->bytes, "a message was cut");
    }
    for (unsigned i = 0; i < together; i++)
        intact += memcmp(buffers + (size_t)i * plan->bytes, pairs[i].payload, plan->bytes) == 0;
    return intact;
}

static uint64_t run_by_ring(struct ring *ring, const struct pair *pairs, const struct plan *plan, char *buffers)
{
    uint64_t intact = 0;

    for (unsigned round = 0; round < plan->rounds; round++)
        for (unsigned i = 0; i < plan->pairs; i += TOGETHER) {
            unsigned together = plan->pairs - i < TOGETHER ? plan->pairs - i : TOGETHER;

            intact += trip(ring, &pairs[i], together, plan, buffers);
        }
    return intact;
}

int main(int count, char **arguments)
{
    struct plan plan = {
        .pairs = argument(arguments, count, 1),
        .rounds = argument(arguments, count, 2),
        .bytes = argument(arguments, count, 3),
        .legs = argument(arguments, count, 4),
    };
    struct plan warm_up = plan;
    struct measurement measurement;
    struct pair *pairs = calloc(plan.pairs, sizeof(*pairs));
    bool by_ring = count > 5 && strcmp(arguments[5], "ring") == 0;
    char *buffer = malloc((size_t)TOGETHER * plan.bytes);
    struct ring ring;
    uint64_t intact;

    must(pairs && buffer, "malloc");
    raise_limit();
    for (unsigned i = 0; i < plan.pairs; i++) {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i].ends) == 0, "socketpair");
        pairs[i].payload = malloc(plan.bytes);
        must(pairs[i].payload != NULL, "malloc");
        payload_fill(pairs[i].payload, plan.bytes, i);
    }
    warm_up.rounds = 1;
    if (by_ring) {
        ring_open(&ring, 2 * TOGETHER);
        run_by_ring(&ring, pairs, &warm_up, buffer);
    } else {
        run(pairs, &warm_up, buffer);
    }

    measure_begin(&measurement);
    intact = by_ring ? run_by_ring(&ring, pairs, &plan, buffer) : run(pairs, &plan, buffer);
    measure_end(&measurement);
    measurement.operations = (uint64_t)plan.pairs * plan.rounds;
    measure_report(&measurement, 1, measurement.operations * plan.bytes, "intact", intact);
    return 0;
}
