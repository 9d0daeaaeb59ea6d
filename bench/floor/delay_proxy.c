/*
 * Between a client and a server that is elsewhere: takes TCP connections on the loopback, connects each to a Unix socket, and
 * hands on what comes from either side half a round trip later. Prints its port, and ends with its standard input.
 *
 *   delay_proxy MICROSECONDS PATH      of a round trip; of the server's socket
 *
 * All bytes are delayed alike, so what is under way is one queue. It holds whatever it is given: its clients wait for answers.
 */
#include "measure.h"

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
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, BACKLOG = 1024, ROOM = 1 << 16 };

struct end;

/* Bytes for one end. None at all: those from the other end have ended. */
struct chunk {
    struct chunk *next;
    struct end *to;
    uint64_t due_ns;
    size_t length;
    size_t sent;
    char bytes[];
};

struct queue {
    struct chunk *first;
    struct chunk **last;
};

/* One of the two sockets of a connection. */
struct end {
    int fd;
    bool silent;          /* nothing more comes from it */
    bool ended;           /* nothing more goes to it */
    struct queue arrived; /* what its socket has not yet taken */
    struct end *other;
};

static struct queue under_way = { .last = &under_way.first };
static struct end *to_be_freed; /* an event of this turn may still name it */
static uint64_t half_ns;
static struct sockaddr_un server = { .sun_family = AF_UNIX };

static uint64_t now_ns(void)
{
    struct timespec clock;

    must(clock_gettime(CLOCK_MONOTONIC, &clock) == 0, "clock_gettime");
    return (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
}

static void put(struct queue *queue, struct chunk *chunk)
{
    chunk->next = NULL;
    *queue->last = chunk;
    queue->last = &chunk->next;
}

static struct chunk *take(struct queue *queue)
{
    struct chunk *chunk = queue->first;

    queue->first = chunk->next;
    if (!queue->first)
        queue->last = &queue->first;
    return chunk;
}

static void watch(int poll, int fd, uint32_t events, void *whose)
{
    struct epoll_event event = { .events = events | EPOLLET, .data.ptr = whose };

    must(epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* The pair of ends is one allocation. */
static struct end *ends_of(int client, int upstream)
{
    struct end *ends = calloc(2, sizeof(*ends));

    must(ends != NULL, "calloc");
    for (unsigned i = 0; i < 2; i++) {
        ends[i].fd = i ? upstream : client;
        ends[i].other = &ends[!i];
        ends[i].arrived.last = &ends[i].arrived.first;
    }
    return ends;
}

static void accept_all(int poll, int listener)
{
    int client, on = 1;

    while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int upstream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        must(upstream >= 0 && connect(upstream, (struct sockaddr *)&server, sizeof(server)) == 0, "connect");
        must(fcntl(upstream, F_SETFL, O_NONBLOCK) == 0, "fcntl");
        must(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "TCP_NODELAY");

        struct end *ends = ends_of(client, upstream);

        watch(poll, client, EPOLLIN | EPOLLOUT, &ends[0]);
        watch(poll, upstream, EPOLLIN | EPOLLOUT, &ends[1]);
    }
    must(errno == EAGAIN, "accept4");
}

static void send_off(struct end *to, const char *bytes, size_t length)
{
    struct chunk *chunk = malloc(sizeof(*chunk) + length);

    must(chunk != NULL, "malloc");
    *chunk = (struct chunk){ .to = to, .due_ns = now_ns() + half_ns, .length = length };
    memcpy(chunk->bytes, bytes, length);
    put(&under_way, chunk);
}

/* A read that leaves room has taken all there was, which is when the next event comes. */
static void read_all(struct end *from)
{
    static char room[ROOM];
    ssize_t got;

    do {
        got = recv(from->fd, room, sizeof(room), 0);
        if (got < 0 && errno == EAGAIN)
            return;
        from->silent = got <= 0;
        send_off(from->other, room, from->silent ? 0 : (size_t)got);
    } while (got == sizeof(room));
}

static void close_when_both_ended(struct end *end)
{
    struct end *ends = end < end->other ? end : end->other;

    if (!ends[0].ended || !ends[1].ended)
        return;
    close(ends[0].fd);
    close(ends[1].fd);
    ends[0].other = to_be_freed;
    to_be_freed = ends;
}

static void write_all(struct end *to)
{
    while (to->arrived.first) {
        struct chunk *chunk = to->arrived.first;

        if (chunk->length == 0) {
            shutdown(to->fd, SHUT_WR);
            to->ended = true;
        } else {
            ssize_t sent = send(to->fd, chunk->bytes + chunk->sent, chunk->length - chunk->sent, MSG_NOSIGNAL);

            if (sent < 0 && errno == EAGAIN)
                return;
            /* Whoever has gone needs no more of it. */
            chunk->sent = sent < 0 ? chunk->length : chunk->sent + (size_t)sent;
            if (chunk->sent < chunk->length)
                continue;
        }
        free(take(&to->arrived));
    }
    if (to->ended)
        close_when_both_ended(to);
}

static void serve(struct end *end, uint32_t events)
{
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !end->silent)
        read_all(end);
    if (events & EPOLLOUT && !end->ended)
        write_all(end);
}

static void deliver(void)
{
    uint64_t now = now_ns();

    while (under_way.first && under_way.first->due_ns <= now) {
        struct chunk *chunk = take(&under_way);
        struct end *to = chunk->to;

        put(&to->arrived, chunk);
        write_all(to);
    }
}

static void arm(int timer)
{
    static uint64_t armed_ns;
    struct itimerspec when = { 0 };

    if (!under_way.first || under_way.first->due_ns == armed_ns)
        return;
    armed_ns = under_way.first->due_ns;
    when.it_value.tv_sec = (time_t)(armed_ns / 1000000000u);
    when.it_value.tv_nsec = (long)(armed_ns % 1000000000u);
    must(timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) == 0, "timerfd_settime");
}

static void free_closed(void)
{
    while (to_be_freed) {
        struct end *ends = to_be_freed;

        to_be_freed = ends[0].other;
        free(ends);
    }
}

static int listen_on_loopback(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, BACKLOG) == 0, "listen");
    must(getsockname(fd, (struct sockaddr *)&address, &length) == 0, "getsockname");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int count, char **arguments)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event events[EVENTS];

    half_ns = (uint64_t)argument(arguments, count, 1) * 1000u / 2;
    must(poll >= 0 && timer >= 0, "epoll_create1, timerfd_create");
    must(count > 2 && strlen(arguments[2]) < sizeof(server.sun_path), "the path of a socket");
    strcpy(server.sun_path, arguments[2]);

    int listener = listen_on_loopback();

    watch(poll, STDIN_FILENO, EPOLLIN, NULL);
    watch(poll, listener, EPOLLIN, &listener);
    watch(poll, timer, EPOLLIN, &timer);
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1);

        must(ready >= 0 || errno == EINTR, "epoll_wait");
        for (int i = 0; i < ready; i++) {
            void *whose = events[i].data.ptr;

            if (!whose)
                return 0;
            if (whose == &listener)
                accept_all(poll, listener);
            else if (whose != &timer)
                serve(whose, events[i].events);
        }
        deliver();
        arm(timer);
        free_closed();
    }
}
