/*
 * Floor of the table `files`: the same blocks of the same files, with one pread each, from one thread.
 *
 *   blocks warm|cold|mix FILES BLOCKS PASSES  BLOCKS in all; writes its files into $BENCH_SCRATCH; mix: every other file is cold
 *
 * Each block begins with its number. The order is another one than the contenders', and as good: no block twice, and
 * none after its neighbour but by chance.
 */
#include "measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096 };

struct plan {
    const char *state;
    unsigned files;
    unsigned blocks;
    unsigned passes;
    unsigned *order;
    int *fds;
    char *buffer;
};

static void shuffle(const struct plan *plan)
{
    uint64_t state = 42;

    for (unsigned i = 0; i < plan->blocks; i++)
        plan->order[i] = i;
    for (unsigned i = plan->blocks - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned other = (unsigned)((state >> 33) % (i + 1)), kept = plan->order[i];

        plan->order[i] = plan->order[other];
        plan->order[other] = kept;
    }
}

static bool is_cold(const struct plan *plan, unsigned file)
{
    return *plan->state == 'c' || (*plan->state == 'm' && file % 2 == 1);
}

static void prepare_file(const struct plan *plan, unsigned file)
{
    unsigned blocks = plan->blocks / plan->files;
    size_t size = (size_t)blocks * BLOCK;
    char path[4096], *bytes = malloc(size);
    int length = snprintf(path, sizeof(path), "%s/%u", getenv("BENCH_SCRATCH"), file);
    int fd;

    must(bytes && length > 0 && (size_t)length < sizeof(path), "path too long");
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd >= 0, "open");
    memset(bytes, 'x', size);
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t number = file * blocks + i;

        memcpy(bytes + (size_t)i * BLOCK, &number, sizeof(number));
    }
    must(write(fd, bytes, size) == (ssize_t)size, "short write");
    free(bytes);
    must(fsync(fd) == 0, "fsync");
    must(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0, "posix_fadvise");
    if (is_cold(plan, file))
        must(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
    plan->fds[file] = fd;
}

static uint64_t read_blocks(const struct plan *plan)
{
    unsigned blocks = plan->blocks / plan->files;
    uint64_t sum = 0;

    for (unsigned pass = 0; pass < plan->passes; pass++)
        for (unsigned i = 0; i < plan->blocks; i++) {
            unsigned block = plan->order[i];
            uint32_t number;

            must(pread(plan->fds[block / blocks], plan->buffer, BLOCK, (off_t)(block % blocks) * BLOCK) == BLOCK, "short read");
            memcpy(&number, plan->buffer, sizeof(number));
            sum += number;
        }
    return sum;
}

/* What the block layer had to fetch for us so far; -1 where the kernel does not count. */
static long long bytes_fetched(void)
{
    long long bytes = -1;
    char line[128];
    FILE *file = fopen("/proc/self/io", "r");

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "read_bytes: %lld", &bytes) == 1)
            break;
    if (file)
        fclose(file);
    return bytes;
}

int main(int count, char **arguments)
{
    struct plan plan = {
        .state = count > 1 ? arguments[1] : "",
        .files = argument(arguments, count, 2),
        .blocks = argument(arguments, count, 3),
        .passes = argument(arguments, count, 4),
    };
    struct measurement measurement;
    long long fetched;
    uint64_t sum;

    plan.order = calloc(plan.blocks, sizeof(*plan.order));
    plan.fds = calloc(plan.files, sizeof(*plan.fds));
    plan.buffer = malloc(BLOCK);
    must(plan.order && plan.fds && plan.buffer && getenv("BENCH_SCRATCH"), "malloc");
    must(plan.blocks % plan.files == 0, "blocks must be a multiple of files");
    shuffle(&plan);
    for (unsigned file = 0; file < plan.files; file++)
        prepare_file(&plan, file);
    if (*plan.state == 'w')
        read_blocks(&plan);

    fetched = bytes_fetched();
    measure_begin(&measurement);
    sum = read_blocks(&plan);
    measure_end(&measurement);
    if (*plan.state != 'w' && fetched >= 0 && bytes_fetched() - fetched < (long long)plan.blocks * BLOCK / 4)
        unavailable("these files stay in memory");
    measurement.operations = (uint64_t)plan.blocks * plan.passes;
    measure_report(&measurement, 1, measurement.operations * BLOCK, "sum", sum);
    return 0;
}
