/* socket: methods for sockets of every family. Addresses are Addrinfo objects, or Strings as of Socket.sockaddr_in. */
#include "io.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- names to numbers --- */

typedef struct {
    const char *name;
    int value;
} named;

static const named families[] = {{"UNIX", AF_UNIX}, {"INET", AF_INET}, {"INET6", AF_INET6}, {NULL, 0}};
static const named types[] = {{"STREAM", SOCK_STREAM}, {"DGRAM", SOCK_DGRAM}, {"SEQPACKET", SOCK_SEQPACKET}, {NULL, 0}};
static const named directions[] = {{"RD", SHUT_RD}, {"WR", SHUT_WR}, {"RDWR", SHUT_RDWR}, {NULL, 0}};

static int number_of(VALUE object, const named *names, const char *what) {
    if (RB_INTEGER_TYPE_P(object)) return (int)rsb_integer(object, 0, INT32_MAX, what);
    VALUE known = rb_str_new_cstr("");
    VALUE text = SYMBOL_P(object) ? rb_sym2str(object) : object;
    for (const named *each = names; each->name; each++) {
        size_t len = strlen(each->name);
        if (RB_TYPE_P(text, T_STRING) && (size_t)RSTRING_LEN(text) == len && memcmp(RSTRING_PTR(text), each->name, len) == 0) {
            return each->value;
        }
        rb_str_catf(known, " :%s", each->name);
    }
    rb_raise(rsb_eUsage, "unknown %s %" PRIsVALUE "; use an Integer or one of%" PRIsVALUE, what, rsb_inspect(object), known);
}

/* --- addresses --- */

/* The first two letters of a host name, read as a family, give a larger number: so a name is not taken for an address. */
#define AF_FAMILY_MAX 255

/* The packed String. May call to_sockaddr of the program, so callers do this before they look up a descriptor or take the address
 * of a buffer. */
static VALUE packed_address(VALUE address) {
    if (!RB_TYPE_P(address, T_STRING)) {
        if (!rb_respond_to(address, rb_intern("to_sockaddr"))) {
            rb_raise(rsb_eUsage, "expected an Addrinfo or a packed address (Socket.sockaddr_in, .sockaddr_un), got %" PRIsVALUE,
                     rsb_inspect(address));
        }
        address = rb_funcall(address, rb_intern("to_sockaddr"), 0);
        if (!RB_TYPE_P(address, T_STRING)) {
            rb_raise(rsb_eUsage, "to_sockaddr must give a String, got %" PRIsVALUE, rsb_inspect(address));
        }
    }
    size_t len = (size_t)RSTRING_LEN(address);
    if (len < sizeof(sa_family_t) || len > sizeof(struct sockaddr_storage)) {
        rb_raise(rsb_eUsage, "not a packed address: %zu bytes; use Socket.sockaddr_in, Socket.sockaddr_un or an Addrinfo", len);
    }
    sa_family_t family;
    memcpy(&family, RSTRING_PTR(address), sizeof(family));
    if (family > AF_FAMILY_MAX) {
        rb_raise(rsb_eUsage, "not a packed address: %" PRIsVALUE "; use Socket.sockaddr_in, Socket.sockaddr_un or an Addrinfo",
                 rsb_inspect(address));
    }
    return rb_str_new_frozen(address);
}

/* For methods that have called code of the program, which may have waited: raises if the number was closed meanwhile. */
static int op_fd_of(rsb_machine *machine, VALUE io, uint32_t generation, const char *what) {
    int fd = rsb_op_fd(machine, io);
    if (RB_FIXNUM_P(io)) rsb_check_descriptor(machine, io, fd, generation, what);
    return fd;
}

