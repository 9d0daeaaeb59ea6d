/* rights: Machine#send_fd and #recv_fd, which pass one descriptor through a Unix socket (SCM_RIGHTS in unix(7)).
 *
 * This process owns the received descriptors once the kernel has filled in the message, even if the strand is cancelled. If a
 * message brings more than one, all are closed.
 */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* More than one, to notice a message with too many. */
#define RIGHTS_MAX 8

/* The msghdr and all that it points to, except the bytes to send, in one block that the op owns. */
typedef struct {
    struct msghdr header;
    struct iovec data;
    char byte;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * RIGHTS_MAX)];
} message;

static message *new_message(rs_request *request, size_t control_len) {
    message *block = rsb_alloc(sizeof(*block));
    block->data = (struct iovec){.iov_base = &block->byte, .iov_len = 1};
    block->header.msg_iov = &block->data;
    block->header.msg_iovlen = 1;
    block->header.msg_control = block->control;
    block->header.msg_controllen = control_len;
    request->message.header = &block->header;
    request->owned = block;
    return block;
}

static void refuse_simulated(rsb_machine *machine, const char *what) {
    if (!rs_is_simulated(machine->engine)) return;
    rb_raise(rsb_eUnsupported, "%s: a simulated socket carries no descriptors", what);
}

/* --- sending --- */

typedef struct {
    rsb_machine *machine;
    rs_request request;
    VALUE bytes;
    int own;                    /* a duplicate of the descriptor, which may be closed during the wait */
    int64_t result;
} sending;

static void put_descriptor(message *block, int fd) {
    struct cmsghdr *header = (struct cmsghdr *)block->control;
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd))};
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
}

/* Other sockets send the bytes and ignore SCM_RIGHTS without an error (__sock_cmsg_send in net/core/sock.c of Linux). */
static void need_unix_socket(int fd) {
    int domain = AF_UNIX;
    socklen_t size = sizeof(domain);
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size); /* if it is no socket, sendmsg(2) fails */
    if (domain != AF_UNIX) rb_raise(rsb_eUsage, "send_fd: descriptor %d is no Unix socket, and no other carries descriptors", fd);
}

static VALUE wait_to_send(VALUE argument) {
    sending *s = (sending *)argument;
    s->result = rsb_wait_for(s->machine, &s->request, Qnil, RSB_OUT);
    return Qnil;
}

static VALUE close_own(VALUE argument) {
    close(((sending *)argument)->own);
    return Qnil;
}

/* Sends a descriptor through a Unix socket. The receiver gets a descriptor of its own for the same file, pipe or socket.
 *
 * May switch strands.
 *
 * @param socket [Integer, IO]
 * @param io [Integer, IO] the descriptor to send; it stays open here
 * @param bytes [String] bytes to send with it, at least one
 * @return [Integer] bytes sent
 * @raise [UnsupportedError] on a simulated machine
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_send_fd(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 3);
    rsb_machine *machine = rsb_machine_of(self);
    refuse_simulated(machine, "send_fd");
    VALUE bytes = argc > 2 ? rsb_own_source(argv[2]) : rb_str_new("", 1);
    if (!RB_TYPE_P(bytes, T_STRING) || RSTRING_LEN(bytes) == 0) {
        rb_raise(rsb_eUsage, "send_fd: expected a String of one byte or more, got %" PRIsVALUE, rsb_inspect(bytes));
    }
    int fd = rsb_fd(argv[1]);
    uint32_t generation = rs_descriptor_generation(rs_descriptors_of(machine->engine), fd);
    sending s = {.machine = machine, .bytes = rb_str_new_frozen(bytes)};
    s.request = (rs_request){.kind = RS_OP_SENDMSG, .fd = rsb_op_fd(machine, argv[0])};
    rsb_check_descriptor(machine, argv[1], fd, generation, "send_fd");
    if (fcntl(fd, F_GETFD) < 0) rsb_fail(-EBADF, "send_fd", fd);
    need_unix_socket(s.request.fd);
    message *block = new_message(&s.request, CMSG_SPACE(sizeof(fd)));
    block->data = (struct iovec){.iov_base = RSTRING_PTR(s.bytes), .iov_len = (size_t)RSTRING_LEN(s.bytes)};
    put_descriptor(block, fd);
    s.result = rs_try(machine->engine, &s.request);
    if (s.result == -EAGAIN) {
        s.own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        int error = s.own < 0 ? errno : 0;
        if (error) free(block);
        if (error) rb_syserr_fail(error, "send_fd");
        put_descriptor(block, s.own);
        rb_ensure(wait_to_send, (VALUE)&s, close_own, (VALUE)&s);
    } else {
        free(block);
    }
    if (s.result < 0) rsb_refused(machine, s.result, "send_fd", s.request.fd);
    RB_GC_GUARD(s.bytes);
    return LL2NUM(s.result);
}

/* --- receiving --- */

