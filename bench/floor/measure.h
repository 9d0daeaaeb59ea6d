/*
 * What every floor shares: the clocks around its measured region, and the answer in JSON on descriptor 3, where
 * the bench reads it. One thread, called in the order begin, end, report.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measurement {
    double user_s;
    double system_s;
    double real_s;
    uint64_t operations; /* set before the report, for a table that reports per operation; else 0 */
};

/* The bytes of group `group`; the same as Bench.payload. */
void payload_fill(char *payload, size_t size, unsigned group);

void measure_begin(struct measurement *measurement);
void measure_end(struct measurement *measurement);

/* Divides by `rounds`, how often the region held the scenario. `units` is what the proof calls `unit_name`. */
void measure_report(const struct measurement *measurement, unsigned rounds, uint64_t bytes, const char *unit_name,
                    uint64_t units);

/* Ends the program: it cannot run here, for that reason. */
_Noreturn void unavailable(const char *why);

/* Ends the program with a message on stderr, unless `ok`. A floor that did not do its work must not be a floor. */
void must(bool ok, const char *what);

/* A count from the command line, at least 1. */
unsigned argument(char **arguments, int count, int index);

#endif
