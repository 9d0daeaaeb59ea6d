#include "ringspun/kernel/splice.h"
#include "core/machine.h"
#include "ops/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

rs_splice_sort rs_splice_sort_of(rs_machine *machine, int fd) {
    if (rs_is_simulated(machine) || rs_descriptor_kind(rs_descriptors_in(machine), fd) == RS_FD_STREAM) return RS_SPLICE_AT_ONCE;
    struct stat st;
    if (fstat(fd, &st) != 0 || S_ISFIFO(st.st_mode)) return RS_SPLICE_AT_ONCE; /* the call itself says what is wrong */
    if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)) return RS_SPLICE_FILE;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) ? RS_SPLICE_AT_ONCE : RS_SPLICE_BLOCKING;
}

int64_t rs_splice(const rs_request *request) {
    RS_CHECK(rs_request_has_target(request));
    int64_t result;
    do result = splice(request->fd, NULL, request->splice.to_fd, NULL, request->splice.len, SPLICE_F_NONBLOCK);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

int64_t rs_tee(const rs_request *request) {
    RS_CHECK(rs_request_has_target(request));
    int64_t result;
    do result = tee(request->fd, request->splice.to_fd, request->splice.len, SPLICE_F_NONBLOCK);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

int64_t rs_copy_range(const rs_request *request) {
    RS_CHECK(rs_request_has_target(request));
    int64_t result;
    do result = copy_file_range(request->fd, NULL, request->splice.to_fd, NULL, request->splice.len, 0);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}
