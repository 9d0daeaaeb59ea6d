/*
 * Both sides of the table `tls_echo`, over TCP on this host, with libssl alone. Its functions are looked up when it runs, so that
 * no header of it needs to be there.
 *
 *   tls_messages serve PEM CONNECTIONS TRIPS BYTES   the floor: one thread sends back what each connection gets, by epoll; the
 *                                                    clients are a child process
 *   tls_messages talk PORT CONNECTIONS TRIPS BYTES   the contenders' clients: connects, and at a byte on its standard input sends
 *                                                    TRIPS messages on each connection, each when the last one is back; prints how
 *                                                    many came back as they were sent
 */
#include "measure.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What libssl's headers would say. */
enum { WANT_READ = 2, WANT_WRITE = 3, FILETYPE_PEM = 1, CTRL_MODE = 33, CTRL_READ_AHEAD = 41, MODE_PARTIAL_WRITE = 1 };

static struct {
    const void *(*TLS_method)(void);
    void *(*SSL_CTX_new)(const void *method);
    long (*SSL_CTX_ctrl)(void *context, int command, long number, void *pointer);
    int (*SSL_CTX_use_certificate_file)(void *context, const char *path, int type);
    int (*SSL_CTX_use_PrivateKey_file)(void *context, const char *path, int type);
    void *(*SSL_new)(void *context);
    int (*SSL_set_fd)(void *ssl, int fd);
    int (*SSL_accept)(void *ssl);
    int (*SSL_connect)(void *ssl);
    int (*SSL_read)(void *ssl, void *bytes, int length);
    int (*SSL_write)(void *ssl, const void *bytes, int length);
    int (*SSL_get_error)(const void *ssl, int result);
    int (*SSL_shutdown)(void *ssl);
} tls;

static const char *const names[] = {
    "TLS_method", "SSL_CTX_new", "SSL_CTX_ctrl", "SSL_CTX_use_certificate_file", "SSL_CTX_use_PrivateKey_file", "SSL_new",
    "SSL_set_fd", "SSL_accept", "SSL_connect", "SSL_read", "SSL_write", "SSL_get_error", "SSL_shutdown",
};

struct plan {
    unsigned connections;
    unsigned trips;
    unsigned bytes;
};

struct connection {
    int fd;
    void *ssl;
    char *message;
    unsigned length; /* of the message that is coming */
    unsigned trips;
    char *payload;
};

static void find_library(void)
{
    void *handle = dlopen("libssl.so.3", RTLD_NOW);
    void *all[sizeof(names) / sizeof(names[0])];

    if (!handle)
        handle = dlopen("libssl.so.1.1", RTLD_NOW);
    if (!handle)
        unavailable("no libssl for the floor");
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        all[i] = dlsym(handle, names[i]);
        must(all[i] != NULL, names[i]);
    }
    memcpy(&tls, all, sizeof(tls));
}

/* A record in one call of the kernel's, instead of its head and its rest. */
static void *new_context(void)
{
    void *context = tls.SSL_CTX_new(tls.TLS_method());

    must(context != NULL, "SSL_CTX_new");
    tls.SSL_CTX_ctrl(context, CTRL_MODE, MODE_PARTIAL_WRITE, NULL);
    tls.SSL_CTX_ctrl(context, CTRL_READ_AHEAD, 1, NULL);
    return context;
}

static void open_connection(struct connection *connection, void *context, int fd, const struct plan *plan, int (*shake)(void *))
{
    int on = 1;

    *connection = (struct connection){.fd = fd, .ssl = tls.SSL_new(context), .message = malloc(plan->bytes)};
    must(connection->message && connection->ssl, "malloc");
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "setsockopt");
    must(tls.SSL_set_fd(connection->ssl, fd) == 1 && shake(connection->ssl) == 1, "handshake");
    must(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
}

static void send_all(struct connection *connection, const char *bytes, unsigned length)
{
    for (unsigned sent = 0; sent < length;) {
        int result = tls.SSL_write(connection->ssl, bytes + sent, (int)(length - sent));
        struct pollfd room = {.fd = connection->fd, .events = POLLOUT};

        if (result > 0)
            sent += (unsigned)result;
        else
            must(tls.SSL_get_error(connection->ssl, result) == WANT_WRITE && poll(&room, 1, -1) == 1, "SSL_write");
    }
}

