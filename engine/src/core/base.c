#include "ringspun/core/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

_Noreturn void rs_panic(const char *file, int line, const char *what) {
    fprintf(stderr, "ringspun: broken invariant at %s:%d: %s\n", file, line, what);
    abort();
}

_Thread_local int64_t rs_tries_left = -1;
_Thread_local uint64_t rs_refusals_left = UINT64_MAX;

static bool is_refused(void) {
    if (RS_LIKELY(rs_tries_left < 0)) return false;
    if (rs_tries_left > 0) {
        rs_tries_left--;
        return false;
    }
    if (--rs_refusals_left == 0) rs_tries_left = -1;
    return true;
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
