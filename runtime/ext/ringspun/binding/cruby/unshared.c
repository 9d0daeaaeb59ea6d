#include "cruby.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rsb_unshared *first;

void rsb_unshare(rsb_unshared *one, int fd) {
    pthread_mutex_lock(&lock);
    *one = (rsb_unshared){.next = first, .fd = fd};
    if (first) first->previous = one;
    first = one;
    pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static int take_out(rsb_unshared *one) {
    int fd = one->fd;
    if (one->next) one->next->previous = one->previous;
    if (one->previous) one->previous->next = one->next;
    else first = one->next;
    *one = (rsb_unshared){.fd = -1};
    return fd;
}

int rsb_unshared_leave(rsb_unshared *one) {
    pthread_mutex_lock(&lock);
    int fd = one->fd < 0 ? -1 : take_out(one);
    pthread_mutex_unlock(&lock);
    return fd;
}

void rsb_unshared_fork_begins(void) { pthread_mutex_lock(&lock); }
void rsb_unshared_fork_ends(void) { pthread_mutex_unlock(&lock); }

void rsb_unshared_forked(void) {
    while (first) close(take_out(first));
    pthread_mutex_unlock(&lock);
}
