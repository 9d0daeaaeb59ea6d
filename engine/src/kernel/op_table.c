#include "kernel/op_table.h"
#include "core/machine.h"
#include "kernel/paths.h"
#include "ops/descriptors.h"
#include "ringspun/kernel/descriptor_kinds.h"
#include "kernel/platform.h"
#include "ringspun/kernel/resolve.h"
#include "ringspun/kernel/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* A read or write of this size costs less than handing it to anybody. */
#define INLINE_FILE_MAX 65536u

/* A terminal is ready from 256 bytes of room on, but asks again before every byte that it processes, and the piece before that may
 * have taken all of the room. So it gets half of that in one piece, and a byte that it processes alone.
 * https://github.com/torvalds/linux/blob/v6.18/drivers/tty/tty_buffer.c (TTYB_ALIGN_MASK, tty_buffer_space_avail)
 * https://github.com/torvalds/linux/blob/v6.18/drivers/tty/n_tty.c (n_tty_poll, process_output) */
#define TERMINAL_ROOM 128u

/* More than this goes out in several calls: while somebody on another processor takes as fast as we give, one call goes on for
 * as long as there are bytes. */
#define ONE_CALL_MAX 262144u
#define COPIES 16

#define RETRY(result, call)                                                                                           \
    do {                                                                                                              \
        (result) = (call);                                                                                            \
        if ((result) < 0) (result) = -errno;                                                                          \
    } while ((result) == -EINTR)

static bool is_refused(int64_t result) { return result == -EPERM || result == -ENOSYS || result == -EACCES; }

/* A sandbox may know one of the two. */
static int64_t look(struct pollfd *descriptor) {
    static const struct timespec at_once;
    int64_t result;
    RETRY(result, poll(descriptor, 1, 0));
    if (RS_UNLIKELY(is_refused(result))) RETRY(result, ppoll(descriptor, 1, &at_once, NULL));
    return result;
}

/* Blocking stream: ready now? The answer can be outrun only by another process that shares the descriptor. Where nobody may
 * ask, a call that waits keeps the thread; one that is never made, because nothing says that it will not wait, keeps its
 * strand for ever. */
static bool ready(int fd, short events) {
    RS_CHECK(events == POLLIN || events == POLLOUT);
    struct pollfd descriptor = {.fd = fd, .events = events};
    int64_t result = look(&descriptor);
    return result > 0 || is_refused(result);
}

typedef struct {
    const struct iovec *parts;
    int count;
    int64_t offset;             /* -1: the descriptor's own position */
    uint64_t bytes;
} transfer;

static transfer transfer_of(const rs_request *request, struct iovec *single) {
    RS_CHECK(rs_request_traits(request)->moves == RS_MOVES_MEMORY);
    if (rs_request_traits(request)->memory == RS_MEMORY_VECTOR) {
        const rs_vector *vector = &request->vector;
        return (transfer){vector->parts, (int)vector->count, vector->offset, rs_vector_len(vector)};
    }
    const rs_transfer *plain = &request->transfer;
    *single = (struct iovec){.iov_base = plain->address, .iov_len = plain->len};
    return (transfer){single, 1, plain->offset, plain->len};
}

static int64_t plain_read(int fd, const transfer *t) {
    RS_CHECK(t->count >= 0 && (t->parts != NULL || t->count == 0));
    int64_t result;
    if (t->offset >= 0) RETRY(result, preadv(fd, t->parts, t->count, t->offset));
    else if (t->count == 1) RETRY(result, read(fd, t->parts->iov_base, t->parts->iov_len));
    else RETRY(result, readv(fd, t->parts, t->count));
    return result;
}

static int64_t plain_write(int fd, const transfer *t) {
    RS_CHECK(t->count >= 0 && (t->parts != NULL || t->count == 0));
    int64_t result;
    if (t->offset >= 0) RETRY(result, pwritev(fd, t->parts, t->count, t->offset));
    else if (t->count == 1) RETRY(result, write(fd, t->parts->iov_base, t->parts->iov_len));
    else RETRY(result, writev(fd, t->parts, t->count));
    return result;
}

