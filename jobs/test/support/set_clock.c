/* Stands before the C library's clocks: the time of day is wrong by CLOCK_SHIFT_SECONDS, or by the number that the file
 * CLOCK_SHIFT_FILE has now. With CLOCK_STANDS it stands still but for that. Clocks that only run on are right. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The number in the file, which all processes see when it changes. */
static const volatile int64_t *shared(void) {
    static const volatile int64_t *number;
    const char *path = getenv("CLOCK_SHIFT_FILE");
    if (number || !path) return number;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    void *bytes = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (bytes != MAP_FAILED) number = bytes;
    return number;
}

static time_t shift(void) {
    const volatile int64_t *number = shared();
    if (number) return (time_t)*number;
    const char *seconds = getenv("CLOCK_SHIFT_SECONDS");
    return seconds ? (time_t)atol(seconds) : 0;
}

static int right(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, now);
}

/* The second in which the program began, if its time of day stands still, and else zero. It is a whole one: times that are kept
 * by the millisecond would be rounded up, and lie ahead of a clock that stands. */
static struct timespec began;

__attribute__((constructor)) static void begin(void) {
    if (getenv("CLOCK_STANDS")) right(CLOCK_REALTIME, &began);
    began.tv_nsec = 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = right(clock, now);
    if (result || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
    if (began.tv_sec) *now = began;
    now->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
