/* socket: stream sockets of TCP and of Unix, and the names of hosts. */
#include "io.h"

#include <mruby/string.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

/* --- names --- */

static mrb_value answer_addresses(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t count) {
    const rs_lookup *lookup = request->owned;
    if (lookup->error) {
        mrb_raisef(mrb, rsm_class(mrb, "SocketError"), "%s: %s", lookup->host, gai_strerror(lookup->error));
    }
    mrb_value all = mrb_ary_new(mrb);
    for (uint32_t i = 0; i < lookup->count; i++) mrb_ary_push(mrb, all, mrb_str_new_cstr(mrb, lookup->addresses[i]));
    return all;
}

/* The addresses of a name, in digits. A worker asks the resolver. */
static mrb_value machine_resolve(mrb_state *mrb, mrb_value self) {
    mrb_value name = mrb_get_arg1(mrb);
    const char *host = rsm_host_of(mrb, name);
    rsm_address digits;
    if (rsm_parse_digits(host, 0, &digits)) return mrb_ary_new_from_values(mrb, 1, &name);
    rsm_machine *machine = rsm_machine_for_op(mrb);
    if (rs_is_simulated(machine->engine)) {
        mrb_raise(mrb, rsm_class(mrb, "UnsupportedError"), "resolve: a simulated machine knows no names; use an address");
    }
    rs_lookup *lookup = rsm_owned(mrb, sizeof(*lookup));
    strcpy(lookup->host, host);
    rs_request request = {.kind = RS_OP_RESOLVE, .fd = -1, .owned = lookup, .resolve.lookup = lookup};
    return rsm_perform(mrb, machine, &request, answer_addresses);
}

/* --- sockets --- */

/* One of the address's family. */
static mrb_value machine_socket(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    rsm_address to = rsm_address_of(mrb, arguments[0], arguments[1]);
    rs_request request = {.kind = RS_OP_SOCKET, .fd = -1, .socket = {.family = to.bytes.ss_family, .type = SOCK_STREAM}};
    return rsm_perform(mrb, rsm_machine_for_op(mrb), &request, rsm_answer_stream);
}

/* It has them or not, and works either way; nothing simulated has any. */
static void set_option(const rsm_machine *machine, int fd, int level, int name) {
    int on = 1;
    if (!rs_is_simulated(machine->engine)) setsockopt(fd, level, name, &on, sizeof(on));
}

/* Small messages leave at once. */
static mrb_value answer_connected(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    if (request->address.len >= sizeof(struct sockaddr_in)) set_option(machine, request->fd, IPPROTO_TCP, TCP_NODELAY);
    return mrb_true_value();
}

static mrb_value answer_accepted(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t fd) {
    mrb_value stream = rsm_answer_stream(mrb, machine, request, fd);
    set_option(machine, (int)fd, IPPROTO_TCP, TCP_NODELAY);
    return stream;
}

static mrb_value request_address(mrb_state *mrb, mrb_value self, uint8_t kind, rsm_answer answer) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    rsm_address to = rsm_address_of(mrb, arguments[0], arguments[1]);
    int fd = rsm_stream_fd(mrb, self);
    rsm_machine *machine = rsm_machine_for_op(mrb);
    if (kind == RS_OP_BIND) set_option(machine, fd, SOL_SOCKET, SO_REUSEADDR);
    void *bytes = memcpy(rsm_owned(mrb, to.len), &to.bytes, to.len);
    rs_request request = {.kind = kind, .fd = fd, .owned = bytes, .address = {.bytes = bytes, .len = to.len}};
    return rsm_perform(mrb, machine, &request, answer);
}

static mrb_value stream_connect(mrb_state *mrb, mrb_value self) {
    return request_address(mrb, self, RS_OP_CONNECT, answer_connected);
}

static mrb_value stream_bind(mrb_state *mrb, mrb_value self) { return request_address(mrb, self, RS_OP_BIND, rsm_answer_nil); }

static mrb_value stream_listen(mrb_state *mrb, mrb_value self) {
    uint32_t backlog = (uint32_t)rsm_int_arg(mrb, mrb_get_arg1(mrb), 0, INT32_MAX, "listen: the backlog");
    rs_request request = {.kind = RS_OP_LISTEN, .fd = rsm_stream_fd(mrb, self), .listen.backlog = backlog};
    return rsm_perform(mrb, rsm_machine_for_op(mrb), &request, rsm_answer_nil);
}

/* The next connection. */
static mrb_value stream_accept(mrb_state *mrb, mrb_value self) {
    rs_request request = {.kind = RS_OP_ACCEPT, .fd = rsm_stream_fd(mrb, self)};
    return rsm_perform(mrb, rsm_machine_for_op(mrb), &request, answer_accepted);
}

/* The other side reads the end; reading goes on. */
static mrb_value stream_close_write(mrb_state *mrb, mrb_value self) {
    rs_request request = {.kind = RS_OP_SHUTDOWN, .fd = rsm_stream_fd(mrb, self), .shutdown.how = SHUT_WR};
    return rsm_perform(mrb, rsm_machine_for_op(mrb), &request, rsm_answer_nil);
}

typedef int name_call(int fd, struct sockaddr *address, socklen_t *len);

static mrb_value name_of(mrb_state *mrb, mrb_value self, name_call *call, const char *what) {
    rsm_machine *machine = rsm_machine_of(mrb);
    int fd = rsm_stream_fd(mrb, self);
    rsm_address is = {.len = sizeof(is.bytes)};
    bool known = !rs_is_simulated(machine->engine) && call(fd, (struct sockaddr *)&is.bytes, &is.len) == 0;
    if (!known) mrb_raisef(mrb, rsm_class(mrb, "UnsupportedError"), "%s: the stream has none", what);
    return rsm_address_parts(mrb, &is.bytes, is.len);
}

static mrb_value stream_local_address(mrb_state *mrb, mrb_value self) { return name_of(mrb, self, getsockname, "local_address"); }
static mrb_value stream_remote_address(mrb_state *mrb, mrb_value self) { return name_of(mrb, self, getpeername, "remote_address"); }

void rsm_init_socket(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    struct RClass *stream = mrb_class_get_under(mrb, module, "Stream");
    mrb_define_method(mrb, machine, "resolve", machine_resolve, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, machine, "__socket", machine_socket, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "__connect", stream_connect, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "__bind", stream_bind, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "__listen", stream_listen, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "accept", stream_accept, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "close_write", stream_close_write, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "local_address", stream_local_address, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "remote_address", stream_remote_address, MRB_ARGS_NONE());
    mrb_define_const(mrb, stream, "REFUSED", mrb_fixnum_value(ECONNREFUSED));
}
