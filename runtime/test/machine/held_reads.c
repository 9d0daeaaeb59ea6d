/* A disk that hangs, before the C library's preadv: a read says that it has begun, and ends only when it may. Both by a pipe, whose
 * descriptors are in the environment. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset) {
    struct pollfd may_end = {.fd = atoi(getenv("READS_MAY_END")), .events = POLLIN};
    if (write(atoi(getenv("READ_BEGINS")), "x", 1) != 1) abort();
    poll(&may_end, 1, -1);
    return preadv2(fd, parts, count, offset, 0);
}
