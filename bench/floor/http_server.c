/*
 * The other side of the tables of HTTP requests: a server that answers each after so many microseconds, as a service elsewhere
 * does, and closes the connection. In a process of its own, and faster than any contender. Prints its port, and ends with its
 * standard input.
 *
 *   http_server MICROSECONDS
 */
#include "measure.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, BACKLOG = 4096, DESCRIPTORS = 1 << 16 };

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

/* Connections that have asked, in the order in which they are due: all wait equally long. */
struct waiting {
    int fd;
    uint64_t due_ns;
};

static struct waiting waiting[DESCRIPTORS];
static unsigned first, after_last;

static uint64_t now_ns(void)
{
    struct timespec clock;

    must(clock_gettime(CLOCK_MONOTONIC, &clock) == 0, "clock_gettime");
    return (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
}

static void watch(int poll, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    must(epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static void arm(int timer)
{
    struct itimerspec when = { 0 };

    if (first != after_last) {
        uint64_t due_ns = waiting[first % DESCRIPTORS].due_ns;

        when.it_value.tv_sec = (time_t)(due_ns / 1000000000u);
        when.it_value.tv_nsec = (long)(due_ns % 1000000000u);
    }
    must(timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) == 0, "timerfd_settime");
}

static void accept_all(int poll, int listener)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
        watch(poll, fd);
    must(errno == EAGAIN || errno == ECONNABORTED, "accept");
}

/* A request is in one packet: none of the contenders writes its head in pieces. */
static void receive(int poll, int fd, uint64_t latency_ns)
{
    char request[4096];
    ssize_t got = recv(fd, request, sizeof(request), 0);

    if (got < 4 || memcmp(request + got - 4, "\r\n\r\n", 4) != 0) {
        close(fd);
        return;
    }
    must(epoll_ctl(poll, EPOLL_CTL_DEL, fd, NULL) == 0, "epoll_ctl");
    must(after_last - first < DESCRIPTORS, "too many connections");
    waiting[after_last++ % DESCRIPTORS] = (struct waiting) { .fd = fd, .due_ns = now_ns() + latency_ns };
}

static void answer_due(void)
{
    uint64_t now = now_ns();

    while (first != after_last && waiting[first % DESCRIPTORS].due_ns <= now) {
        int fd = waiting[first++ % DESCRIPTORS].fd;

        /* Who has gone meanwhile does not matter. */
        if (send(fd, ANSWER, strlen(ANSWER), MSG_NOSIGNAL) < 0)
            must(errno == EPIPE || errno == ECONNRESET, "send");
        close(fd);
    }
}

static int listen_somewhere(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    must(listen(fd, BACKLOG) == 0, "listen");
    must(getsockname(fd, (struct sockaddr *)&address, &length) == 0, "getsockname");
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void raise_limit(void)
{
    struct rlimit limit;

    must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

int main(int count, char **arguments)
{
    uint64_t latency_ns = (uint64_t)argument(arguments, count, 1) * 1000u;
    int poll = epoll_create1(0);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    int listener;

    must(poll >= 0 && timer >= 0, "epoll_create1");
    raise_limit();
    listener = listen_somewhere();
    watch(poll, listener);
    watch(poll, timer);
    watch(poll, STDIN_FILENO);
    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll, events, EVENTS, -1);

        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;

            if (fd == STDIN_FILENO)
                return 0;
            else if (fd == listener)
                accept_all(poll, listener);
            else if (fd != timer)
                receive(poll, fd, latency_ns);
        }
        answer_due();
        arm(timer);
    }
}
