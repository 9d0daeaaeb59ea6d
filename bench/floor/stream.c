/*
 * Floor of the tables `pipe` and `socketpair`: every group's bytes, in the order in which its writer sends them,
 * with one write and one read per chunk and nothing else. No thread, no switch, no polling.
 *
 *   stream pipe|socketpair GROUPS CHUNKS BYTES
 */
#include "measure.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Chunks that are written before they are read. Four of 1 KB fill one page of a pipe, which the kernel then uses
 * again; one by one and the full pipe are both slower, and a floor is the fastest order that there is.
 */
enum { BATCH = 4 };

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

static uint64_t move(const struct group *groups, const struct plan *plan)
{
    uint64_t bytes = 0;

    for (unsigned done = 0; done < plan->chunks; done += BATCH) {
        unsigned batch = plan->chunks - done < BATCH ? plan->chunks - done : BATCH;

        for (unsigned g = 0; g < plan->groups; g++) {
            uint64_t expected = (uint64_t)batch * plan->bytes;

            for (unsigned i = 0; i < batch; i++)
                send_chunk(&groups[g], plan);
            while (expected > 0) {
                uint64_t received = receive_chunk(&groups[g], plan);

                expected -= received;
                bytes += received;
            }
        }
    }
    return bytes;
}

/* The descriptors are opened and closed in here, because the contenders do so in their measured region. */
static uint64_t run(struct group *groups, const struct plan *plan)
{
    uint64_t bytes;

    for (unsigned g = 0; g < plan->groups; g++)
        group_open(&groups[g], plan);
    bytes = move(groups, plan);
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
    };
    struct plan warm_up = plan;
    struct measurement measurement;
    struct group *groups = calloc(plan.groups, sizeof(*groups));
    uint64_t bytes;

    must(groups != NULL, "calloc");
    for (unsigned g = 0; g < plan.groups; g++) {
        groups[g].payload = malloc(plan.bytes);
        groups[g].buffer = calloc(1, plan.bytes);
        must(groups[g].payload && groups[g].buffer, "malloc");
        payload_fill(groups[g].payload, plan.bytes, g);
    }
    warm_up.chunks = BATCH;
    run(groups, &warm_up);
    for (unsigned g = 0; g < plan.groups; g++)
        memset(groups[g].buffer, 0, plan.bytes);

    measure_begin(&measurement);
    bytes = run(groups, &plan);
    measure_end(&measurement);
    measure_report(&measurement, 1, bytes, "intact", count_intact(groups, &plan));
    return 0;
}
