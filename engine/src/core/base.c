#include "ringspun/core/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

_Noreturn void rs_panic(const char *file, int line, const char *what) {
    fprintf(stderr, "ringspun: broken invariant at %s:%d: %s\n", file, line, what);
    abort();
}

void *rs_alloc(size_t size) {
    void *memory = calloc(1, size);
    RS_ASSERT(memory != NULL);
    return memory;
}

void *rs_realloc(void *old, size_t size) {
    RS_ASSERT(size > 0); /* realloc(3) might free it */
    void *memory = realloc(old, size);
    RS_ASSERT(memory != NULL);
    return memory;
}

_Thread_local int64_t rs_tries_left = -1;

static bool is_refused(void) {
    if (RS_LIKELY(rs_tries_left < 0)) return false;
    if (rs_tries_left == 0) return true;
    rs_tries_left--;
    return false;
}

void *rs_try_alloc(size_t size) { return is_refused() ? NULL : calloc(1, size); }

void *rs_try_alloc_uncleared(size_t size) { return is_refused() ? NULL : malloc(size); }

void *rs_try_realloc(void *old, size_t size) {
    RS_ASSERT(size > 0); /* realloc(3) might free it, and its NULL would not mean that there is no memory */
    return is_refused() ? NULL : realloc(old, size);
}

int64_t rs_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