/* Unlike a plain read, these do not wait, even where the number is not what we think. */
static int64_t socket_read(int fd, const transfer *t) {
    RS_CHECK(t->bytes > 0 && t->offset < 0);
    struct msghdr header = {.msg_iov = (struct iovec *)t->parts, .msg_iovlen = (size_t)t->count};
    int64_t result;
    if (t->count == 1) RETRY(result, recv(fd, t->parts->iov_base, t->parts->iov_len, MSG_DONTWAIT));
    else RETRY(result, recvmsg(fd, &header, MSG_DONTWAIT));
    return result;
}

static int64_t socket_write(int fd, const transfer *t) {
    RS_CHECK(t->bytes > 0 && t->offset < 0);
    struct msghdr header = {.msg_iov = (struct iovec *)t->parts, .msg_iovlen = (size_t)t->count};
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    int64_t result;
    if (t->count == 1) RETRY(result, send(fd, t->parts->iov_base, t->parts->iov_len, flags));
    else RETRY(result, sendmsg(fd, &header, flags));
    return result;
}

/* What one call is to write of it. A small part by itself would take a whole page of a pipe, so the one that is too long is
 * cut, where the copies that this takes are few. */
static transfer bounded(const rs_machine *machine, int fd, const transfer *t, struct iovec copies[COPIES]) {
    if (RS_LIKELY(t->bytes <= ONE_CALL_MAX) || !rs_descriptor_carries_bytes(rs_descriptors_in(machine), fd)) return *t;
    transfer part = {t->parts, 0, t->offset, 0};
    while (part.bytes + t->parts[part.count].iov_len <= ONE_CALL_MAX) part.bytes += t->parts[part.count++].iov_len;
    RS_CHECK(part.count < t->count);
    if (part.count >= COPIES) return part;
    memcpy(copies, t->parts, sizeof(struct iovec) * (size_t)(part.count + 1));
    copies[part.count++].iov_len = ONE_CALL_MAX - part.bytes;
    return (transfer){copies, part.count, t->offset, ONE_CALL_MAX};
}

/* -ENOTSOCK: it is our socket no more, and the hint is gone. */
static inline int64_t try_stream(rs_machine *machine, int fd, const transfer *t, bool writes) {
    RS_CHECK(rs_descriptor_kind(rs_descriptors_in(machine), fd) == RS_FD_STREAM);
    rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[fd];
    /* Nothing to transfer never waits, and a place in a stream is refused; recv(2) answers neither as read(2) does. */
    if (!descriptor->socket || t->bytes == 0 || t->offset >= 0) return writes ? plain_write(fd, t) : plain_read(fd, t);
    int64_t result = writes ? socket_write(fd, t) : socket_read(fd, t);
    if (RS_UNLIKELY(result == -ENOTSOCK)) descriptor->kind = RS_FD_UNKNOWN;
    return result;
}

static int64_t attempt_read(rs_machine *machine, const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->side == RS_SIDE_READ);
    struct iovec single;
    transfer t = transfer_of(request, &single);
    int64_t result;
    rs_fd_kind kind = rs_descriptor_kind(rs_descriptors_in(machine), request->fd);
    if (RS_LIKELY(kind == RS_FD_STREAM)) {
        result = try_stream(machine, request->fd, &t, false);
        if (RS_LIKELY(result != -ENOTSOCK)) return result;
        kind = RS_FD_UNKNOWN;
    }
    /* A file that lies in the page cache would be copied here and now, however large. */
    if (kind == RS_FD_UNKNOWN && t.bytes > INLINE_FILE_MAX) kind = rs_descriptor_classify(request->fd);
    if (kind == RS_FD_STREAM) return plain_read(request->fd, &t);
    bool file = rs_fd_is_file(kind);
    if (file && (machine->options.offload_files || t.bytes > INLINE_FILE_MAX)) return -EAGAIN;
    RETRY(result, preadv2(request->fd, t.parts, t.count, t.offset, RWF_NOWAIT));
    if (result != -EOPNOTSUPP && !is_refused(result)) return result; /* a sandbox may not know it */
    if (!file) kind = rs_descriptor_classify(request->fd);
    if (kind == RS_FD_STREAM) return plain_read(request->fd, &t);
    /* preadv2 has answered EBADF for what is not open, so here a sandbox forbids fstat(2). */
    bool hidden = kind == RS_FD_UNKNOWN;
    bool waits_not = hidden || kind == RS_FD_BLOCKING || kind == RS_FD_MEMORY ||
                     (kind == RS_FD_FILE_LOCAL && rs_descriptor_is_virtual(request->fd));
    return waits_not && ready(request->fd, POLLIN) ? plain_read(request->fd, &t) : -EAGAIN;
}