/* The address for error messages. */
static VALUE address_text(VALUE packed) {
    const struct sockaddr *address = (const struct sockaddr *)RSTRING_PTR(packed);
    socklen_t len = (socklen_t)RSTRING_LEN(packed);
    if (len < (socklen_t)sizeof(sa_family_t)) return rsb_inspect(packed);
    if (address->sa_family == AF_UNIX) {
        const char *path = ((const struct sockaddr_un *)address)->sun_path;
        size_t room = len - offsetof(struct sockaddr_un, sun_path);
        bool abstract = room > 1 && path[0] == '\0';
        return abstract ? rb_sprintf("@%.*s", (int)strnlen(path + 1, room - 1), path + 1)
                        : rb_str_new(path, (long)strnlen(path, room));
    }
    char host[NI_MAXHOST], port[NI_MAXSERV];
    int failed = getnameinfo(address, len, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    if (failed) return rsb_inspect(packed);
    return rb_sprintf(address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* Performs a request with an address, a copy of which it owns. */
static VALUE request_address(VALUE self, uint8_t kind, VALUE io, VALUE address, const char *what) {
    rsb_machine *machine = rsb_machine_of(self);
    uint32_t generation = rsb_generation(machine, io);
    VALUE packed = packed_address(address);
    rs_request request = {.kind = kind, .fd = op_fd_of(machine, io, generation, what)};
    size_t len = (size_t)RSTRING_LEN(packed);
    request.owned = memcpy(rsb_alloc(len), RSTRING_PTR(packed), len);
    request.address = (rs_socket_address){.bytes = request.owned, .len = (uint32_t)len};
    int64_t result = rs_try(machine->engine, &request);
    if (result == -EAGAIN) result = rsb_wait_for(machine, &request, Qnil, RSB_OUT);
    else free(request.owned);
    if (result == -EBADF || result == -EOPNOTSUPP) rsb_fail(result, what, request.fd);
    if (result < 0) rb_syserr_fail_str((int)-result, rb_sprintf("%s to %" PRIsVALUE, what, address_text(packed)));
    RB_GC_GUARD(packed);
    return Qnil;
}

/* --- making and connecting --- */

/* Makes a socket.
 *
 * May switch strands.
 *
 * @param family [Symbol, Integer] :UNIX, :INET, :INET6
 * @param type [Symbol, Integer] :STREAM, :DGRAM, :SEQPACKET
 * @param protocol [Integer]
 * @return [Integer] descriptor, non-blocking and closed on exec
 * @since 0.1.0 */
static VALUE machine_socket(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 3);
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_SOCKET, .fd = -1, .socket.family = number_of(argv[0], families, "socket family"),
                          .socket.type = number_of(argv[1], types, "socket type"),
                          .socket.protocol = argc > 2 ? (int)rsb_integer(argv[2], 0, INT32_MAX, "protocol") : 0};
    rsb_after_inline(machine);
    return LL2NUM(rsb_request_owning(machine, &request, "socket"));
}

/* Makes two sockets that are connected with each other.
 *
 * May switch strands.
 *
 * @return [Array(Integer, Integer)] two descriptors, non-blocking and closed on exec
 * @since 0.1.0 */
static VALUE machine_socketpair(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 3);
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_SOCKETPAIR, .fd = -1,
                          .socket.family = argc > 0 ? number_of(argv[0], families, "socket family") : AF_UNIX,
                          .socket.type = argc > 1 ? number_of(argv[1], types, "socket type") : SOCK_STREAM,
                          .socket.protocol = argc > 2 ? (int)rsb_integer(argv[2], 0, INT32_MAX, "protocol") : 0};
    rsb_after_inline(machine);
    return rsb_make_pair(machine, &request, &request.socket.pair, "socketpair");
}

/* Connects a socket.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param address [Addrinfo, String] packed as Socket.sockaddr_in does
 * @return [nil]
 * @raise [SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_connect(VALUE self, VALUE io, VALUE address) {
    return request_address(self, RS_OP_CONNECT, io, address, "connect");
}

/* Binds a socket to an address.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param address [Addrinfo, String]
 * @return [nil]
 * @since 0.1.0 */
