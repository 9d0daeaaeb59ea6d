#include "backend/uring/entry.h"
#include "backend/retry.h"
#include "backend/uring/pool.h"
#include "core/machine.h"
#include "ops/descriptors.h"
#include "ringspun/kernel/descriptor_kinds.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What one entry can ask for, and as much as any transfer moves at once: read(2), NOTES. */
#define LEN_MAX 0x7ffff000u

static uint64_t pointer(const void *address) { return (uint64_t)(uintptr_t)address; }

/* A copy of this size costs less than handing it to anybody. */
#define COPY_MAX 65536u

/* --- an entry for each kind --- */

/* `by_worker`: a thread of the kernel's does it, without a first try on ours. An open is tried first all the same, with O_NONBLOCK:
 * that of a FIFO then does not wait for its other end: fifo(7).
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/openclose.c (io_openat2) */
typedef struct {
    uint8_t opcode;             /* NOP: none of them does this */
    bool by_worker;
    void (*fill)(uring_sqe *sqe, const rs_op *op);
} uring_call;

static void put_bytes(uring_sqe *sqe, const void *address, uint64_t len) {
    sqe->address = pointer(address);
    sqe->len = len < LEN_MAX ? (uint32_t)len : LEN_MAX;
}

static void fill_transfer(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(rs_request_traits(&op->request)->memory == RS_MEMORY_BUFFER);
    const rs_transfer *transfer = &op->request.transfer;
    put_bytes(sqe, transfer->address, transfer->len);
    sqe->offset = (uint64_t)transfer->offset;
}

static void fill_vector(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(rs_request_traits(&op->request)->memory == RS_MEMORY_VECTOR);
    const rs_vector *vector = &op->request.vector;
    put_bytes(sqe, vector->parts, vector->count);
    sqe->offset = (uint64_t)vector->offset;
}

static void fill_recv(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(rs_request_traits(&op->request)->memory == RS_MEMORY_BUFFER);
    const rs_transfer *transfer = &op->request.transfer;
    put_bytes(sqe, transfer->address, transfer->len);
    sqe->op_flags = transfer->flags;
}

/* Of one that nobody has tried: where there is no room it is answered so, and waits for that like all others. */
static void fill_send(uring_sqe *sqe, const rs_op *op) {
    fill_recv(sqe, op);
    sqe->op_flags |= MSG_NOSIGNAL | MSG_DONTWAIT;
}

static void fill_message(uring_sqe *sqe, const rs_op *op) {
    const rs_message_transfer *message = &op->request.message;
    RS_CHECK(message->header != NULL);
    put_bytes(sqe, message->header, 1);
    sqe->op_flags = message->flags | (op->request.kind == RS_OP_SENDMSG ? MSG_NOSIGNAL : MSG_CMSG_CLOEXEC);
}

static void fill_accept(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.kind == RS_OP_ACCEPT);
    sqe->op_flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    if (rs_op_lasts(op)) sqe->priority = URING_ACCEPT_MULTISHOT;
}

static void fill_connect(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.kind == RS_OP_CONNECT);
    sqe->address = pointer(op->request.address.bytes);
    sqe->offset = op->request.address.len;
}

static void fill_poll(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.kind == RS_OP_POLL);
    sqe->op_flags = op->request.poll.events;
}

/* A poll of the kernel's is not woken for POLLPRI alone, which it leaves out when it compares (IO_ASYNC_POLL_COMMON), and answers it
 * when bytes have come that are not urgent. Sockets are woken for POLLRDBAND at the same time.
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/poll.c */
static bool waits_for_priority(const rs_op *op) { return op->request.kind == RS_OP_POLL && (op->request.poll.events & POLLPRI); }

static void fill_open(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.open.path != NULL);
    const rs_open_request *open = &op->request.open;
    sqe->fd = AT_FDCWD;
    sqe->address = pointer(open->path);
    sqe->op_flags = open->flags | O_CLOEXEC;
    sqe->len = open->mode;
}

static void fill_fsync(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.kind == RS_OP_FSYNC);
    sqe->op_flags = op->request.fsync.data_only ? URING_FSYNC_DATASYNC : 0;
}

