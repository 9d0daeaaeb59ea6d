/* Preloaded: a thread that computes for as long as the process lives, and takes signals like any other. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_ulong count;

static void *spin(void *unused) {
    for (;;) atomic_fetch_add(&count, 1);
    return unused;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, spin, NULL);
}
