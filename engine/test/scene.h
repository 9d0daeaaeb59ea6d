/* scene: what most tests of a backend need: strands that make one request, requests made from the root, and a look at
 * the process's descriptors. */
#ifndef RINGSPUN_SCENE_H
#define RINGSPUN_SCENE_H

#include "driver.h"

/* A strand that sleeps for a while, makes one request, remembers how it ended, and ends. */
typedef struct {
    task task;
    rs_request request;
    int64_t delay_ns;
    int64_t timeout_ns;         /* 0: none */
    rs_wake_kind wake;
    int64_t result;
    uint32_t order;             /* the how-manieth it ended, from 1 */
    int64_t at_ns;
    /* If set, a second wait of that length, and how that one ended. */
    int64_t then_sleep_ns;
    rs_wake_kind then_wake;
    int64_t then_at_ns;
} caller;

/* A strand that cancels another one after a while, and not before the other's op has moved that much or so many of the
 * process's threads wait in open(2). */
typedef struct {
    task task;
    task *target;
    int64_t delay_ns;
    uint64_t after_bytes;
    int opening;
} canceller;

/* A strand that closes a descriptor after a while, as a stream's close does: those who wait on it go first. */
typedef struct {
    task task;
    int fd;
    int64_t delay_ns;
    int64_t result;
} closer;

void scene_begin(void);
void scene_call(driver *driver, caller *caller, rs_request request, int64_t delay_ns, int64_t timeout_ns);
void scene_cancel(driver *driver, canceller *canceller, task *target, int64_t delay_ns);
void scene_close(driver *driver, closer *closer, int fd, int64_t delay_ns);

/* Makes a request from the root and runs everything until it and all others have ended. */
int64_t scene_ask(driver *driver, rs_request request);

/* The machine must be at rest: nothing in flight, nobody left; then it is closed. Prints and counts what is not so. */
int scene_end(driver *driver);

/* Descriptors that the process has open. */
int scene_open_descriptors(void);

/* Prints what each of them is, and what each thread is at. */
void scene_print_descriptors(void);

#define CHECK_DESCRIPTORS(expected)                                                                                   \
    do {                                                                                                              \
        int test_failures_before = test_failures;                                                                     \
        CHECK_EQUAL(expected, scene_open_descriptors());                                                              \
        if (test_failures > test_failures_before) scene_print_descriptors();                                          \
    } while (0)

/* Threads of the process. */
int scene_threads(void);

/* Those that are inside open(2); -1 where the kernel does not tell. */
int scene_threads_opening(void);

#endif
