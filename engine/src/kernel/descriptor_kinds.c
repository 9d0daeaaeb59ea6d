#include "ringspun/kernel/descriptor_kinds.h"
#include "core/machine.h"
#include "ops/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* Magic numbers from statfs(2); these may make a small write wait for another machine or process. */
static bool is_remote(int fd) {
    RS_CHECK(fd >= 0);
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0) return true;
    switch ((uint32_t)fs.f_type) {
    case 0x6969:      /* NFS */
    case 0x517B:      /* SMB */
    case 0xFF534D42u: /* CIFS */
    case 0xFE534D42u: /* SMB2 */
    case 0x65735546:  /* FUSE */
    case 0x00C36400:  /* CEPH */
    case 0x01021997:  /* 9P */
    case 0x5346414F:  /* AFS */
    case 0x73757245:  /* CODA */
        return true;
    default:
        return false;
    }
}

/* null, zero and full, by their numbers in the kernel's devices.txt: no call on them waits for anything. */
static bool is_memory(dev_t device) {
    return major(device) == 1 && (minor(device) == 3 || minor(device) == 5 || minor(device) == 7);
}

bool rs_descriptor_is_virtual(int fd) {
    RS_CHECK(fd >= 0);
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0) return false;
    switch ((uint32_t)fs.f_type) {
    case 0x9FA0:      /* proc */
    case 0x62656572:  /* sysfs */
    case 0x63677270:  /* cgroup2 */
    case 0x0027E0EB:  /* cgroup */
    case 0x01021994:  /* tmpfs */
        return true;
    default:
        return false;
    }
}

rs_fd_kind rs_descriptor_classify(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0) return RS_FD_UNKNOWN;
    if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) || S_ISDIR(st.st_mode)) {
        return is_remote(fd) ? RS_FD_FILE_REMOTE : RS_FD_FILE_LOCAL;
    }
    if (S_ISCHR(st.st_mode) && is_memory(st.st_rdev)) return RS_FD_MEMORY;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) ? RS_FD_STREAM : RS_FD_BLOCKING;
}

/* Of a connection that somebody else's listener has brought nothing is known. */
static bool is_known_for_bytes(const rs_descriptors *descriptors, int fd) {
    if (rs_descriptor_kind(descriptors, fd) != RS_FD_STREAM) return false;
    RS_CHECK(!descriptors->table[fd].bytes || descriptors->table[fd].socket);
    return !descriptors->table[fd].socket || descriptors->table[fd].bytes;
}

bool rs_descriptor_carries_bytes(const rs_descriptors *descriptors, int fd) {
    if (is_known_for_bytes(descriptors, fd)) return true;
    int type;
    socklen_t size = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0) return type == SOCK_STREAM;
    return errno == ENOTSOCK;
}

bool rs_descriptor_is_socket(int fd) {
    RS_CHECK(fd >= 0);
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

uint64_t rs_descriptor_identity(int fd) {
    RS_CHECK(fd >= 0);
    struct stat st;
    if (fstat(fd, &st) != 0) return 0;
    uint64_t identity = (uint64_t)st.st_ino ^ ((uint64_t)st.st_dev << 40);
    return identity ? identity : 1;
}

void rs_socket_made(rs_machine *machine, int fd, int family, int type) {
    if (!rs_descriptors_reserve(rs_descriptors_in(machine), fd)) return;
    rs_descriptor *descriptor = rs_descriptor_get(rs_descriptors_in(machine), fd);
    RS_CHECK(descriptor->kind == RS_FD_STREAM && descriptor->socket);
    bool tcp = family == AF_INET || family == AF_INET6;
    descriptor->bytes = (type & RS_SOCK_TYPE) == SOCK_STREAM;
    descriptor->reports_more = descriptor->bytes && (tcp || (family == AF_UNIX && rs_descriptors_in(machine)->unix_reports_more));
}
