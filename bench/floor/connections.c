/*
 * Both sides of the tables `accept` and `idle`, over TCP on this host.
 *
 *   connections serve COUNT          floor of `accept`: accept and close, one after the other, from one thread; the
 *                                    storm comes from child processes
 *   connections storm PORT           the contenders' clients: connect as often as their standard input says, until it ends
 *   connections hold PORT COUNT      the same, but from one process, COUNT times at most, and kept open until then
 *
 * A client ends its connections with a reset: no port of it stays behind for a minute, so that a long bench does not run
 * out of them. Those of a storm it ends at once, because what the goodbye of a live connection costs is twice what accepting
 * one costs, and would hide it.
 */
#include "measure.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Each byte that the server writes to the clients is a ticket for so many connections. With TICKETS of them under way a
 * server that is busy for a moment finds a crowd, and the backlog is never full, where a connect would wait for a second.
 */
enum { CLIENTS = 4, TICKET = 128, TICKETS = 4, BACKLOG = 1024 };

static int connect_to(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0, "socket");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0, "setsockopt");
    must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
    return fd;
}

static void connect_often(unsigned port)
{
    char ticket;

    while (read(STDIN_FILENO, &ticket, 1) == 1)
        for (unsigned i = 0; i < TICKET; i++)
            close(connect_to(port));
}

/* In one process for each client, because one alone is hardly faster than the server. */
static void storm(unsigned port)
{
    int status;

    for (unsigned i = 0; i < CLIENTS; i++) {
        pid_t client = fork();

        must(client >= 0, "fork");
        if (client == 0) {
            connect_often(port);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        must(wait(&status) > 0 && status == 0, "a client failed");
}

static void hold(unsigned port, unsigned count)
{
    unsigned opened = 0;
    char ticket;

    while (read(STDIN_FILENO, &ticket, 1) == 1)
        for (unsigned i = 0; i < TICKET && opened < count; i++, opened++)
            connect_to(port);
}

static int listen_anywhere(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0, "socket");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    must(listen(fd, BACKLOG) == 0, "listen");
    must(getsockname(fd, (struct sockaddr *)&address, &length) == 0, "getsockname");
    *port = ntohs(address.sin_port);
    return fd;
}

static pid_t start_clients(unsigned port, int *tickets)
{
    int ends[2];
    pid_t clients;

    must(pipe(ends) == 0, "pipe");
    clients = fork();
    must(clients >= 0, "fork");
    if (clients == 0) {
        must(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO, "dup2");
        close(ends[1]);
        storm(port);
        _exit(0);
    }
    *tickets = ends[1];
    return clients;
}

static void serve(unsigned count)
{
    struct measurement measurement;
    unsigned port, accepted = 0;
    int status, tickets, listener = listen_anywhere(&port);
    pid_t clients = start_clients(port, &tickets);

    measure_begin(&measurement);
    must(write(tickets, "tttt", TICKETS) == TICKETS, "write");
    while (accepted < count) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        must(fd >= 0, "accept");
        close(fd);
        accepted++;
        if (accepted % TICKET == 0 && accepted + TICKET * (TICKETS - 1) < count)
            must(write(tickets, "t", 1) == 1, "write");
    }
    measure_end(&measurement);
    measurement.operations = accepted;
    close(tickets);
    must(waitpid(clients, &status, 0) == clients && status == 0, "the clients failed");
    measure_report(&measurement, 1, 0, "accepted", accepted);
}

int main(int count, char **arguments)
{
    const char *part = count > 1 ? arguments[1] : "";
    unsigned first = argument(arguments, count, 2);

    if (strcmp(part, "serve") == 0) {
        serve(first);
    } else if (strcmp(part, "storm") == 0) {
        storm(first);
    } else {
        must(strcmp(part, "hold") == 0, "no such part");
        hold(first, argument(arguments, count, 3));
    }
    return 0;
}