static void fill_statx(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.statx.answer != NULL);
    const rs_statx_request *statx = &op->request.statx;
    if (op->request.fd < 0) sqe->fd = AT_FDCWD;
    sqe->address = pointer(statx->path ? statx->path : "");
    sqe->len = statx->mask;
    sqe->offset = pointer(statx->answer);
    sqe->op_flags = statx->flags;
}

static void fill_wait(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.wait.info != NULL && op->request.wait.info == op->request.owned);
    const rs_wait_request *wait = &op->request.wait;
    sqe->fd = wait->id;
    sqe->len = (uint32_t)wait->id_type;
    sqe->file_index = WEXITED | WNOWAIT;
    sqe->offset = pointer(wait->info);
}

static void fill_splice(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(rs_request_has_target(&op->request) && op->request.fd >= 0);
    const rs_splice_transfer *splice = &op->request.splice;
    put_bytes(sqe, NULL, splice->len);
    sqe->fd = splice->to_fd;
    sqe->file_index = (uint32_t)op->request.fd;
    sqe->address = sqe->offset = UINT64_MAX; /* their own positions */
    sqe->op_flags = SPLICE_F_NONBLOCK;
}

static void fill_unlink(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.path.path != NULL);
    sqe->fd = AT_FDCWD;
    sqe->address = pointer(op->request.path.path);
}

static void fill_rename(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.path.to != NULL);
    fill_unlink(sqe, op);
    sqe->offset = pointer(op->request.path.to);
    sqe->len = (uint32_t)AT_FDCWD;
}

static void fill_mkdir(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.kind == RS_OP_MKDIR);
    fill_unlink(sqe, op);
    sqe->len = op->request.path.mode;
}

static void fill_ftruncate(uring_sqe *sqe, const rs_op *op) { sqe->offset = (uint64_t)op->request.truncate.size; }

static void fill_fallocate(uring_sqe *sqe, const rs_op *op) {
    RS_CHECK(op->request.kind == RS_OP_FALLOCATE);
    const rs_room_request *room = &op->request.room;
    sqe->offset = (uint64_t)room->offset;
    sqe->address = room->len;
    sqe->len = (uint32_t)room->mode;
}

static const uring_call calls[RS_OP_KINDS] = {
    [RS_OP_READ] = {URING_OP_READ, false, fill_transfer},
    [RS_OP_WRITE] = {URING_OP_WRITE, false, fill_transfer},
    [RS_OP_PREAD] = {URING_OP_READ, false, fill_transfer},
    [RS_OP_PWRITE] = {URING_OP_WRITE, false, fill_transfer},
    [RS_OP_READV] = {URING_OP_READV, false, fill_vector},
    [RS_OP_WRITEV] = {URING_OP_WRITEV, false, fill_vector},
    [RS_OP_RECV] = {URING_OP_RECV, false, fill_recv},
    [RS_OP_SEND] = {URING_OP_SEND, false, fill_send},
    [RS_OP_RECVMSG] = {URING_OP_RECVMSG, false, fill_message},
    [RS_OP_SENDMSG] = {URING_OP_SENDMSG, false, fill_message},
    [RS_OP_ACCEPT] = {URING_OP_ACCEPT, false, fill_accept},
    [RS_OP_CONNECT] = {URING_OP_CONNECT, false, fill_connect},
    [RS_OP_POLL] = {URING_OP_POLL_ADD, false, fill_poll},
    [RS_OP_OPEN] = {URING_OP_OPENAT, true, fill_open},
    [RS_OP_FSYNC] = {URING_OP_FSYNC, true, fill_fsync},
    [RS_OP_STATX] = {URING_OP_STATX, true, fill_statx},
    [RS_OP_WAITID] = {URING_OP_WAITID, false, fill_wait},
    [RS_OP_SPLICE] = {URING_OP_SPLICE, true, fill_splice},
    [RS_OP_UNLINK] = {URING_OP_UNLINKAT, true, fill_unlink},
    [RS_OP_RENAME] = {URING_OP_RENAMEAT, true, fill_rename},
    [RS_OP_MKDIR] = {URING_OP_MKDIRAT, true, fill_mkdir},
    [RS_OP_FTRUNCATE] = {URING_OP_FTRUNCATE, true, fill_ftruncate},
    [RS_OP_FALLOCATE] = {URING_OP_FALLOCATE, true, fill_fallocate},
};

