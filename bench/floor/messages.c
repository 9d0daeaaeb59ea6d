/*
 * Floor of the tables `echo`, `armed` and `idle`: every message with one send and one recv, one after the other, and
 * nothing else. No thread, no switch, no polling.
 *
 *   messages PAIRS ROUNDS BYTES LEGS      LEGS: 1 for one way, 2 for there and back
 */
#include "measure.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

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
    char *buffer = malloc(plan.bytes);
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
    run(pairs, &warm_up, buffer);

    measure_begin(&measurement);
    intact = run(pairs, &plan, buffer);
    measure_end(&measurement);
    measurement.operations = (uint64_t)plan.pairs * plan.rounds;
    measure_report(&measurement, 1, measurement.operations * plan.bytes, "intact", intact);
    return 0;
}
