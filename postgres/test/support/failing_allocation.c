/* Stands before the C library's own: of what the extension of Postgres allocates, the one of the number that FAIL_ALLOCATION says
 * fails. Then the variable is no more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static bool fails(const void *caller) {
    static int left;
    Dl_info where;
    const char *number = getenv("FAIL_ALLOCATION");
    if (!number) left = 0;
    if (!number || !dladdr(caller, &where) || !strstr(where.dli_fname, "postgres_native")) return false;
    if (left == 0) left = atoi(number);
    if (--left > 0) return false;
    unsetenv("FAIL_ALLOCATION");
    return true;
}

void *malloc(size_t size) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size); }

void *realloc(void *memory, size_t size) { return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size); }
