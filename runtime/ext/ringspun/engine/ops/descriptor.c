#include "core/machine.h"
#include "ops/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

void rs_descriptors_free(rs_descriptors *descriptors) {
    free(descriptors->table);
    *descriptors = (rs_descriptors){0};
}

bool rs_descriptors_reserve(rs_descriptors *descriptors, int fd) {
    RS_ASSERT(fd >= 0);
    uint32_t wanted = (uint32_t)fd + 1;
    if (RS_LIKELY(wanted <= descriptors->capacity)) return true;
    uint32_t capacity = descriptors->capacity ? descriptors->capacity : 64;
    while (capacity < wanted) capacity *= 2;
    rs_descriptor *table = rs_try_realloc(descriptors->table, sizeof(rs_descriptor) * capacity);
    if (!table) return false;
    memset(table + descriptors->capacity, 0, sizeof(rs_descriptor) * (capacity - descriptors->capacity));
    descriptors->table = table;
    descriptors->capacity = capacity;
    return true;
}

rs_descriptor *rs_descriptor_get(rs_descriptors *descriptors, int fd) {
    bool there = rs_descriptors_reserve(descriptors, fd);
    RS_ASSERT(there); /* who has an op on it has reserved it */
    return &descriptors->table[fd];
}

void rs_descriptor_add(rs_descriptors *descriptors, rs_ops *ops, rs_op *op) {
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, op->request.fd);
    op->next = 0;
    op->previous = descriptor->last;
    if (descriptor->last) rs_op_at(ops, descriptor->last - 1)->next = op->index + 1;
    else descriptor->first = op->index + 1;
    descriptor->last = op->index + 1;
}

void rs_descriptor_remove(rs_descriptors *descriptors, rs_ops *ops, rs_op *op) {
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, op->request.fd);
    if (op->previous) rs_op_at(ops, op->previous - 1)->next = op->next;
    else descriptor->first = op->next;
    if (op->next) rs_op_at(ops, op->next - 1)->previous = op->previous;
    else descriptor->last = op->previous;
    op->next = op->previous = 0;
}

/* Magic numbers from statfs(2); these may make a small write wait for another machine or process. */
static bool is_remote(int fd) {
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
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

uint64_t rs_descriptor_identity(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0) return 0;
    uint64_t identity = (uint64_t)st.st_ino ^ ((uint64_t)st.st_dev << 40);
    return identity ? identity : 1;
}

void rs_descriptor_restore(rs_descriptors *descriptors, int fd, rs_fd_kind kind, bool socket, bool bytes, bool reports_more) {
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, fd);
    descriptor->kind = (uint8_t)kind;
    descriptor->socket = socket;
    descriptor->bytes = bytes;
    descriptor->reports_more = reports_more;
}

/* --- the part --- */

static void close_table(rs_machine *machine) { rs_descriptors_free(machine->descriptors); }

static void forget_ops(rs_machine *machine, const rs_strand *survivor) {
    (void)survivor;
    machine->descriptors->owing = 0;
    for (uint32_t fd = 0; fd < machine->descriptors->capacity; fd++) {
        rs_descriptor *descriptor = &machine->descriptors->table[fd];
        *descriptor = (rs_descriptor){
            .kind = descriptor->kind, .socket = descriptor->socket, .bytes = descriptor->bytes,
            .reports_more = descriptor->reports_more, .generation = descriptor->generation};
    }
}

const rs_part rs_descriptors_part = {.forked = forget_ops, .close = close_table};
