/*
 * Floor of the tables of enqueuing: batch after batch of jobs into one queue over one blocking connection, each batch with one
 * SADD and one variadic LPUSH, whose bytes are made beforehand.
 *
 *   redis_push PORT JOBS BATCH BYTES      BYTES: of a job
 */
#include "measure.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char EMPTY[] = "*1\r\n$8\r\nFLUSHALL\r\n";
static const char LENGTH[] = "*2\r\n$4\r\nLLEN\r\n$13\r\nqueue:default\r\n";
static const char REGISTER[] = "*3\r\n$4\r\nSADD\r\n$6\r\nqueues\r\n$7\r\ndefault\r\n";

struct request {
    char *bytes;
    size_t length;
};

static int connect_to(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "TCP_NODELAY");
    return fd;
}

static struct request request_of(unsigned batch, unsigned bytes)
{
    size_t room = sizeof(REGISTER) + 64 + (size_t)batch * (bytes + 24);
    struct request request = { .bytes = malloc(room) };
    char *job = malloc(bytes);
    char *at = request.bytes;

    must(request.bytes && job, "malloc");
    at += sprintf(at, "%s*%u\r\n$5\r\nLPUSH\r\n$13\r\nqueue:default\r\n", REGISTER, batch + 2);
    for (unsigned i = 0; i < batch; i++) {
        payload_fill(job, bytes, i);
        at += sprintf(at, "$%u\r\n", bytes);
        memcpy(at, job, bytes);
        memcpy(at + bytes, "\r\n", 2);
        at += bytes + 2;
    }
    free(job);
    request.length = (size_t)(at - request.bytes);
    return request;
}

static void send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, 0);

        must(sent > 0, "send");
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* Reads so many answers of one line each, and answers the number in the last of them. */
static unsigned long answers(int fd, unsigned count)
{
    char text[256];
    size_t have = 0;

    for (;;) {
        ssize_t got = recv(fd, text + have, sizeof(text) - 1 - have, 0);
        unsigned lines = 0;
        const char *last = text;

        must(got > 0, "recv");
        have += (size_t)got;
        text[have] = '\0';
        must(!strchr(text, '-'), text);
        for (const char *at = text; lines < count && (at = strchr(at, '\n')); at++)
            if (++lines < count)
                last = at + 1;
        if (lines == count)
            return strtoul(last + 1, NULL, 10);
    }
}

static void push(int fd, const struct request *request)
{
    send_all(fd, request->bytes, request->length);
    answers(fd, 2);
}

int main(int count, char **arguments)
{
    int fd = connect_to(argument(arguments, count, 1));
    unsigned jobs = argument(arguments, count, 2);
    unsigned batch = argument(arguments, count, 3);
    unsigned bytes = argument(arguments, count, 4);
    struct request full = request_of(batch, bytes);
    struct request rest = request_of(jobs % batch ? jobs % batch : 1, bytes);
    struct measurement measurement;
    unsigned long enqueued;

    send_all(fd, EMPTY, strlen(EMPTY));
    answers(fd, 1);
    for (unsigned i = 0; i < 100; i++)
        push(fd, &rest);
    send_all(fd, EMPTY, strlen(EMPTY));
    answers(fd, 1);

    measure_begin(&measurement);
    for (unsigned done = 0; done + batch <= jobs; done += batch)
        push(fd, &full);
    if (jobs % batch)
        push(fd, &rest);
    measure_end(&measurement);

    send_all(fd, LENGTH, strlen(LENGTH));
    enqueued = answers(fd, 1);
    send_all(fd, EMPTY, strlen(EMPTY));
    answers(fd, 1);
    measurement.operations = jobs;
    measure_report(&measurement, 1, (uint64_t)jobs * bytes, "lost", jobs - enqueued);
    return 0;
}
