#include "kernel/descriptor_kinds.h"
#include "backend/uring/entry.h"
#include "backend/retry.h"
#include "backend/uring/pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* What one entry can ask for, and more than any transfer moves at once. */
#define LEN_MAX 0x7ffff000u

static uint64_t pointer(const void *address) { return (uint64_t)(uintptr_t)address; }

/* A copy of this size costs less than handing it to anybody. */
#define COPY_MAX 65536u

/* NOP: no opcode of this backend's is for it. `by_worker`: the kernel's own thread does it, without a first try on ours. An open is
 * tried first, with O_NONBLOCK: that of a FIFO then does not wait for its other end. */
typedef struct {
    uint8_t opcode;
    bool by_worker;
} uring_call;

static const uring_call calls[RS_OP_KINDS] = {
    [RS_OP_READ] = {URING_OP_READ},
    [RS_OP_WRITE] = {URING_OP_WRITE},
    [RS_OP_PREAD] = {URING_OP_READ},
    [RS_OP_PWRITE] = {URING_OP_WRITE},
    [RS_OP_READV] = {URING_OP_READV},
    [RS_OP_WRITEV] = {URING_OP_WRITEV},
    [RS_OP_RECV] = {URING_OP_RECV},
    [RS_OP_SEND] = {URING_OP_SEND},
    [RS_OP_RECVMSG] = {URING_OP_RECVMSG},
    [RS_OP_SENDMSG] = {URING_OP_SENDMSG},
    [RS_OP_ACCEPT] = {URING_OP_ACCEPT},
    [RS_OP_CONNECT] = {URING_OP_CONNECT},
    [RS_OP_POLL] = {URING_OP_POLL_ADD},
    [RS_OP_OPEN] = {URING_OP_OPENAT, .by_worker = true},
    [RS_OP_FSYNC] = {URING_OP_FSYNC, .by_worker = true},
    [RS_OP_STATX] = {URING_OP_STATX, .by_worker = true},
    [RS_OP_WAITID] = {URING_OP_WAITID},
    [RS_OP_SPLICE] = {URING_OP_SPLICE, .by_worker = true},
    [RS_OP_UNLINK] = {URING_OP_UNLINKAT, .by_worker = true},
    [RS_OP_RENAME] = {URING_OP_RENAMEAT, .by_worker = true},
    [RS_OP_MKDIR] = {URING_OP_MKDIRAT, .by_worker = true},
    [RS_OP_FTRUNCATE] = {URING_OP_FTRUNCATE, .by_worker = true},
    [RS_OP_FALLOCATE] = {URING_OP_FALLOCATE, .by_worker = true},
};

uint8_t uring_opcode(uint32_t kind) { return calls[kind].opcode; }

static uint32_t readiness_of(const rs_op *op) {
    return rs_op_kinds[op->request.kind].side == RS_SIDE_WRITE ? POLLOUT : POLLIN;
}

/* Of those that work on names and sizes. */
static void fill_path(uring_sqe *sqe, const rs_request *request) {
    switch (request->kind) {
    case RS_OP_UNLINK:
        sqe->fd = AT_FDCWD;
        break;
    case RS_OP_RENAME:
        sqe->fd = AT_FDCWD;
        sqe->offset = pointer((const char *)request->address + request->len);
        sqe->len = (uint32_t)AT_FDCWD;
        break;
    case RS_OP_MKDIR:
        sqe->fd = AT_FDCWD;
        sqe->len = request->mode;
        break;
    case RS_OP_FTRUNCATE: sqe->offset = (uint64_t)request->offset; break;
    case RS_OP_FALLOCATE:
        sqe->offset = (uint64_t)request->offset;
        sqe->address = request->len;
        sqe->len = request->mode;
        break;
    default: break;
    }
}

static void fill_splice(uring_sqe *sqe, const rs_request *request) {
    sqe->fd = request->to_fd;
    sqe->file_index = (uint32_t)request->fd;
    sqe->address = sqe->offset = UINT64_MAX; /* their own positions */
    sqe->op_flags = SPLICE_F_NONBLOCK;
}

