#include "base.h"

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
    void *memory = realloc(old, size);
    RS_ASSERT(memory != NULL);
    return memory;
}

int64_t rs_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
