#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { ANSWER_FD = 3 };

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void read_clocks(struct measurement *now)
{
    struct rusage usage;
    struct timespec clock;

    must(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
    must(clock_gettime(CLOCK_MONOTONIC, &clock) == 0, "clock_gettime");
    now->user_s = seconds_of(usage.ru_utime);
    now->system_s = seconds_of(usage.ru_stime);
    now->real_s = (double)clock.tv_sec + (double)clock.tv_nsec / 1e9;
}

void payload_fill(char *payload, size_t size, unsigned group)
{
    for (size_t i = 0; i < size; i++)
        payload[i] = (char)(33 + (i * 7 + group) % 90);
}

void measure_begin(struct measurement *measurement)
{
    measurement->operations = 0;
    read_clocks(measurement);
}

void measure_end(struct measurement *measurement)
{
    struct measurement end;

    read_clocks(&end);
    measurement->user_s = end.user_s - measurement->user_s;
    measurement->system_s = end.system_s - measurement->system_s;
    measurement->real_s = end.real_s - measurement->real_s;
}

void measure_report(const struct measurement *measurement, unsigned rounds, uint64_t bytes, const char *unit_name,
                    uint64_t units)
{
    int written = dprintf(ANSWER_FD,
                          "{\"user\":%.9f,\"system\":%.9f,\"real\":%.9f,\"operations\":%llu,"
                          "\"proof\":{\"bytes\":%llu,\"%s\":%llu}}",
                          measurement->user_s / rounds, measurement->system_s / rounds, measurement->real_s / rounds,
                          (unsigned long long)measurement->operations, (unsigned long long)bytes,
                          unit_name, (unsigned long long)units);
    must(written > 0, "write to descriptor 3");
}

void unavailable(const char *why)
{
    dprintf(ANSWER_FD, "{\"unavailable\":\"%s\"}", why);
    exit(0);
}

void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

unsigned argument(char **arguments, int count, int index)
{
    unsigned long value = index < count ? strtoul(arguments[index], NULL, 10) : 0;

    if (value < 1 || value > 1u << 30) {
        fprintf(stderr, "error: argument %d must be a count\n", index);
        exit(1);
    }
    return (unsigned)value;
}