static void fill_rest(uring_sqe *sqe, const rs_op *op) {
    const rs_request *request = &op->request;
    switch (request->kind) {
    case RS_OP_READ: case RS_OP_WRITE: case RS_OP_PREAD: case RS_OP_PWRITE: case RS_OP_READV: case RS_OP_WRITEV:
        sqe->offset = (uint64_t)request->offset;
        break;
    case RS_OP_SEND: sqe->op_flags = request->flags | MSG_NOSIGNAL; break;
    case RS_OP_RECV: sqe->op_flags = request->flags; break;
    case RS_OP_SENDMSG:
        sqe->op_flags = request->flags | MSG_NOSIGNAL;
        sqe->len = 1;
        break;
    case RS_OP_RECVMSG:
        sqe->op_flags = request->flags | MSG_CMSG_CLOEXEC;
        sqe->len = 1;
        break;
    case RS_OP_ACCEPT:
        sqe->op_flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
        if (rs_op_lasts(op)) sqe->priority = URING_ACCEPT_MULTISHOT;
        break;
    case RS_OP_CONNECT:
        sqe->address = pointer(request->extra);
        sqe->offset = request->extra_len;
        break;
    case RS_OP_POLL: sqe->op_flags = request->flags; break;
    case RS_OP_OPEN:
        sqe->fd = AT_FDCWD;
        sqe->op_flags = request->flags | O_CLOEXEC;
        sqe->len = request->mode;
        break;
    case RS_OP_FSYNC: sqe->op_flags = request->flags ? URING_FSYNC_DATASYNC : 0; break;
    case RS_OP_STATX:
        if (request->fd < 0) sqe->fd = AT_FDCWD;
        sqe->address = pointer(request->len ? request->address : "");
        sqe->len = request->flags;
        sqe->offset = pointer(request->extra);
        sqe->op_flags = request->mode;
        break;
    case RS_OP_WAITID:
        sqe->fd = (int32_t)request->offset;
        sqe->len = request->flags;
        sqe->file_index = WEXITED | WNOWAIT;
        sqe->offset = pointer(request->extra);
        break;
    case RS_OP_SPLICE: fill_splice(sqe, request); break;
    default: fill_path(sqe, request); break;
    }
}

/* As is what is tried inline: see try_stream. */
static bool is_for_socket(rs_machine *machine, const rs_request *request) {
    const rs_op_traits *traits = rs_request_traits(request);
    bool plain = traits->moves == RS_MOVES_MEMORY && traits->memory == RS_MEMORY_BUFFER;
    return plain && request->len > 0 && request->offset < 0 && machine->descriptors->table[request->fd].socket;
}

static bool sends(rs_machine *machine, const rs_op *op) {
    if (rs_request_traits(&op->request)->side != RS_SIDE_WRITE) return false;
    return rs_request_is_message(&op->request) || is_for_socket(machine, &op->request);
}

rs_fd_kind uring_kind_now(rs_machine *machine, const rs_op *op) {
    rs_fd_kind kind = rs_descriptor_kind(machine->descriptors, op->request.fd);
    return kind == RS_FD_UNKNOWN ? rs_descriptor_classify(op->request.fd) : kind;
}

static uint64_t bytes_of(const rs_request *request) {
    if (rs_request_traits(request)->memory != RS_MEMORY_VECTOR) return request->len;
    const struct iovec *parts = request->address;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < request->len; i++) bytes += parts[i].iov_len;
    return bytes;
}

/* How the kernel is to be asked.
 *
 * A terminal, or a pipe that others keep blocking: when it is ready the kernel transfers as the plain call would, on our
 * thread, and waits there when somebody was faster or the room does not do. So it only tells of readiness.
 *
 * So it does for a send that has no room: when the kernel finds none after all, it may give it to a thread of its own, which
 * waits there for as long as it takes.
 *
 * A file that lies in the page cache would be copied on our thread, however large. */
uint64_t uring_way_of(rs_machine *machine, const rs_op *op, bool poll_first) {
    if (calls[op->request.kind].by_worker) return URING_FOR_WORKER;
    /* A connect has begun with our own try, and the kernel would refuse a second one; a datagram to a full receiver it tries
     * again with no bytes left. */
    if (rs_retry_fits(op) || sends(machine, op)) return URING_FOR_READINESS;
    uint64_t first = poll_first ? URING_POLL_FIRST : 0;
    if (rs_request_is_message(&op->request)) return first;
    if (rs_request_traits(&op->request)->moves != RS_MOVES_MEMORY) return 0;
    rs_fd_kind kind = uring_kind_now(machine, op);
    if (kind == RS_FD_BLOCKING) return URING_FOR_READINESS;
    if (kind == RS_FD_STREAM && is_for_socket(machine, &op->request)) return URING_FOR_SOCKET | first;
    bool file = kind == RS_FD_FILE_LOCAL || kind == RS_FD_FILE_REMOTE;
    return file && (machine->options.offload_files || bytes_of(&op->request) > COPY_MAX) ? URING_FOR_WORKER : 0;
}

void uring_fill(uring_sqe *sqe, const rs_op *op) {
    const rs_request *request = &op->request;
    sqe->user_data = rs_op_id(op);
    sqe->fd = request->fd;
    if (op->backend_word & URING_FOR_READINESS) {
        sqe->opcode = URING_OP_POLL_ADD;
        sqe->op_flags = readiness_of(op);
        return;
    }
    sqe->opcode = uring_opcode(request->kind);
    if (op->backend_word & URING_FOR_WORKER) sqe->flags = URING_SQE_ASYNC;
    if (op->backend_word & URING_FROM_POOL) {
        sqe->flags |= URING_SQE_BUFFER_SELECT;
        sqe->buffer_group = URING_POOL_GROUP;
    }
    if (op->backend_word & URING_POLL_FIRST) sqe->priority = URING_RECVSEND_POLL_FIRST;
    sqe->address = pointer(request->address);
    sqe->len = request->len < LEN_MAX ? (uint32_t)request->len : LEN_MAX;
    if (op->backend_word & URING_FOR_SOCKET) {
        sqe->opcode = URING_OP_RECV;
        return;
    }
    fill_rest(sqe, op);
}