/* Buffered writes cannot be tried without waiting (no NOWAIT on ext4 and tmpfs), but on a local filesystem a small one
 * is a copy into the page cache. https://man7.org/linux/man-pages/man2/readv.2.html (RWF_NOWAIT) */
static int64_t write_file(rs_machine *machine, const rs_request *request, const transfer *t, rs_fd_kind kind) {
    RS_CHECK(rs_fd_is_file(kind) || kind == RS_FD_MEMORY);
    bool at_once = kind == RS_FD_FILE_LOCAL && t->bytes <= INLINE_FILE_MAX && !machine->options.offload_files;
    if (!at_once && kind != RS_FD_MEMORY) return -EAGAIN;
    machine->metrics.file_writes_inline += rs_fd_is_file(kind);
    machine->turn.quiet_writes++;
    return plain_write(request->fd, t);
}

/* The first bytes of those that do not wait if the terminal is ready (TERMINAL_ROOM). */
static size_t terminal_step(const struct termios *terminal, const struct iovec *part) {
    RS_CHECK(part->iov_len > 0);
    const uint8_t *bytes = part->iov_base;
    size_t most = part->iov_len < TERMINAL_ROOM ? part->iov_len : TERMINAL_ROOM, plain = 0;
    if (!(terminal->c_oflag & OPOST)) return most;
    while (plain < most && bytes[plain] >= ' ' && bytes[plain] != 127) plain++;
    return plain ? plain : 1;
}

/* A blocking pipe that is ready takes PIPE_BUF bytes at once; more might wait.
 * https://man7.org/linux/man-pages/man7/pipe.7.html */
static int64_t write_blocking(const rs_request *request, const transfer *t) {
    if (t->bytes == 0) return plain_write(request->fd, t);
    if (!ready(request->fd, POLLOUT)) return -EAGAIN;
    const struct iovec *part = t->parts;
    while (part->iov_len == 0) part++;
    RS_CHECK(part < t->parts + t->count);
    struct iovec first = *part;
    struct termios terminal;
    if (first.iov_len > PIPE_BUF) first.iov_len = PIPE_BUF;
    if (first.iov_len > 1 && tcgetattr(request->fd, &terminal) == 0) first.iov_len = terminal_step(&terminal, part);
    transfer small = {&first, 1, t->offset, first.iov_len};
    return plain_write(request->fd, &small);
}

/* The kernel itself is asked not to wait, which it can on pipes and sockets, whoever made them and in whatever mode they are.
 * -EOPNOTSUPP: not on this. A sandbox may refuse the call itself. */
static int64_t write_without_waiting(int fd, const transfer *t) {
    RS_CHECK(t->bytes > 0 && t->bytes <= ONE_CALL_MAX);
    int64_t result;
    RETRY(result, pwritev2(fd, t->parts, t->count, t->offset, RWF_NOWAIT));
    return result == -ENOSYS || result == -EPERM ? -EOPNOTSUPP : result;
}

static bool is_written_like_file(rs_fd_kind kind) { return rs_fd_is_file(kind) || kind == RS_FD_MEMORY; }

static int64_t attempt_write(rs_machine *machine, const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->side == RS_SIDE_WRITE);
    struct iovec single;
    transfer t = transfer_of(request, &single);
    struct iovec copies[COPIES];
    rs_fd_kind kind = rs_descriptor_kind(rs_descriptors_in(machine), request->fd);
    if (RS_LIKELY(kind == RS_FD_STREAM)) {
        transfer part;
        bool large = t.bytes > ONE_CALL_MAX;
        if (RS_UNLIKELY(large)) part = bounded(machine, request->fd, &t, copies);
        int64_t result = try_stream(machine, request->fd, RS_UNLIKELY(large) ? &part : &t, true);
        if (RS_LIKELY(result != -ENOTSOCK)) return result;
        kind = RS_FD_UNKNOWN;
    }
    if (is_written_like_file(kind)) return write_file(machine, request, &t, kind);
    /* Of a message without bytes a vector's write makes none. */
    if (t.bytes > 0 && t.bytes <= ONE_CALL_MAX) {
        int64_t result = write_without_waiting(request->fd, &t);
        if (result != -EOPNOTSUPP) return result;
    }
    if (kind == RS_FD_BLOCKING) return write_blocking(request, &t);
    kind = rs_descriptor_classify(request->fd);
    if (is_written_like_file(kind)) return write_file(machine, request, &t, kind);
    if (kind == RS_FD_STREAM || kind == RS_FD_UNKNOWN) {
        t = bounded(machine, request->fd, &t, copies);
        return plain_write(request->fd, &t);
    }
    return write_blocking(request, &t);
}