int rsb_rights_in(const struct msghdr *message, const void *control, int kept, int *first) {
    struct msghdr header = *message;
    int count = 0;
    header.msg_control = (void *)control;
    for (struct cmsghdr *each = CMSG_FIRSTHDR(&header); each; each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        size_t len = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < len; i++, count++) {
            int fd;
            memcpy(&fd, CMSG_DATA(each) + i * sizeof(fd), sizeof(fd));
            if (count == 0) *first = fd;
            if (count >= kept) close(fd);
        }
    }
    return count;
}

/* MSG_CTRUNC says that the kernel has dropped a descriptor, but not why: recv(2), unix(7). */
NORETURN(static void fail_for_lost(void));
static void fail_for_lost(void) {
    struct rlimit limit;
    if (rsb_descriptors_left() || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        rb_raise(rsb_eLimit, "recv_fd: a descriptor came, but the system has not let this process have it; it is lost");
    }
    rb_raise(rsb_eLimit, "recv_fd: a descriptor came, but there was no number free for it; it is lost. RLIMIT_NOFILE is %llu: "
             "close some, or raise it (`ulimit -n`)", (unsigned long long)limit.rlim_cur);
}

static VALUE raise_pending(VALUE machine) {
    rsb_raise_pending((rsb_machine *)machine);
    return Qnil;
}

/* What was raised for the thread as the message came is raised in this call. Then nobody gets the descriptors. */
static void raise_and_close(rsb_machine *machine, const message *answer) {
    int state = 0, first;
    rb_protect(raise_pending, (VALUE)machine, &state);
    if (RS_LIKELY(!state)) return;
    rsb_rights_in(&answer->header, answer->control, 0, &first);
    rb_jump_tag(state);
}

/* Receives a descriptor from a Unix socket, and one byte with it. Further bytes can be received after that, unless the socket
 * keeps message boundaries.
 *
 * May switch strands.
 *
 * @param socket [Integer, IO]
 * @return [Integer, nil] a descriptor, closed on exec; nil at the end of the stream
 * @raise [UsageError] when the message had no descriptor, or more than one; those are closed
 * @raise [LimitError] when this process may have no more descriptors; the one sent is lost
 * @raise [UnsupportedError] on a simulated machine
 * @raise [ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_recv_fd(VALUE self, VALUE socket) {
    rsb_machine *machine = rsb_machine_of(self);
    refuse_simulated(machine, "recv_fd");
    rs_request request = {.kind = RS_OP_RECVMSG, .fd = rsb_op_fd(machine, socket)};
    message *block = new_message(&request, sizeof(block->control)), answer;
    int64_t bytes = rs_try(machine->engine, &request);
    if (bytes == -EAGAIN) {
        rsb_op_wait wait = {.answer = &answer, .answer_size = sizeof(answer), .takes_bytes_first = true};
        bytes = rsb_perform(machine, &request, &wait);
        if (bytes >= 0) raise_and_close(machine, &answer);
        else rsb_raise_pending(machine);
    } else {
        answer = *block;
        free(block);
    }
    if (bytes < 0) rsb_refused(machine, bytes, "recv_fd", request.fd);
    int fd = -1;
    bool cut = answer.header.msg_flags & MSG_CTRUNC;
    int count = rsb_rights_in(&answer.header, answer.control, RIGHTS_MAX, &fd);
    if (RS_LIKELY(count == 1 && !cut)) {
        rs_descriptor_forget(rs_descriptors_of(machine->engine), fd);
        return INT2FIX(fd);
    }
    rsb_rights_in(&answer.header, answer.control, 0, &fd);
    if (count > 0) {
        rb_raise(rsb_eUsage, "recv_fd: more than one descriptor came at once, and they were closed; receive those by recvmsg");
    }
    if (cut) fail_for_lost();
    if (bytes == 0) return Qnil;
    rb_raise(rsb_eUsage, "recv_fd: a byte came without a descriptor; the other side must use send_fd");
}

void rsb_init_rights(void) {
    rb_define_method(rsb_cMachine, "send_fd", machine_send_fd, -1);
    rb_define_method(rsb_cMachine, "recv_fd", machine_recv_fd, 1);
}
