/*
 * The floor of the tables of HTTP servers: a loop on epoll that answers whatever ends with an empty line with the same bytes. It reads
 * no head, knows no clock and no limit. With an event it sends the bytes as the head of a stream, and then the event at each tick.
 *
 *   http_constant PORT ANSWER [EVENT MICROSECONDS]
 *
 * ANSWER and EVENT are files. Ends by a signal.
 */
#include "measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 256, BACKLOG = 4096, CONNECTIONS_MAX = 1 << 16, BYTES_MAX = 4096 };

static struct { char bytes[BYTES_MAX]; size_t len; } answer, event;
static bool is_streaming[CONNECTIONS_MAX];
static int last;

static void read_file(const char *path, char *bytes, size_t *len)
{
    int fd = open(path, O_RDONLY);
    ssize_t got;

    must(fd >= 0, path);
    got = read(fd, bytes, BYTES_MAX);
    must(got >= 0, path);
    *len = (size_t)got;
    close(fd);
}

static void watch(int poll, int fd)
{
    struct epoll_event watched = { .events = EPOLLIN, .data.fd = fd };

    must(epoll_ctl(poll, EPOLL_CTL_ADD, fd, &watched) == 0, "epoll_ctl");
}

static void accept_all(int poll, int listener)
{
    int fd, on = 1;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        must(fd < CONNECTIONS_MAX, "too many connections");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        is_streaming[fd] = false;
        last = fd > last ? fd : last;
        watch(poll, fd);
    }
    must(errno == EAGAIN || errno == ECONNABORTED, "accept");
}

static void forget(int fd)
{
    is_streaming[fd] = false;
    close(fd);
}

/* A head comes in one piece here. */
static void receive(int fd)
{
    char request[BYTES_MAX];
    ssize_t got = recv(fd, request, sizeof(request), 0);

    if (got < 4 || memcmp(request + got - 4, "\r\n\r\n", 4) != 0)
        forget(fd);
    else if (send(fd, answer.bytes, answer.len, MSG_NOSIGNAL) != (ssize_t)answer.len)
        forget(fd);
    else
        is_streaming[fd] = event.len > 0;
}

static void tick(int timer)
{
    uint64_t times;

    must(read(timer, &times, sizeof(times)) == sizeof(times), "read of a timer");
    for (int fd = 0; fd <= last; fd++) {
        if (is_streaming[fd] && send(fd, event.bytes, event.len, MSG_NOSIGNAL) < 0)
            is_streaming[fd] = false;
    }
}

static int listen_at(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((in_port_t)port) };
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0, "socket");
    must(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, BACKLOG) == 0, "listen");
    return fd;
}

static int start_timer(int poll, unsigned microseconds)
{
    struct itimerspec when = { .it_interval = { microseconds / 1000000, (long)(microseconds % 1000000) * 1000 } };
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);

    when.it_value = when.it_interval;
    must(timer >= 0 && timerfd_settime(timer, 0, &when, NULL) == 0, "timerfd");
    watch(poll, timer);
    return timer;
}

int main(int count, char **arguments)
{
    int poll = epoll_create1(0), listener = listen_at(argument(arguments, count, 1)), timer = -1;

    must(poll >= 0 && count > 2, "usage: http_constant PORT ANSWER [EVENT MICROSECONDS]");
    read_file(arguments[2], answer.bytes, &answer.len);
    if (count > 4) {
        read_file(arguments[3], event.bytes, &event.len);
        timer = start_timer(poll, argument(arguments, count, 4));
    }
    watch(poll, listener);
    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll, events, EVENTS, -1);

        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;

            if (fd == listener)
                accept_all(poll, listener);
            else if (fd == timer)
                tick(timer);
            else
                receive(fd);
        }
    }
}
