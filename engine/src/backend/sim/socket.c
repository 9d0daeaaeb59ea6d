/* socket: stream sockets in memory: addresses, connections and their end. Addresses are compared as bytes, but for two things of the
 * Internet's: port 0 stands for a free one, and a socket bound to no host has that port of every host. Errors are those of Linux for
 * that family, where the families differ. */
#include "backend/sim/world.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Where Linux begins, unless told otherwise: ip(7), ip_local_port_range. */
#define PORT_FIRST 32768

/* Where the port is, in its two bytes, which both families have in the same place; NULL: the address has none. */
static uint8_t *port_of(const void *address, uint32_t len) {
    const struct sockaddr *any = address;
    bool whole = len >= sizeof(struct sockaddr_in) && any->sa_family == AF_INET;
    whole |= len >= sizeof(struct sockaddr_in6) && any->sa_family == AF_INET6;
    _Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "the same place");
    return whole ? (uint8_t *)address + offsetof(struct sockaddr_in, sin_port) : NULL;
}

static bool names_no_host(const void *address) {
    static const uint8_t none[sizeof(struct in6_addr)];
    bool old = ((const struct sockaddr *)address)->sa_family == AF_INET;
    if (old) return memcmp((const uint8_t *)address + offsetof(struct sockaddr_in, sin_addr), none, sizeof(struct in_addr)) == 0;
    return memcmp((const uint8_t *)address + offsetof(struct sockaddr_in6, sin6_addr), none, sizeof(none)) == 0;
}

static bool has_address(const sim_object *socket, const void *address, uint32_t len) {
    if (socket->kind != SIM_SOCKET || !socket->address || socket->address_len != len) return false;
    RS_CHECK(socket->refs > 0);
    if (memcmp(socket->address, address, len) == 0) return true;
    const uint8_t *port = port_of(address, len), *own = port_of(socket->address, len);
    return port && own && memcmp(port, own, 2) == 0 && names_no_host(socket->address);
}

static sim_object *bound_to(const sim_world *world, const void *address, uint32_t address_len) {
    for (uint32_t i = 0; i < world->table_len; i++) {
        sim_object *object = world->table[i];
        if (object && has_address(object, address, address_len)) return object;
    }
    return NULL;
}

/* False: all are in use. */
static bool choose_port(sim_world *world, void *address, uint32_t len) {
    uint8_t *port = port_of(address, len);
    if (!port || port[0] || port[1]) return true;
    for (uint32_t tries = 0; tries < 65536 - PORT_FIRST; tries++) {
        uint32_t number = PORT_FIRST + world->ports_chosen++ % (65536 - PORT_FIRST);
        port[0] = (uint8_t)(number >> 8);
        port[1] = (uint8_t)number;
        if (!bound_to(world, address, len)) return true;
    }
    return false;
}

static void join(sim_object *one, sim_object *other) {
    RS_CHECK(!one->peer && !other->peer && one != other);
    one->state = other->state = SIM_CONNECTED;
    one->peer = other;
    other->peer = one;
}

static void queue(sim_object *listener, sim_object *socket) {
    RS_CHECK(listener->state == SIM_LISTENING && !socket->pending_next);
    if (listener->pending_last) listener->pending_last->pending_next = socket;
    else listener->pending_first = socket;
    listener->pending_last = socket;
    listener->pending_len++;
}

static sim_object *dequeue(sim_object *listener) {
    sim_object *socket = listener->pending_first;
    if (!socket) return NULL;
    RS_CHECK(listener->pending_len > 0);
    listener->pending_first = socket->pending_next;
    if (!listener->pending_first) listener->pending_last = NULL;
    socket->pending_next = NULL;
    listener->pending_len--;
    RS_CHECK((listener->pending_len == 0) == (listener->pending_first == NULL));
    return socket;
}

/* Those who wait for a place in some listener's queue look again. */
static void retry_connects(sim_world *world) {
    if (world->connecting == 0) return;
    for (uint32_t i = 0; i < world->table_len; i++) {
        sim_object *object = world->table[i];
        if (object && object->kind == SIM_SOCKET && object->state == SIM_CONNECTING) sim_world_changed(world, object);
    }
}