static int64_t execute_read(const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->side == RS_SIDE_READ);
    struct iovec single;
    transfer t = transfer_of(request, &single);
    return plain_read(request->fd, &t);
}

static int64_t execute_write(const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->side == RS_SIDE_WRITE);
    struct iovec single;
    transfer t = transfer_of(request, &single);
    return plain_write(request->fd, &t);
}

static int64_t attempt_recv(rs_machine *machine, const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->memory == RS_MEMORY_BUFFER);
    (void)machine;
    int64_t result;
    const rs_transfer *asked = &request->transfer;
    RETRY(result, recv(request->fd, asked->address, asked->len, (int)asked->flags | MSG_DONTWAIT));
    return result;
}

static int64_t attempt_send(rs_machine *machine, const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->memory == RS_MEMORY_BUFFER);
    int64_t result;
    int flags = (int)request->transfer.flags | MSG_DONTWAIT | MSG_NOSIGNAL;
    size_t len = request->transfer.len;
    if (RS_UNLIKELY(len > ONE_CALL_MAX) && rs_descriptor_carries_bytes(rs_descriptors_in(machine), request->fd)) len = ONE_CALL_MAX;
    RETRY(result, send(request->fd, request->transfer.address, len, flags));
    return result;
}

static int64_t attempt_recvmsg(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->message.header != NULL);
    (void)machine;
    int64_t result;
    RETRY(result, recvmsg(request->fd, request->message.header, (int)request->message.flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    return result;
}

static int64_t attempt_sendmsg(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->message.header != NULL);
    (void)machine;
    int64_t result;
    RETRY(result, sendmsg(request->fd, request->message.header, (int)request->message.flags | MSG_DONTWAIT | MSG_NOSIGNAL));
    return result;
}

/* Of anything else accept says at once what is wrong: https://man7.org/linux/man-pages/man2/accept.2.html */
static bool listens(int fd) {
    int answer = 0;
    socklen_t size = sizeof(answer);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &answer, &size) == 0 && answer;
}

static int64_t attempt_accept(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_ACCEPT);
    (void)machine;
    if (!ready(request->fd, POLLIN) && listens(request->fd)) return -EAGAIN;
    int64_t result;
    RETRY(result, accept4(request->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return result;
}

/* Called again when the socket is ready: Linux then answers 0 or the error of the attempt that has ended.
 * https://github.com/torvalds/linux/blob/v6.18/net/ipv4/af_inet.c (__inet_stream_connect)
 *
 * A connect knows no flag for not waiting, and a thread that waits in it cannot be called back, so a blocking socket is made
 * non-blocking for just this call. Nobody else can do anything with it before it is connected. */
static int64_t attempt_connect(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->address.bytes != NULL || request->address.len == 0);
    (void)machine;
    int flags = fcntl(request->fd, F_GETFL);
    if (flags < 0) return -errno;
    bool blocking = !(flags & O_NONBLOCK);
    int64_t result;
    if (RS_UNLIKELY(blocking) && fcntl(request->fd, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
    RETRY(result, connect(request->fd, request->address.bytes, request->address.len));
    if (RS_UNLIKELY(blocking)) fcntl(request->fd, F_SETFL, flags);
    return result == -EINPROGRESS || result == -EALREADY ? -EAGAIN : result;
}

static int64_t attempt_poll(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_POLL);
    (void)machine;
    struct pollfd descriptor = {.fd = request->fd, .events = (short)request->poll.events};
    int64_t result = look(&descriptor);
    if (result <= 0) return result == 0 ? -EAGAIN : result;
    return descriptor.revents & POLLNVAL ? -EBADF : descriptor.revents;
}

static int64_t execute_open(const rs_request *request) {
    RS_CHECK(request->open.path != NULL);
    int64_t result;
    RETRY(result, open(request->open.path, (int)request->open.flags | O_CLOEXEC, request->open.mode));
    return result;
}

/* A FIFO or a device may keep open waiting for somebody else: not on this thread.
 * https://man7.org/linux/man-pages/man7/fifo.7.html */
static int64_t attempt_open(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_OPEN);
    /* A strand on its way out may not wait for a worker, who could have to do with a FIFO. */
    bool unwinds = machine->running != RS_NO_INDEX && rs_runs(machine)->scope->met;
    if (machine->options.offload_files && !unwinds) return -EAGAIN;
    struct stat st;
    bool missing = stat(request->open.path, &st) != 0;
    if (!missing && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return -EAGAIN;
    return execute_open(request);
}

static int64_t attempt_close(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_CLOSE);
    rs_descriptor_drop(machine, request->fd);
    /* Never again after EINTR: the number is free by then, and may be somebody else's.
     * https://man7.org/linux/man-pages/man2/close.2.html */
    int64_t result = close(request->fd);
    return result < 0 && errno != EINTR ? -errno : 0;
}