static VALUE machine_bind(VALUE self, VALUE io, VALUE address) {
    return request_address(self, RS_OP_BIND, io, address, "bind");
}

/* Makes a socket listen for connections.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param backlog [Integer] connections that may wait to be accepted
 * @return [nil]
 * @since 0.1.0 */
static VALUE machine_listen(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    rsb_machine *machine = rsb_machine_of(self);
    int64_t backlog = argc > 1 ? rsb_integer(argv[1], 0, INT32_MAX, "listen: the backlog") : SOMAXCONN;
    rs_request request = {.kind = RS_OP_LISTEN, .fd = rsb_op_fd(machine, argv[0]), .listen.backlog = (uint32_t)backlog};
    rsb_request_owning(machine, &request, "listen");
    return Qnil;
}

/* Shuts down one direction of a connection, or both.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param how [Symbol, Integer] :RD, :WR, :RDWR
 * @return [nil]
 * @since 0.1.0 */
static VALUE machine_shutdown(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    rsb_machine *machine = rsb_machine_of(self);
    int how = argc > 1 ? number_of(argv[1], directions, "direction") : SHUT_RDWR;
    rs_request request = {.kind = RS_OP_SHUTDOWN, .fd = rsb_op_fd(machine, argv[0]), .shutdown.how = (uint32_t)how};
    rsb_request_owning(machine, &request, "shutdown");
    return Qnil;
}

/* --- options --- */

/* Sets an option of a socket.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param level [Integer] Socket::SOL_SOCKET ...
 * @param name [Integer] Socket::SO_REUSEADDR ...
 * @param value [Integer, Boolean, String] a String is passed as it is
 * @return [nil]
 * @since 0.1.0 */
static VALUE machine_setsockopt(VALUE self, VALUE io, VALUE level, VALUE name, VALUE value) {
    rsb_machine *machine = rsb_machine_of(self);
    if (value == Qtrue || value == Qfalse) value = INT2FIX(value == Qtrue);
    bool string = RB_TYPE_P(value, T_STRING);
    if (!string && !RB_INTEGER_TYPE_P(value)) {
        rb_raise(rsb_eUsage, "a socket option is an Integer, true, false or a packed String, got %" PRIsVALUE, rsb_inspect(value));
    }
    int number = string ? 0 : (int)rsb_integer(value, INT32_MIN, INT32_MAX, "a socket option");
    if (string) value = rb_str_new_frozen(value);
    rs_request request = {.kind = RS_OP_SETSOCKOPT, .fd = rsb_op_fd(machine, io),
                          .option = {.level = (int32_t)rsb_flags(level, "level"), .name = (int32_t)rsb_flags(name, "option")}};
    const void *bytes = string ? RSTRING_PTR(value) : (const void *)&number;
    size_t len = string ? (size_t)RSTRING_LEN(value) : sizeof(number);
    request.option.len = (uint32_t)len;
    request.option.value = request.owned = memcpy(rsb_alloc(len + 1), bytes, len);
    RB_GC_GUARD(value);
    rsb_request_owning(machine, &request, "setsockopt");
    return Qnil;
}

/* More than what options are: numbers, names and small structs. Of a longer one the kernel gives as much: getsockopt(2),
 * `optlen`. */
#define OPTION_MAX 256

/* Reads an option of a socket.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param level [Integer]
 * @param name [Integer]
 * @return [Integer, String] an Integer if the value has the size of an int, else its bytes
 * @since 0.1.0 */