static void set_connecting(sim_world *world, sim_object *socket, bool connecting) {
    if ((socket->state == SIM_CONNECTING) == connecting) return;
    RS_CHECK(connecting ? socket->state == SIM_FRESH : world->connecting > 0);
    socket->state = connecting ? SIM_CONNECTING : SIM_FRESH;
    world->connecting += connecting ? 1 : UINT32_MAX;
}

void sim_world_reset(sim_world *world, sim_object *socket) {
    RS_CHECK(socket->kind == SIM_SOCKET && (!socket->peer || socket->peer->peer == socket));
    sim_object *peer = socket->peer;
    sim_object *ends[2] = {socket, peer};
    for (int i = 0; i < 2; i++) {
        if (!ends[i]) continue;
        ends[i]->peer = NULL;
        ends[i]->in.len = 0;
        ends[i]->in.ended = true;
        ends[i]->write_shut = true;
        sim_world_changed(world, ends[i]);
    }
    if (peer) peer->error = ECONNRESET;
}

static void gone(sim_world *world, sim_object *socket) {
    RS_CHECK(socket->refs == 0 && socket->peer == NULL);
    if (socket->state == SIM_CONNECTING) set_connecting(world, socket, false);
    for (sim_object *pending; (pending = dequeue(socket));) {
        if (pending->peer) sim_world_reset(world, pending);
        sim_object_release(world, pending);
    }
    free(socket->address);
    socket->address = NULL;
    if (socket->state == SIM_LISTENING) retry_connects(world);
}

int64_t sim_socket_connect(sim_world *world, sim_object *socket, const rs_request *request) {
    if (socket->kind != SIM_SOCKET) return -ENOTSOCK;
    if (socket->state == SIM_CONNECTED) return -EISCONN;
    if (socket->state == SIM_LISTENING) return socket->family == AF_UNIX ? -EINVAL : -EISCONN;
    sim_object *listener = bound_to(world, request->address.bytes, request->address.len);
    if (!listener || listener->state != SIM_LISTENING) {
        set_connecting(world, socket, false);
        return !listener && socket->family == AF_UNIX ? -ENOENT : -ECONNREFUSED;
    }
    if (listener->pending_len > listener->pending_max) {
        set_connecting(world, socket, true);
        return -EAGAIN;
    }
    set_connecting(world, socket, false);
    sim_object *other = sim_world_new_object(SIM_SOCKET, gone);
    if (!other) return -ENOMEM;
    other->family = socket->family;
    join(socket, other);
    queue(listener, other);
    sim_world_changed(world, listener);
    sim_world_changed(world, socket);
    return 0;
}

int64_t sim_socket_accept(sim_world *world, sim_object *listener) {
    if (listener->kind != SIM_SOCKET) return -ENOTSOCK;
    if (listener->state != SIM_LISTENING || listener->read_shut) return -EINVAL;
    if (listener->pending_len == 0) return -EAGAIN;
    RS_CHECK(listener->pending_first != NULL && !listener->peer);
    if (world->open >= SIM_DESCRIPTORS_MAX) return -EMFILE;
    if (!sim_world_reserve(world, 1)) return -ENOMEM;
    int64_t fd = sim_world_install(world, dequeue(listener));
    retry_connects(world);
    return fd;
}

static int64_t new_socket(sim_world *world, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_SOCKET);
    /* SOCK_NONBLOCK and SOCK_CLOEXEC are in there too. */
    if ((request->socket.type & 0xF) != SOCK_STREAM) return -EPROTONOSUPPORT;
    if (world->open >= SIM_DESCRIPTORS_MAX) return -EMFILE;
    sim_object *socket = sim_world_reserve(world, 1) ? sim_world_new_object(SIM_SOCKET, gone) : NULL;
    if (!socket) return -ENOMEM;
    socket->family = request->socket.family;
    return sim_world_install(world, socket);
}