uint8_t uring_opcode(uint32_t kind) {
    RS_CHECK(kind < RS_OP_KINDS);
    return calls[kind].opcode;
}

uint8_t uring_opcode_now(const rs_op *op) {
    const uring_op *way = uring_of(op);
    RS_CHECK(way->for_readiness + way->by_recv + way->by_send <= 1);
    if (way->for_readiness) return URING_OP_POLL_ADD;
    if (way->by_send) return URING_OP_SEND;
    return way->by_recv ? URING_OP_RECV : uring_opcode(op->request.kind);
}

/* --- how the kernel is asked --- */

/* As is what is tried inline: see try_stream. */
static bool is_for_socket(const rs_machine *machine, const rs_request *request) {
    const rs_op_traits *traits = rs_request_traits(request);
    bool plain = traits->moves == RS_MOVES_MEMORY && traits->memory == RS_MEMORY_BUFFER;
    if (!plain || request->transfer.len == 0 || request->transfer.offset >= 0) return false;
    RS_CHECK((uint32_t)request->fd < rs_descriptors_in(machine)->capacity);
    return rs_descriptors_in(machine)->table[request->fd].socket;
}

static bool sends(rs_machine *machine, const rs_op *op) {
    if (rs_request_traits(&op->request)->side != RS_SIDE_WRITE) return false;
    return rs_request_is_message(&op->request) || is_for_socket(machine, &op->request);
}

rs_fd_kind uring_kind_now(rs_machine *machine, const rs_op *op) {
    RS_CHECK(op->request.fd >= 0);
    rs_fd_kind kind = rs_descriptor_kind(rs_descriptors_in(machine), op->request.fd);
    return kind == RS_FD_UNKNOWN ? rs_descriptor_classify(op->request.fd) : kind;
}

static int64_t offset_of(const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->moves == RS_MOVES_MEMORY);
    bool vector = rs_request_traits(request)->memory == RS_MEMORY_VECTOR;
    return vector ? request->vector.offset : request->transfer.offset;
}

uint8_t uring_opcode_untried(const rs_machine *machine, const rs_request *request) {
    bool reads = rs_request_traits(request)->side == RS_SIDE_READ;
    return !is_for_socket(machine, request) ? uring_opcode(request->kind) : reads ? URING_OP_RECV : URING_OP_SEND;
}

/* A stream that is our own, so what there is comes at once: the kernel looks first. */
static void choose_untried(rs_machine *machine, rs_op *op) {
    uring_op *way = uring_of(op);
    bool socket = is_for_socket(machine, &op->request), reads = rs_request_traits(&op->request)->side == RS_SIDE_READ;
    way->by_recv = socket && reads;
    way->by_send = socket && !reads;
    RS_CHECK(uring_opcode_now(op) == uring_opcode_untried(machine, &op->request));
}

/* A terminal, or a pipe that others keep blocking: when it is ready the kernel transfers as the plain call would, on our
 * thread, and waits there when somebody was faster or the room does not do. So it only polls.
 *
 * So it does for a send that has no room: when the kernel finds none after all, it may give it to a thread of its own, which
 * waits there for as long as it takes.
 *
 * A file that lies in the page cache would be copied on our thread, however large. */