static VALUE machine_getsockopt(VALUE self, VALUE io, VALUE level, VALUE name) {
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_GETSOCKOPT, .fd = rsb_op_fd(machine, io),
                          .option = {.level = (int32_t)rsb_flags(level, "level"), .name = (int32_t)rsb_flags(name, "option")}};
    char value[OPTION_MAX];
    request.option.value = value;
    request.option.len = OPTION_MAX;
    int64_t len = rs_try(machine->engine, &request);
    if (len == -EAGAIN) {
        request.option.value = request.owned = rsb_alloc(OPTION_MAX);
        len = rsb_perform(machine, &request, &(rsb_op_wait){.answer = value, .answer_size = sizeof(value)});
    }
    if (len < 0) rsb_fail(len, "getsockopt", request.fd);
    int number;
    if (len != sizeof(number)) return rb_str_new(value, len);
    memcpy(&number, value, sizeof(number));
    return INT2NUM(number);
}

/* --- bytes --- */

/* True for a stream socket. All simulated sockets are stream sockets. */
static bool carries_bytes(const rsb_machine *machine, int fd) {
    return rs_is_simulated(machine->engine) || rs_descriptor_carries_bytes(rs_descriptors_of(machine->engine), fd);
}

/* True if the request has MSG_WAITALL. The machine implements that flag itself, because recv(2) with MSG_WAITALL may return less,
 * and does so if it must not wait. For messages it means nothing, and with MSG_DONTWAIT the caller gets the bytes that are
 * there. */
static bool takes_all(rsb_machine *machine, int fd, uint32_t *flags, const char *what) {
    if (RS_LIKELY(!(*flags & MSG_WAITALL))) return false;
    if (*flags & MSG_PEEK) rb_raise(rsb_eUnsupported, "%s: MSG_PEEK and MSG_WAITALL together; use Stream#peek", what);
    *flags &= ~(uint32_t)MSG_WAITALL;
    return !(*flags & MSG_DONTWAIT) && carries_bytes(machine, fd);
}

/* Receives the bytes that are there, at most length. With MSG_WAITALL a stream socket waits for all of them; fewer mean the end
 * of the stream, or an error or a cancellation, which the next call or wait raises.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @param length [Integer] bytes
 * @param flags [Integer] Socket::MSG_PEEK ...
 * @return [Integer] bytes received; 0 at the end of the stream
 * @raise [UnsupportedError] for MSG_PEEK together with MSG_WAITALL
 * @since 0.1.0
 */
static VALUE machine_recv(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 4);
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_RECV, .fd = rsb_op_fd(machine, argv[0]),
                          .transfer.flags = argc > 3 ? rsb_flags(argv[3], "flags") : 0};
    rsb_target target = rsb_target_of(argv[1], argc > 2 ? argv[2] : Qnil, Qnil);
    request.transfer.address = target.address;
    request.transfer.len = target.length;
    bool all = takes_all(machine, request.fd, &request.transfer.flags, "recv");
    int64_t bytes = all ? rsb_request_all(machine, &request, target.buffer, RSB_IN, "recv")
                        : rsb_request(machine, &request, target.buffer, RSB_IN, "recv");
    rsb_target_filled(&target, bytes);
    rsb_raise_pending(machine);
    return LL2NUM(bytes);
}

/* Sends all bytes of the buffer.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @param flags [Integer] Socket::MSG_MORE ...
 * @return [Integer] bytes sent: all, unless an error or a cancellation came after the first; the next call or wait raises it
 * @since 0.1.0
 */
static VALUE machine_send(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 3);
    rsb_machine *machine = rsb_machine_of(self);
    VALUE source = argv[1];
    rs_request request = {.kind = RS_OP_SEND, .fd = rsb_op_source_fd(machine, argv[0], &source), .transfer.offset = -1,
                          .transfer.flags = argc > 2 ? rsb_flags(argv[2], "flags") : 0};
    rsb_source_of(source, &request.transfer);
    int64_t bytes = rsb_request_all(machine, &request, source, RSB_OUT, "send");
    RB_GC_GUARD(source);
    return LL2NUM(bytes);
}

/* --- messages --- */