/* True when a message is whole; false when more of it must come. `ended`: none will. */
static bool receive(struct connection *connection, const struct plan *plan, bool *ended)
{
    while (connection->length < plan->bytes) {
        int result = tls.SSL_read(connection->ssl, connection->message + connection->length, (int)(plan->bytes - connection->length));

        if (result <= 0) {
            *ended = tls.SSL_get_error(connection->ssl, result) != WANT_READ;
            return false;
        }
        connection->length += (unsigned)result;
    }
    connection->length = 0;
    return true;
}

static void watch(int epoll, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

    must(epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event) == 0, "epoll_ctl");
}

static void end(struct connection *connection)
{
    tls.SSL_shutdown(connection->ssl);
    close(connection->fd);
}

/* --- the clients --- */

static int connect_to(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0, "socket");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
    return fd;
}

static void talk(unsigned port, const struct plan *plan)
{
    struct connection *connections = calloc(plan->connections, sizeof(*connections));
    void *context = new_context();
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t intact = 0;
    unsigned open = plan->connections;
    char go;

    must(connections && epoll >= 0, "epoll");
    for (unsigned i = 0; i < plan->connections; i++) {
        open_connection(&connections[i], context, connect_to(port), plan, tls.SSL_connect);
        connections[i].payload = malloc(plan->bytes);
        must(connections[i].payload != NULL, "malloc");
        payload_fill(connections[i].payload, plan->bytes, i);
        watch(epoll, &connections[i]);
    }
    must(read(STDIN_FILENO, &go, 1) == 1, "nobody says go");
    for (unsigned i = 0; i < plan->connections; i++)
        send_all(&connections[i], connections[i].payload, plan->bytes);
    while (open > 0) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            bool ended = false;

            if (!receive(connection, plan, &ended)) {
                must(!ended, "the server has ended");
                continue;
            }
            intact += memcmp(connection->message, connection->payload, plan->bytes) == 0;
            if (++connection->trips < plan->trips) {
                send_all(connection, connection->payload, plan->bytes);
                continue;
            }
            end(connection);
            open--;
        }
    }
    printf("%llu\n", (unsigned long long)intact);
}

/* --- the floor --- */

static uint64_t serve_all(int epoll, const struct plan *plan)
{
    unsigned open = plan->connections;
    uint64_t messages = 0;

    while (open > 0) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            bool ended = false;

            if (receive(connection, plan, &ended)) {
                send_all(connection, connection->message, plan->bytes);
                messages++;
            } else if (ended) {
                end(connection);
                open--;
            }
        }
    }
    return messages;
}

static pid_t start_clients(int listener, unsigned port, const struct plan *plan, int *go)
{
    int ends[2];
    pid_t child = -1;

    must(pipe(ends) == 0 && (child = fork()) >= 0, "fork");
    if (child == 0) {
        close(listener);
        dup2(ends[0], STDIN_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        talk(port, plan);
        _exit(0);
    }
    *go = ends[1];
    return child;
}

static void serve(const char *pem, const struct plan *plan)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    struct connection *connections = calloc(plan->connections, sizeof(*connections));
    struct measurement measurement;
    void *context = new_context();
    int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), go, status;
    uint64_t messages;
    pid_t clients;

    must(connections && tls.SSL_CTX_use_certificate_file(context, pem, FILETYPE_PEM) == 1 &&
         tls.SSL_CTX_use_PrivateKey_file(context, pem, FILETYPE_PEM) == 1, "certificate");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1024) == 0 &&
         getsockname(listener, (struct sockaddr *)&address, &length) == 0, "listen");
    clients = start_clients(listener, ntohs(address.sin_port), plan, &go);
    for (unsigned i = 0; i < plan->connections; i++) {
        open_connection(&connections[i], context, accept(listener, NULL, NULL), plan, tls.SSL_accept);
        watch(epoll, &connections[i]);
    }
    measure_begin(&measurement);
    must(write(go, "g", 1) == 1, "write");
    messages = serve_all(epoll, plan);
    measure_end(&measurement);
    must(waitpid(clients, &status, 0) == clients && status == 0, "the clients failed");
    measurement.operations = messages;
    measure_report(&measurement, 1, messages * plan->bytes, "intact", messages);
}

int main(int count, char **arguments)
{
    struct plan plan = {
        .connections = argument(arguments, count, 3),
        .trips = argument(arguments, count, 4),
        .bytes = argument(arguments, count, 5),
    };

    find_library();
    if (strcmp(arguments[1], "talk") == 0)
        talk(argument(arguments, count, 2), &plan);
    else
        serve(arguments[2], &plan);
    return 0;
}
