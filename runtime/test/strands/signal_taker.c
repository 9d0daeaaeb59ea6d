/* Preloaded: a thread that does nothing but take signals. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static void *take(void *unused) {
    for (;;) pause();
    return unused;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, take, NULL);
}
