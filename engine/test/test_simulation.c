/* Many random programs, each from a seed, on a simulated machine with a simulated kernel that misbehaves.
 *
 *     test_simulation                  a few hundred seeds
 *     test_simulation --seeds 10000    that many
 *     test_simulation --from 500       from that seed on
 *     test_simulation --seed 42        that one again; --verbose says what each strand does
 */
#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEEDS_DEFAULT 500
/* Of so many seeds one runs twice and must do the same. */
#define TWICE_EVERY 16
#define FAILURES_MAX 5
/* A program that runs for ever without waiting is not seen by any check. A seed takes a millisecond. */
#define SECONDS_PER_SEED 60

static volatile uint64_t current_seed;
static const char *program_name;

static void print_replay(uint64_t seed) {
    printf("  again: %s --seed %llu --verbose\n", program_name, (unsigned long long)seed);
}

/* A broken invariant inside the engine ends the process; the seed must not go with it. */
static void on_crash(int signal_number) {
    print_replay(current_seed);
    printf("0 passed, 1 failed\n");
    fflush(stdout);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static bool run_seed(uint64_t seed, bool verbose, program_report *report) {
    current_seed = seed;
    alarm(SECONDS_PER_SEED);
    *report = program_run(seed, verbose);
    if (report->failed) {
        printf("FAILED: seed %llu: %s\n", (unsigned long long)seed, report->failure);
        print_replay(seed);
        return false;
    }
    if (verbose) {
        printf("seed %llu: %llu parks, %llu events, %.3f s, hash %016llx\n", (unsigned long long)seed,
               (unsigned long long)report->parks, (unsigned long long)report->events,
               (double)report->lasted_ns / 1e9, (unsigned long long)report->hash);
    }
    if (seed % TWICE_EVERY != 0) return true;
    program_report again = program_run(seed, false);
    if (again.hash == report->hash && again.events == report->events) return true;
    printf("FAILED: seed %llu: a second run differs\n", (unsigned long long)seed);
    print_replay(seed);
    return false;
}

int main(int argc, char **argv) {
    uint64_t seeds = SEEDS_DEFAULT, from = 1;
    bool verbose = false;
    program_name = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "1";
        if (strcmp(argv[i], "--verbose") == 0) verbose = true;
        else if (strcmp(argv[i], "--seeds") == 0) seeds = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--from") == 0) from = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0) from = strtoull(value, NULL, 10), seeds = 1;
        else if (argv[i][0] == '-') return fprintf(stderr, "unknown option %s\n", argv[i]), 2;
    }
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    signal(SIGALRM, on_crash);
    uint64_t passed = 0, failed = 0, parks = 0, events = 0;
    for (uint64_t seed = from; seed < from + seeds && failed < FAILURES_MAX; seed++) {
        program_report report;
        if (run_seed(seed, verbose, &report)) passed++;
        else failed++;
        parks += report.parks;
        events += report.events;
    }
    printf("%llu parks, %llu events\n", (unsigned long long)parks, (unsigned long long)events);
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed > 0;
}
