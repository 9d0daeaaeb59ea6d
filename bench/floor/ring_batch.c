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
#include "ring.h"

#include <string.h>
#include <sys/socket.h>

enum { BATCH = 32 };

static void fill(struct ring *ring, const int *readers, char *bytes, unsigned flags)
{
    for (unsigned i = 0; i < BATCH; i++) {
        uring_sqe *sqe = ring_entry(ring);

        sqe->opcode = URING_OP_RECV;
        sqe->fd = readers[i];
        sqe->address = (uint64_t)(uintptr_t)&bytes[i];
        sqe->len = 1;
        sqe->priority = URING_RECVSEND_POLL_FIRST; /* as one who has just tried */
        sqe->op_flags = flags;
        sqe->user_data = i;
    }
}

static uint64_t run(struct ring *ring, const int *readers, const int *writers, bool armed, unsigned batches)
{
    char bytes[BATCH];
    uint64_t received = 0;

    for (unsigned batch = 0; batch < batches; batch++) {
        fill(ring, readers, bytes, armed ? 0 : MSG_PEEK);
        ring_enter(ring, armed ? 0 : BATCH);
        if (armed) {
            for (unsigned i = 0; i < BATCH; i++)
                must(send(writers[i], "x", 1, 0) == 1, "send");
            ring_enter(ring, BATCH);
        }
        received += ring_reap(ring, BATCH);
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

    ring_open(&ring, BATCH);
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