void uring_choose_way(rs_machine *machine, rs_op *op, bool poll_first) {
    uring_op *way = uring_of(op);
    RS_CHECK(calls[op->request.kind].fill != NULL && !way->for_readiness && !way->by_worker && !way->from_pool);
    if (op->request.options & RS_REQUEST_UNTRIED) {
        choose_untried(machine, op);
        return;
    }
    if (calls[op->request.kind].by_worker) {
        way->by_worker = true;
        return;
    }
    /* A connect has begun with our own try, and the kernel would refuse a second one (EALREADY, connect(2)); a datagram to a full
     * receiver it tries again with no bytes left (test_a_datagram_to_a_full_receiver_waits_and_does_not_spin). */
    if (rs_retry_fits(op) || sends(machine, op) || waits_for_priority(op)) {
        way->for_readiness = true;
        return;
    }
    if (rs_request_is_message(&op->request)) way->poll_first = poll_first;
    if (rs_request_traits(&op->request)->moves != RS_MOVES_MEMORY) return;
    rs_fd_kind kind = uring_kind_now(machine, op);
    bool file = rs_fd_is_file(kind);
    way->for_readiness = kind == RS_FD_BLOCKING;
    way->by_recv = kind == RS_FD_STREAM && is_for_socket(machine, &op->request);
    way->poll_first = way->by_recv && poll_first;
    way->moves_position = file && rs_request_traits(&op->request)->side == RS_SIDE_WRITE && offset_of(&op->request) < 0;
    way->by_worker = file && (machine->options.offload_files || rs_request_len(&op->request) > COPY_MAX);
}

void uring_choose_readiness(rs_op *op) {
    uring_op *way = uring_of(op);
    RS_CHECK(rs_op_kinds[op->request.kind].side != RS_SIDE_NONE);
    way->by_worker = way->by_recv = way->by_send = way->poll_first = way->from_pool = way->moves_position = false;
    way->for_readiness = true;
}

static uint32_t readiness_of(const rs_op *op) {
    RS_CHECK(rs_op_kinds[op->request.kind].side != RS_SIDE_NONE);
    if (op->request.kind == RS_OP_POLL) return op->request.poll.events | POLLRDBAND;
    return rs_op_kinds[op->request.kind].side == RS_SIDE_WRITE ? POLLOUT : POLLIN;
}

void uring_correct_position(const rs_op *op, int64_t written) {
    const uring_op *way = uring_of(op);
    if (!way->moves_position || written <= 0 || way->position < 0) return;
    RS_CHECK((uint64_t)written <= rs_request_len(&op->request));
    if (lseek(op->request.fd, 0, SEEK_CUR) == way->position) lseek(op->request.fd, way->position + written, SEEK_SET);
}

static void fill_plain(uring_sqe *sqe, rs_op *op) {
    const uring_call *call = &calls[op->request.kind];
    uring_op *way = uring_of(op);
    sqe->fd = op->request.fd;
    if (way->for_readiness) {
        sqe->opcode = URING_OP_POLL_ADD;
        sqe->op_flags = readiness_of(op);
        return;
    }
    if (way->moves_position) way->position = lseek(op->request.fd, 0, SEEK_CUR);
    if (way->by_worker) sqe->flags = URING_SQE_ASYNC;
    if (way->from_pool) {
        sqe->flags |= URING_SQE_BUFFER_SELECT;
        sqe->buffer_group = URING_POOL_GROUP;
    }
    if (way->poll_first) sqe->priority = URING_RECVSEND_POLL_FIRST;
    sqe->opcode = uring_opcode_now(op);
    if (way->by_recv) fill_recv(sqe, op);
    else if (way->by_send) fill_send(sqe, op);
    else call->fill(sqe, op);
}

/* The same of no descriptor, of no path, of a process that there cannot be: it has no effect, and where the ring does such things the
 * kernel finds nothing wrong but that. */
static void fill_question(uring_sqe *sqe, rs_op *op) {
    uring_sqe plain = {0};
    fill_plain(&plain, op);
    sqe->opcode = plain.opcode;
    sqe->flags = plain.flags;
    sqe->priority = plain.priority;
    sqe->buffer_group = plain.buffer_group;
    sqe->fd = -1;
    if (plain.opcode != URING_OP_WAITID) return;
    sqe->fd = INT32_MAX;
    sqe->len = P_PID;
    sqe->file_index = WEXITED | WNOHANG | WNOWAIT;
}

void uring_fill(uring_sqe *sqe, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && sqe->opcode == URING_OP_NOP);
    RS_CHECK(op->generation != 0 && !(rs_op_id(op) & (rs_id)1 << 31)); /* what other names have (state.h) */
    sqe->user_data = rs_op_id(op);
    if (RS_UNLIKELY(uring_of(op)->asks)) fill_question(sqe, op);
    else fill_plain(sqe, op);
}
