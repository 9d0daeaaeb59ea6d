#include "uring_entry.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What one entry can ask for, and more than any transfer moves at once. */
#define LEN_MAX 0x7ffff000u

static uint64_t pointer(const void *address) { return (uint64_t)(uintptr_t)address; }

uint8_t uring_opcode(uint32_t kind) {
    static const uint8_t opcodes[RS_OP_KINDS] = {
        [RS_OP_READ] = URING_OP_READ, [RS_OP_WRITE] = URING_OP_WRITE, [RS_OP_PREAD] = URING_OP_READ,
        [RS_OP_PWRITE] = URING_OP_WRITE, [RS_OP_READV] = URING_OP_READV, [RS_OP_WRITEV] = URING_OP_WRITEV,
        [RS_OP_RECV] = URING_OP_RECV, [RS_OP_SEND] = URING_OP_SEND, [RS_OP_RECVMSG] = URING_OP_RECVMSG,
        [RS_OP_SENDMSG] = URING_OP_SENDMSG, [RS_OP_ACCEPT] = URING_OP_ACCEPT, [RS_OP_CONNECT] = URING_OP_CONNECT,
        [RS_OP_POLL] = URING_OP_POLL_ADD, [RS_OP_OPEN] = URING_OP_OPENAT, [RS_OP_FSYNC] = URING_OP_FSYNC,
        [RS_OP_STATX] = URING_OP_STATX, [RS_OP_WAITID] = URING_OP_WAITID,
    };
    return opcodes[kind];
}

static uint32_t readiness_of(const rs_op *op) {
    return rs_op_table[op->request.kind].side == RS_SIDE_WRITE ? POLLOUT : POLLIN;
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
        if (op->series) sqe->priority = URING_ACCEPT_MULTISHOT;
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
    default: break;
    }
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
    if (op->backend_word & URING_POLL_FIRST) sqe->priority = URING_RECVSEND_POLL_FIRST;
    sqe->address = pointer(request->address);
    sqe->len = request->len < LEN_MAX ? (uint32_t)request->len : LEN_MAX;
    if (op->backend_word & URING_FOR_SOCKET) {
        sqe->opcode = request->kind == RS_OP_READ ? URING_OP_RECV : URING_OP_SEND;
        sqe->op_flags = request->kind == RS_OP_READ ? 0 : MSG_NOSIGNAL;
        return;
    }
    fill_rest(sqe, op);
}