static int64_t execute_fsync(const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_FSYNC);
    int64_t result;
    RETRY(result, request->fsync.data_only ? fdatasync(request->fd) : fsync(request->fd));
    return result;
}

static int64_t execute_statx(const rs_request *request) {
    RS_CHECK(request->statx.answer != NULL);
    int64_t result;
    const rs_statx_request *asked = &request->statx;
    int fd = request->fd < 0 ? AT_FDCWD : request->fd;
    RETRY(result, statx(fd, asked->path ? asked->path : "", (int)asked->flags, asked->mask, asked->answer));
    return result;
}

static int64_t attempt_statx(rs_machine *machine, const rs_request *request) {
    return machine->options.offload_files ? -EAGAIN : execute_statx(request);
}

/* Leaves the child for the binding to reap, so that one place makes the status. */
static int64_t wait_for_child(const rs_request *request, int options) {
    RS_CHECK(request->kind == RS_OP_WAITID);
    siginfo_t info = {0};
    int64_t result;
    RETRY(result, waitid((idtype_t)request->wait.id_type, (id_t)request->wait.id, &info, WEXITED | WNOWAIT | options));
    return result < 0 ? result : info.si_pid;
}

static int64_t attempt_waitid(rs_machine *machine, const rs_request *request) {
    (void)machine;
    int64_t result = wait_for_child(request, WNOHANG);
    return result == 0 ? -EAGAIN : result;
}

static int64_t execute_waitid(const rs_request *request) { return wait_for_child(request, 0); }

static int64_t attempt_wait_on_worker(rs_machine *machine, const rs_request *request) {
    RS_CHECK(rs_op_calls[request->kind].execute != NULL);
    (void)machine;
    return -EAGAIN;
}

static int64_t attempt_socket(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_SOCKET);
    (void)machine;
    const rs_socket_request *asked = &request->socket;
    int64_t result;
    RETRY(result, socket(asked->family, asked->type | SOCK_CLOEXEC | SOCK_NONBLOCK, asked->protocol));
    return result;
}

static int64_t attempt_bind(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->address.bytes != NULL || request->address.len == 0);
    (void)machine;
    int64_t result;
    RETRY(result, bind(request->fd, request->address.bytes, request->address.len));
    return result;
}

static int64_t attempt_listen(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_LISTEN);
    (void)machine;
    int64_t result;
    RETRY(result, listen(request->fd, (int)request->listen.backlog));
    return result;
}

static int64_t attempt_shutdown(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_SHUTDOWN);
    (void)machine;
    int64_t result;
    RETRY(result, shutdown(request->fd, (int)request->shutdown.how));
    return result;
}

static int64_t attempt_setsockopt(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->option.value != NULL || request->option.len == 0);
    (void)machine;
    int64_t result;
    const rs_option_request *option = &request->option;
    RETRY(result, setsockopt(request->fd, option->level, option->name, option->value, option->len));
    return result;
}