/* Room for 252 descriptors. A message has 253 at most (SCM_MAX_FD), and what finds no room is dropped by the kernel, which says so
 * (MSG_CTRUNC): https://man7.org/linux/man-pages/man7/unix.7.html and recv(2). */
#define CONTROL_MAX 1024

/* The msghdr and all that it points to, except the data, in one block that the op owns. */
typedef struct {
    struct msghdr header;
    struct iovec data;
    struct sockaddr_storage address;
    _Alignas(struct cmsghdr) char control[CONTROL_MAX];
} message;

static message *new_message(void *data, size_t len) {
    message *block = rsb_alloc(sizeof(*block));
    block->data = (struct iovec){.iov_base = data, .iov_len = len};
    block->header.msg_iov = &block->data;
    block->header.msg_iovlen = 1;
    return block;
}

/* Raises the error of a message, with the address if it was sent to one. */
static void check_exchange(rsb_machine *machine, int64_t result, const rs_request *request, const message *answer,
                           const char *what) {
    if (RS_LIKELY(result >= 0)) return;
    bool addressed = request->kind == RS_OP_SENDMSG && answer->header.msg_name;
    if (!addressed || result == -EBADF || result == -EOPNOTSUPP) rsb_refused(machine, result, what, request->fd);
    VALUE packed = rb_str_new((const char *)&answer->address, (long)answer->header.msg_namelen);
    rb_syserr_fail_str((int)-result, rb_sprintf("%s to %" PRIsVALUE, what, address_text(packed)));
}

static int64_t exchange(rsb_machine *machine, rs_request *request, VALUE buffer, message *answer, rsb_direction direction,
                        const char *what) {
    message *block = request->owned;
    request->message.header = &block->header;
    int64_t result = rs_try(machine->engine, request);
    if (result == -EAGAIN && !rsb_must_not_wait(machine, request)) {
        result = rsb_message_wait(machine, request, buffer, answer, sizeof(*answer), direction);
    } else {
        *answer = *block;
        free(block);
    }
    check_exchange(machine, result, request, answer, what);
    return result;
}

static VALUE control_list(const message *answer) {
    VALUE list = rb_ary_new();
    struct msghdr header = answer->header;
    header.msg_control = (void *)answer->control;
    for (struct cmsghdr *each = CMSG_FIRSTHDR(&header); each; each = CMSG_NXTHDR(&header, each)) {
        VALUE bytes = rb_str_new((char *)CMSG_DATA(each), (long)(each->cmsg_len - CMSG_LEN(0)));
        rb_ary_push(list, rb_ary_new_from_args(3, INT2NUM(each->cmsg_level), INT2NUM(each->cmsg_type), bytes));
    }
    return list;
}

/* Closes the descriptors of a message that cannot be returned to the caller. */
static void close_received(const message *answer) {
    int first;
    rsb_rights_in(&answer->header, answer->control, 0, &first);
}

typedef struct {
    rsb_machine *machine;
    const rsb_target *target;
    VALUE own;                  /* the String used instead of a slice, or the target's buffer */
    const message *answer;
    int64_t bytes;
} received;

static VALUE hand_over(VALUE argument) {
    const received *r = (const received *)argument;
    const rsb_target *target = r->target;
    if (r->own != target->buffer) {
        size_t bytes = (uint64_t)r->bytes < target->length ? (size_t)r->bytes : target->length;
        rsb_buffer_check(target->buffer);
        memcpy(target->address, RSTRING_PTR(r->own), bytes);
    }
    rsb_target_filled(target, r->bytes);
    rsb_raise_pending(r->machine);
    const struct msghdr *header = &r->answer->header;
    VALUE address = rb_str_new((char *)&r->answer->address, header->msg_name ? (long)header->msg_namelen : 0);
    int flags = header->msg_flags & ~MSG_CMSG_CLOEXEC;
    return rb_ary_new_from_args(4, LL2NUM(r->bytes), address, INT2NUM(flags), control_list(r->answer));
}

