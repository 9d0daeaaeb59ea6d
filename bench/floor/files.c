/*
 * Floor of the table `mutex_io`: the same chunks into the same files, with one write each. One thread needs no
 * mutex. Whose chunk comes first within a file is left to the contenders' mutexes; here it is worker after worker.
 *
 *   files ROUNDS GROUPS WORKERS WRITES BYTES [DEVICE]      writes into $BENCH_SCRATCH, or to the device
 */
#include "measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plan {
    const char *directory;
    const char *device;
    unsigned rounds;
    unsigned groups;
    unsigned workers;
    unsigned writes;
    unsigned bytes;
    char *payloads; /* one of `bytes` for each worker */
};

static int file_open(const struct plan *plan, unsigned round, unsigned group, int flags)
{
    char path[4096];
    int length = plan->device ? snprintf(path, sizeof(path), "%s", plan->device)
                              : snprintf(path, sizeof(path), "%s/%u-%u", plan->directory, round, group);
    int fd;

    must(length > 0 && (size_t)length < sizeof(path), "path too long");
    fd = open(path, flags | O_CLOEXEC, 0644);
    must(fd >= 0, "open");
    return fd;
}

static void write_file(const struct plan *plan, int fd)
{
    for (unsigned w = 0; w < plan->workers; w++)
        for (unsigned i = 0; i < plan->writes; i++) {
            ssize_t written = write(fd, plan->payloads + (size_t)w * plan->bytes, plan->bytes);

            must(written == (ssize_t)plan->bytes, "short write");
        }
}

/* As in the contenders, all files of a round are open at once, and opened and closed within the region. */
static void run_round(const struct plan *plan, unsigned round, int *fds)
{
    for (unsigned g = 0; g < plan->groups; g++)
        fds[g] = file_open(plan, round, g, O_WRONLY | O_CREAT | O_TRUNC);
    for (unsigned g = 0; g < plan->groups; g++)
        write_file(plan, fds[g]);
    for (unsigned g = 0; g < plan->groups; g++)
        close(fds[g]);
}

/* Chunks of the file that are exactly one worker's payload; adds its bytes. */
static uint64_t count_chunks(const struct plan *plan, unsigned round, unsigned group, uint64_t *bytes)
{
    char *chunk = malloc(plan->bytes);
    int fd = file_open(plan, round, group, O_RDONLY);
    uint64_t intact = 0;
    ssize_t length;

    must(chunk != NULL, "malloc");
    while ((length = read(fd, chunk, plan->bytes)) > 0) {
        *bytes += (uint64_t)length;
        for (unsigned w = 0; w < plan->workers; w++)
            if (memcmp(chunk, plan->payloads + (size_t)w * plan->bytes, plan->bytes) == 0) {
                intact++;
                break;
            }
    }
    close(fd);
    free(chunk);
    return intact;
}

int main(int count, char **arguments)
{
    struct plan plan = {
        .directory = getenv("BENCH_SCRATCH"),
        .rounds = argument(arguments, count, 1),
        .groups = argument(arguments, count, 2),
        .workers = argument(arguments, count, 3),
        .writes = argument(arguments, count, 4),
        .bytes = argument(arguments, count, 5),
        .device = count > 6 ? arguments[6] : NULL,
    };
    struct plan warm_up;
    struct measurement measurement;
    int *fds = calloc(plan.groups, sizeof(*fds));
    uint64_t bytes = 0, chunks = 0;

    must(plan.directory != NULL, "BENCH_SCRATCH");
    plan.payloads = malloc((size_t)plan.workers * plan.bytes);
    must(fds && plan.payloads, "malloc");
    for (unsigned w = 0; w < plan.workers; w++)
        payload_fill(plan.payloads + (size_t)w * plan.bytes, plan.bytes, w);
    warm_up = plan;
    warm_up.writes = 1;
    run_round(&warm_up, 0, fds);

    measure_begin(&measurement);
    for (unsigned round = 0; round < plan.rounds; round++)
        run_round(&plan, round + 1, fds);
    measure_end(&measurement);

    for (unsigned round = 0; !plan.device && round < plan.rounds; round++)
        for (unsigned g = 0; g < plan.groups; g++)
            chunks += count_chunks(&plan, round + 1, g, &bytes);
    measure_report(&measurement, plan.rounds, bytes, "chunks", chunks);
    return 0;
}