static int64_t new_pair(sim_world *world, const rs_request *request) {
    RS_CHECK(request->socket.pair != NULL);
    if ((request->socket.type & 0xF) != SOCK_STREAM) return -EPROTONOSUPPORT;
    if (world->open + 2 > SIM_DESCRIPTORS_MAX) return -EMFILE;
    if (!sim_world_reserve(world, 2)) return -ENOMEM;
    sim_object *sockets[2];
    for (int i = 0; i < 2; i++) {
        sockets[i] = sim_world_new_object(SIM_SOCKET, gone);
        if (!sockets[i] && i == 1) sim_object_release(world, sockets[0]);
        if (!sockets[i]) return -ENOMEM;
        sockets[i]->family = request->socket.family;
    }
    join(sockets[0], sockets[1]);
    int *pair = request->socket.pair;
    for (int i = 0; i < 2; i++) pair[i] = (int)sim_world_install(world, sockets[i]);
    return 0;
}

static int64_t bind_to(sim_world *world, sim_object *socket, const rs_request *request) {
    RS_CHECK(socket->kind == SIM_SOCKET);
    if (socket->address || socket->state != SIM_FRESH) return -EINVAL;
    const rs_socket_address *asked = &request->address;
    void *address = rs_try_alloc(asked->len ? asked->len : 1);
    if (!address) return -ENOMEM;
    memcpy(address, asked->bytes, asked->len);
    if (!choose_port(world, address, asked->len) || bound_to(world, address, asked->len)) {
        free(address);
        return -EADDRINUSE;
    }
    socket->address = address;
    socket->address_len = asked->len;
    return 0;
}

static int64_t listen_on(sim_object *socket, const rs_request *request) {
    RS_CHECK(socket->kind == SIM_SOCKET);
    if (!socket->address || socket->state == SIM_CONNECTED) return -EINVAL;
    socket->state = SIM_LISTENING;
    socket->pending_max = request->listen.backlog > SOMAXCONN ? SOMAXCONN : request->listen.backlog;
    return 0;
}

static int64_t shut(sim_world *world, sim_object *socket, const rs_request *request) {
    RS_CHECK(socket->kind == SIM_SOCKET);
    uint32_t how = request->shutdown.how;
    if (how > SHUT_RDWR) return -EINVAL;
    if (socket->state != SIM_CONNECTED && socket->state != SIM_LISTENING) return -ENOTCONN;
    if (how != SHUT_WR) socket->read_shut = true;
    if (how != SHUT_RD) {
        socket->write_shut = true;
        if (socket->peer) socket->peer->in.ended = true;
    }
    sim_world_changed(world, socket);
    if (socket->peer) sim_world_changed(world, socket->peer);
    return 0;
}

static int64_t get_option(sim_object *socket, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_GETSOCKOPT);
    const rs_option_request *option = &request->option;
    if (option->level != SOL_SOCKET) return -ENOPROTOOPT;
    int value = 0;
    if (option->len < sizeof(value)) return -EINVAL;
    if (option->name == SO_ERROR) {
        value = socket->error;
        socket->error = 0;
    } else if (option->name == SO_TYPE) {
        value = SOCK_STREAM;
    } else if (option->name == SO_ACCEPTCONN) {
        value = socket->state == SIM_LISTENING;
    }
    memcpy(option->value, &value, sizeof(value));
    return sizeof(value);
}

int64_t sim_socket_perform(sim_world *world, const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->never_waits);
    if (request->kind == RS_OP_SOCKET) return new_socket(world, request);
    if (request->kind == RS_OP_SOCKETPAIR) return new_pair(world, request);
    sim_object *socket = sim_world_find(world, request->fd);
    if (!socket) return -EBADF;
    if (socket->kind != SIM_SOCKET) return -ENOTSOCK;
    switch (request->kind) {
    case RS_OP_BIND: return bind_to(world, socket, request);
    case RS_OP_LISTEN: return listen_on(socket, request);
    case RS_OP_SHUTDOWN: return shut(world, socket, request);
    case RS_OP_GETSOCKOPT: return get_option(socket, request);
    default: return 0; /* options are taken and change nothing */
    }
}
