#include "kernel/wake.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int rs_wake_open(void) {
    int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return wake < 0 ? -errno : wake;
}

void rs_wake_ring(int wake) {
    uint64_t one = 1;
    while (write(wake, &one, sizeof(one)) < 0 && errno == EINTR) {}
}

void rs_wake_clear(int wake) {
    uint64_t count;
    (void)!read(wake, &count, sizeof(count));
}
