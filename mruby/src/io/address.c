/* address: those of stream sockets, of TCP and of Unix: a host in digits with a port, or a path with nil. */
#include "io.h"

#include <mruby/string.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static mrb_noreturn void refuse(mrb_state *mrb, const char *expected, mrb_value got) {
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "expected %s, got %v", expected, mrb_inspect(mrb, got));
}

/* A path that begins with a NUL is a name in no folder (abstract in unix(7)). */
static rsm_address unix_address(mrb_state *mrb, mrb_value path) {
    rsm_address to = {.len = 0};
    struct sockaddr_un *un = (struct sockaddr_un *)&to.bytes;
    size_t len = mrb_string_p(path) ? (size_t)RSTRING_LEN(path) : 0;
    bool fits = len > 0 && len < sizeof(un->sun_path) && !memchr(RSTRING_PTR(path) + 1, 0, len - 1);
    if (!fits) refuse(mrb, "the path of a socket, a String of 1 to 107 bytes", path);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, RSTRING_PTR(path), len);
    to.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (un->sun_path[0] != 0));
    return to;
}

bool rsm_parse_digits(const char *host, int port, rsm_address *to) {
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found = NULL;
    if (getaddrinfo(host, service, &hints, &found)) return false;
    memcpy(&to->bytes, found->ai_addr, found->ai_addrlen);
    to->len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

const char *rsm_host_of(mrb_state *mrb, mrb_value host) {
    size_t len = mrb_string_p(host) ? (size_t)RSTRING_LEN(host) : 0;
    bool fits = len > 0 && len < RS_HOST_SIZE && !memchr(RSTRING_PTR(host), 0, len);
    if (!fits) refuse(mrb, "a host, a String with a name or an address", host);
    return RSTRING_CSTR(mrb, host);
}

rsm_address rsm_address_of(mrb_state *mrb, mrb_value host, mrb_value port) {
    if (mrb_nil_p(port)) return unix_address(mrb, host);
    rsm_address to = {.len = 0};
    int number = (int)rsm_int_arg(mrb, port, 0, UINT16_MAX, "the port");
    if (!rsm_parse_digits(rsm_host_of(mrb, host), number, &to)) refuse(mrb, "an address in digits", host);
    return to;
}

mrb_value rsm_address_parts(mrb_state *mrb, const void *bytes, size_t len) {
    const struct sockaddr *from = bytes;
    if (from->sa_family == AF_UNIX) {
        size_t head = offsetof(struct sockaddr_un, sun_path), room = len > head ? len - head : 0;
        const char *path = ((const struct sockaddr_un *)from)->sun_path;
        size_t end = room > 0 && path[0] == 0 ? room : strnlen(path, room);
        return mrb_assoc_new(mrb, mrb_str_new(mrb, path, (mrb_int)end), mrb_nil_value());
    }
    char host[NI_MAXHOST], port[NI_MAXSERV];
    int failed = getnameinfo(from, (socklen_t)len, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    if (failed) mrb_raise(mrb, rsm_class(mrb, "UnsupportedError"), "the socket is neither of TCP nor of Unix");
    return mrb_assoc_new(mrb, mrb_str_new_cstr(mrb, host), mrb_fixnum_value(atoi(port)));
}

mrb_value rsm_address_text(mrb_state *mrb, const void *bytes, size_t len) {
    mrb_value parts = rsm_address_parts(mrb, bytes, len), host = mrb_ary_ref(mrb, parts, 0), port = mrb_ary_ref(mrb, parts, 1);
    if (mrb_nil_p(port)) return host;
    bool v6 = ((const struct sockaddr *)bytes)->sa_family == AF_INET6;
    return mrb_format(mrb, v6 ? "[%v]:%v" : "%v:%v", host, port);
}