/* With MSG_WAITALL: receives the rest after recvmsg has returned the first part, its address and its control messages. */
static int64_t receive_rest(rsb_machine *machine, rs_request *rest, int64_t bytes, VALUE buffer) {
    rs_request next = *rest;
    next.transfer.address = (char *)rest->transfer.address + bytes;
    next.transfer.len -= (uint64_t)bytes;
    int64_t more = rs_try(machine->engine, &next);
    if (more < 0 && more != -EAGAIN) rs_descriptor_owe(machine->engine, &next, 0, more);
    if (more == 0 || (more < 0 && more != -EAGAIN)) return bytes;
    bytes += more > 0 ? more : 0;
    return (uint64_t)bytes == rest->transfer.len ? bytes : rsb_request_rest(machine, rest, bytes, buffer, RSB_IN, "recvmsg");
}

/* Receives one message with its address and control messages. MSG_WAITALL is as for {#recv}.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @param length [Integer] bytes
 * @param flags [Integer]
 * @return [Array(Integer, String, Integer, Array)] bytes, packed address of the sender (empty when connected), flags of the
 *   message (Socket::MSG_TRUNC ...), control messages as [level, type, bytes]; the caller closes descriptors in them
 * @raise [UnsupportedError] for MSG_PEEK together with MSG_WAITALL
 * @since 0.1.0
 */
static VALUE machine_recvmsg(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 4);
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_RECVMSG, .fd = rsb_op_fd(machine, argv[0]),
                          .message.flags = argc > 3 ? rsb_flags(argv[3], "flags") : 0};
    bool all = takes_all(machine, request.fd, &request.message.flags, "recvmsg");
    rsb_target target = rsb_target_of(argv[1], argc > 2 ? argv[2] : Qnil, Qnil);
    bool slice = !target.string && rsb_is_slice(target.buffer);
    VALUE own = slice ? rb_str_new(NULL, (long)target.length) : target.buffer;
    message *block = new_message(slice ? RSTRING_PTR(own) : target.address, target.length), answer;
    block->header.msg_name = &block->address;
    block->header.msg_namelen = sizeof(block->address);
    block->header.msg_control = block->control;
    block->header.msg_controllen = sizeof(block->control);
    request.owned = block;
    int64_t bytes = exchange(machine, &request, own, &answer, RSB_IN, "recvmsg");
    if (RS_UNLIKELY(all) && bytes > 0 && (uint64_t)bytes < target.length) {
        rs_request rest = {.kind = RS_OP_RECV, .fd = request.fd,
                           .transfer = {.address = slice ? RSTRING_PTR(own) : target.address, .len = target.length}};
        bytes = receive_rest(machine, &rest, bytes, own);
    }
    int state = 0;
    VALUE result = rb_protect(hand_over, (VALUE)&(received){machine, &target, own, &answer, bytes}, &state);
    RB_GC_GUARD(own);
    if (RS_UNLIKELY(state)) {
        if (!rs_is_simulated(machine->engine)) close_received(&answer);
        rb_jump_tag(state);
    }
    return result;
}

