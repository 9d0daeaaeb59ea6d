/* address: who is at the two ends of a connection. */
#include "server/address.h"

#include <ruby/io.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* An address of IPv4 that came by a socket of IPv6 is shown as what it is. */
static VALUE text_of(const struct sockaddr_storage *address) {
    char text[INET6_ADDRSTRLEN];
    const struct sockaddr_in6 *six = (const void *)address;
    const void *bytes = address->ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
                                                      : (const void *)&six->sin6_addr;
    int family = address->ss_family;
    if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        family = AF_INET;
        bytes = &six->sin6_addr.s6_addr[12];
    }
    return inet_ntop(family, bytes, text, sizeof(text)) ? rb_str_new_cstr(text) : Qnil;
}

static VALUE port_of(const struct sockaddr_storage *address) {
    in_port_t port = address->ss_family == AF_INET ? ((const struct sockaddr_in *)(const void *)address)->sin_port
                                                   : ((const struct sockaddr_in6 *)(const void *)address)->sin6_port;
    return UINT2NUM(ntohs(port));
}

static VALUE end_of(int fd, bool is_peer) {
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    struct sockaddr *any = (struct sockaddr *)&address;
    bool is_known = (is_peer ? getpeername(fd, any, &len) : getsockname(fd, any, &len)) == 0;
    bool is_ip = is_known && (address.ss_family == AF_INET || address.ss_family == AF_INET6);
    return is_ip ? rb_assoc_new(text_of(&address), port_of(&address)) : Qnil;
}

/* @param socket [Integer, IO]
 * @return [Array(Array(String, Integer), nil)] address and port of the other end and of this one; nil for one that is not of IP, such
 *   as a Unix socket */
static VALUE connection_ends(VALUE class, VALUE socket) {
    int fd = RB_INTEGER_TYPE_P(socket) ? NUM2INT(socket) : rb_io_descriptor(socket);
    VALUE peer = end_of(fd, true);
    return rb_assoc_new(peer, end_of(fd, false));
}

void rhs_init_address(VALUE class) { rb_define_singleton_method(class, "ends", connection_ends, 1); }