static int64_t attempt_getsockopt(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->option.value != NULL || request->option.len == 0);
    (void)machine;
    const rs_option_request *option = &request->option;
    socklen_t len = option->len;
    int64_t result;
    RETRY(result, getsockopt(request->fd, option->level, option->name, option->value, &len));
    return result < 0 ? result : (int64_t)len;
}

static void note_stream(rs_machine *machine, int fd, bool socket) {
    rs_descriptor_note(rs_descriptors_in(machine), fd, RS_FD_STREAM, socket);
}

static int64_t attempt_pipe(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->pipe.pair != NULL);
    int *pair = request->pipe.pair;
    int64_t result;
    RETRY(result, pipe2(pair, O_CLOEXEC | O_NONBLOCK));
    for (int i = 0; result == 0 && i < 2; i++) note_stream(machine, pair[i], false);
    return result;
}

static int64_t attempt_socketpair(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->socket.pair != NULL);
    const rs_socket_request *asked = &request->socket;
    int64_t result;
    RETRY(result, socketpair(asked->family, asked->type | SOCK_CLOEXEC | SOCK_NONBLOCK, asked->protocol, asked->pair));
    for (int i = 0; result == 0 && i < 2; i++) {
        note_stream(machine, asked->pair[i], true);
        rs_socket_made(machine, asked->pair[i], asked->family, asked->type);
    }
    return result;
}

static int64_t attempt_splice(rs_machine *machine, const rs_request *request) {
    RS_CHECK(rs_request_has_target(request));
    (void)machine;
    return rs_op_calls[request->kind].execute(request);
}

const rs_op_call rs_op_calls[RS_OP_KINDS] = {
    [RS_OP_READ] = {attempt_read, execute_read},
    [RS_OP_WRITE] = {attempt_write, execute_write},
    [RS_OP_PREAD] = {attempt_read, execute_read},
    [RS_OP_PWRITE] = {attempt_write, execute_write},
    [RS_OP_READV] = {attempt_read, execute_read},
    [RS_OP_WRITEV] = {attempt_write, execute_write},
    [RS_OP_RECV] = {attempt_recv, NULL},
    [RS_OP_SEND] = {attempt_send, NULL},
    [RS_OP_RECVMSG] = {attempt_recvmsg, NULL},
    [RS_OP_SENDMSG] = {attempt_sendmsg, NULL},
    [RS_OP_ACCEPT] = {attempt_accept, NULL},
    [RS_OP_CONNECT] = {attempt_connect, NULL},
    [RS_OP_POLL] = {attempt_poll, NULL},
    [RS_OP_OPEN] = {attempt_open, execute_open},
    [RS_OP_CLOSE] = {attempt_close, NULL},
    [RS_OP_FSYNC] = {attempt_wait_on_worker, execute_fsync},
    [RS_OP_STATX] = {attempt_statx, execute_statx},
    [RS_OP_WAITID] = {attempt_waitid, execute_waitid},
    [RS_OP_SOCKET] = {attempt_socket, NULL},
    [RS_OP_BIND] = {attempt_bind, NULL},
    [RS_OP_LISTEN] = {attempt_listen, NULL},
    [RS_OP_SHUTDOWN] = {attempt_shutdown, NULL},
    [RS_OP_SETSOCKOPT] = {attempt_setsockopt, NULL},
    [RS_OP_GETSOCKOPT] = {attempt_getsockopt, NULL},
    [RS_OP_PIPE] = {attempt_pipe, NULL},
    [RS_OP_SOCKETPAIR] = {attempt_socketpair, NULL},
    [RS_OP_RESOLVE] = {attempt_wait_on_worker, rs_resolve},
    [RS_OP_SPLICE] = {attempt_splice, rs_splice},
    [RS_OP_TEE] = {attempt_splice, rs_tee},
    [RS_OP_COPY_RANGE] = {attempt_wait_on_worker, rs_copy_range},
    [RS_OP_UNLINK] = {attempt_wait_on_worker, rs_unlink},
    [RS_OP_RENAME] = {attempt_wait_on_worker, rs_rename},
    [RS_OP_MKDIR] = {rs_attempt_mkdir, rs_mkdir},
    [RS_OP_FTRUNCATE] = {attempt_wait_on_worker, rs_ftruncate},
    [RS_OP_FALLOCATE] = {attempt_wait_on_worker, rs_fallocate},
};
