#include "cruby.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rs_links all;

void rsb_unshare(rsb_unshared *one, int fd) {
    pthread_mutex_lock(&lock);
    one->fd = fd;
    rs_links_prepend(&all, &one->link);
    pthread_mutex_unlock(&lock);
}

/* The caller holds the lock. */
static int take_out(rsb_unshared *one) {
    int fd = one->fd;
    rs_links_remove(&all, &one->link);
    one->fd = -1;
    return fd;
}

int rsb_unshared_leave(rsb_unshared *one) {
    pthread_mutex_lock(&lock);
    int fd = one->fd < 0 ? -1 : take_out(one);
    pthread_mutex_unlock(&lock);
    return fd;
}

static void fork_begins(void) { pthread_mutex_lock(&lock); }
static void fork_ends(void) { pthread_mutex_unlock(&lock); }

static void child_began(void) {
    RS_EACH_LINKED(&all, rsb_unshared, link, one) close(take_out(one));
    pthread_mutex_unlock(&lock);
}

void rsb_init_unshared(void) { pthread_atfork(fork_begins, fork_ends, child_began); }