/* The control messages packed as in cmsg(3). */
static VALUE pack_control(VALUE controls) {
    VALUE list = NIL_P(controls) ? rb_ary_new() : rb_check_array_type(controls);
    if (NIL_P(list)) rb_raise(rsb_eUsage, "control messages: expected an Array or nil, got %" PRIsVALUE, rsb_inspect(controls));
    _Alignas(struct cmsghdr) char packed[CONTROL_MAX] = {0};
    size_t used = 0;
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE given = RARRAY_AREF(list, i), each = rb_check_array_type(given);
        VALUE bytes = !NIL_P(each) && RARRAY_LEN(each) == 3 ? RARRAY_AREF(each, 2) : Qnil;
        if (!RB_TYPE_P(bytes, T_STRING)) {
            rb_raise(rsb_eUsage, "a control message is [level, type, bytes], got %" PRIsVALUE, rsb_inspect(given));
        }
        int level = (int)rsb_integer(RARRAY_AREF(each, 0), 0, INT32_MAX, "control message: level");
        int type = (int)rsb_integer(RARRAY_AREF(each, 1), 0, INT32_MAX, "control message: type");
        size_t len = (size_t)RSTRING_LEN(bytes);
        if (len > CONTROL_MAX || used + CMSG_SPACE(len) > CONTROL_MAX) {
            rb_raise(rsb_eUsage, "control messages may take %d bytes; send fewer at a time", CONTROL_MAX);
        }
        struct cmsghdr *header = (struct cmsghdr *)(packed + used);
        *header = (struct cmsghdr){.cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(len)};
        memcpy(CMSG_DATA(header), RSTRING_PTR(bytes), len);
        used += CMSG_SPACE(len);
    }
    return rb_str_new(packed, (long)used);
}

/* Sends one message.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @param address [Addrinfo, String, nil] the receiver, for a socket that is not connected
 * @param flags [Integer]
 * @param controls [Array, nil] control messages as [level, type, bytes]
 * @return [Integer] bytes sent
 * @since 0.1.0
 */
static VALUE machine_sendmsg(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 5);
    rsb_machine *machine = rsb_machine_of(self);
    VALUE source = rsb_own_source(argv[1]);
    uint32_t generation = rsb_generation(machine, argv[0]);
    /* These may call code of the program, which may close the descriptor and free the buffer. So they come first. */
    VALUE control = pack_control(argc > 4 ? argv[4] : Qnil);
    VALUE to = argc > 2 && !NIL_P(argv[2]) ? packed_address(argv[2]) : Qnil;
    rs_request request = {.kind = RS_OP_SENDMSG, .fd = op_fd_of(machine, argv[0], generation, "sendmsg"),
                          .message.flags = argc > 3 ? rsb_flags(argv[3], "flags") : 0};
    rs_transfer part = {0};
    rsb_source_of(source, &part);
    message *block = new_message(part.address, part.len), answer;
    if (!NIL_P(to)) {
        size_t len = (size_t)RSTRING_LEN(to);
        memcpy(&block->address, RSTRING_PTR(to), len);
        block->header.msg_name = &block->address;
        block->header.msg_namelen = (socklen_t)len;
    }
    block->header.msg_control = block->control;
    block->header.msg_controllen = (size_t)RSTRING_LEN(control);
    memcpy(block->control, RSTRING_PTR(control), (size_t)RSTRING_LEN(control));
    request.owned = block;
    int64_t bytes = exchange(machine, &request, source, &answer, RSB_OUT, "sendmsg");
    RB_GC_GUARD(source);
    RB_GC_GUARD(control);
    RB_GC_GUARD(to);
    return LL2NUM(bytes);
}

void rsb_init_socket(void) {
    rb_define_method(rsb_cMachine, "socket", machine_socket, -1);
    rb_define_method(rsb_cMachine, "socketpair", machine_socketpair, -1);
    rb_define_method(rsb_cMachine, "connect", machine_connect, 2);
    rb_define_method(rsb_cMachine, "bind", machine_bind, 2);
    rb_define_method(rsb_cMachine, "listen", machine_listen, -1);
    rsb_init_accept();
    rb_define_method(rsb_cMachine, "shutdown", machine_shutdown, -1);
    rb_define_method(rsb_cMachine, "setsockopt", machine_setsockopt, 4);
    rb_define_method(rsb_cMachine, "getsockopt", machine_getsockopt, 3);
    rb_define_method(rsb_cMachine, "recv", machine_recv, -1);
    rb_define_method(rsb_cMachine, "send", machine_send, -1);
    rb_define_method(rsb_cMachine, "recvmsg", machine_recvmsg, -1);
    rb_define_method(rsb_cMachine, "sendmsg", machine_sendmsg, -1);
}
