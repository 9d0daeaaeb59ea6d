/*
 * The clients of the tables of HTTP servers, in one thread: connections that ask again as soon as they are answered, others that
 * come new from time to time, or streams of events. Every byte of an answer is compared with what it has to be.
 *
 *   http_load PORT REQUEST BODY NAME=COUNT...
 *
 * REQUEST and BODY are files: the bytes that are sent, and those of the body that is awaited. The names:
 *
 *   connections   how many ask again and again; none unless given
 *   ms            how long they do so, or
 *   each          how often each does
 *   new_us        the time between two new connections, with one request each, until the milliseconds are over
 *   events        the body is an event, of which each connection gets that many, in an answer without end
 *   skim          of larger answers the bytes are counted, and looked at before the region alone
 *
 * It prints "ready" when each connection has been answered once (`warm_ms` for longer than that), waits for a line, asks, prints what
 * came of it as JSON, and ends with its standard input. A wrong answer it prints at once, and ends.
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
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 512, HEAD_MAX = 8192, BUFFER = 1 << 18, SKIMMED = 1 << 20, NEW_MAX = 1024, LATENCIES_MAX = 1 << 20 };

typedef enum { IN_HEAD, IN_BODY, IN_SIZE, IN_CHUNK, BEHIND_CHUNK, IN_TRAILERS, AT_END } place;

struct connection {
    int fd;
    bool is_connecting, is_new, is_owed, wants_out, will_close;
    size_t sent;
    place place;
    char head[HEAD_MAX];
    size_t head_len;
    uint64_t left;      /* bytes of the body, or of the chunk */
    size_t at;          /* bytes of the body that have come; of the event, where it is one */
    size_t line_len;    /* bytes of the line of a chunk's size, or of a trailer */
    unsigned asked, events;
    uint64_t asked_ns;
};

static struct { char *bytes; size_t len; } request, body;
static struct { unsigned connections, ms, each, new_us, events, skim, warm_ms; } asked;
static struct sockaddr_in address = { .sin_family = AF_INET };
static struct connection *all;
static unsigned count, outstanding;
static int poll_fd;
static char buffer[BUFFER];

static bool is_measuring, is_over;
static uint64_t answered, latencies_count;
static float *latencies;

static uint64_t now_ns(void)
{
    struct timespec clock;

    must(clock_gettime(CLOCK_MONOTONIC, &clock) == 0, "clock_gettime");
    return (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
}

/* --- an answer --- */

/* One wrong answer voids the run, so it is the end. */
static _Noreturn void fault(const char *what)
{
    printf("{\"fault\":\"%s\"}\n", what);
    fflush(stdout);
    exit(0);
}

/* The value of a field of the head, or NULL. */
static const char *field(const struct connection *connection, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = strchr(connection->head, '\n'); line; line = strchr(line + 1, '\n')) {
        if (strncasecmp(line + 1, name, len) == 0 && line[1 + len] == ':')
            return line + 2 + len + strspn(line + 2 + len, " \t");
    }
    return NULL;
}

static void read_head(struct connection *connection)
{
    const char *length = field(connection, "content-length"), *coding = field(connection, "transfer-encoding");
    const char *option = field(connection, "connection");

    connection->at = 0;
    connection->line_len = 0;
    connection->left = 0;
    connection->will_close = option && strncasecmp(option, "close", 5) == 0;
    if (strncmp(connection->head, "HTTP/1.1 200", 12) != 0) {
        char what[64];

        snprintf(what, sizeof(what), "an answer has another status than 200: %.3s", connection->head + 9);
        fault(what);
    }
    if (coding && strncasecmp(coding, "chunked", 7) == 0) {
        connection->place = IN_SIZE;
    } else if (length) {
        connection->left = strtoull(length, NULL, 10);
        connection->place = connection->left > 0 ? IN_BODY : AT_END;
    } else {
        connection->left = UINT64_MAX;
        connection->place = IN_BODY;
    }
}

/* Takes bytes up to the end of the head. Returns how many. */
static size_t take_head(struct connection *connection, const char *bytes, size_t len)
{
    size_t taken = 0;

    while (taken < len && connection->place == IN_HEAD) {
        if (connection->head_len == HEAD_MAX - 1)
            fault("an answer has a head without end");
        connection->head[connection->head_len++] = bytes[taken++];
        if (connection->head_len >= 4 && memcmp(connection->head + connection->head_len - 4, "\r\n\r\n", 4) == 0) {
            connection->head[connection->head_len] = '\0';
            read_head(connection);
        }
    }
    return taken;
}

/* Compares bytes of the body. An event comes again and again. */
static void compare(struct connection *connection, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t part = body.len - connection->at;

        if (part > len)
            part = len;
        if (part == 0 || memcmp(bytes, body.bytes + connection->at, part) != 0)
            fault(part == 0 ? "an answer is too long" : "an answer has another body");
        bytes += part;
        len -= part;
        connection->at += part;
        if (asked.events > 0 && connection->at == body.len) {
            connection->at = 0;
            connection->events++;
        }
    }
}

static size_t take_data(struct connection *connection, const char *bytes, size_t len)
{
    size_t part = connection->left < len ? (size_t)connection->left : len;

    compare(connection, bytes, part);
    connection->left -= part;
    if (connection->left == 0)
        connection->place = connection->place == IN_CHUNK ? BEHIND_CHUNK : AT_END;
    return part;
}

/* Takes the line of a chunk's size, the end of a chunk, or a trailer, byte by byte. */
static void take_in_line(struct connection *connection, char byte)
{
    const char *digits = "0123456789abcdef", *digit = strchr(digits, byte >= 'A' && byte <= 'F' ? byte + 32 : byte);

    if (byte == '\n') {
        bool was_empty = connection->line_len == 0;

        connection->line_len = 0;
        if (connection->place == BEHIND_CHUNK)
            connection->place = IN_SIZE;
        else if (connection->place == IN_SIZE)
            connection->place = connection->left > 0 ? IN_CHUNK : IN_TRAILERS;
        else if (was_empty)
            connection->place = AT_END;
    } else if (byte != '\r') {
        connection->line_len++;
        if (connection->place == IN_SIZE && digit && byte != '\0')
            connection->left = connection->left * 16 + (uint64_t)(digit - digits);
        else if (connection->place != IN_TRAILERS)
            fault("an answer has a broken chunk");
    }
}

static void take(struct connection *connection, const char *bytes, size_t len)
{
    size_t at = 0;

    while (at < len && connection->place != AT_END) {
        if (connection->place == IN_HEAD)
            at += take_head(connection, bytes + at, len - at);
        else if (connection->place == IN_BODY || connection->place == IN_CHUNK)
            at += take_data(connection, bytes + at, len - at);
        else
            take_in_line(connection, bytes[at++]);
    }
    if (at < len)
        fault("bytes came that nobody has asked for");
    else if (connection->place == AT_END && connection->at != body.len)
        fault("an answer is too short");
}

/* --- connections --- */

static void watch(struct connection *connection, bool out, int how)
{
    struct epoll_event event = { .events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = connection };

    connection->wants_out = out;
    must(epoll_ctl(poll_fd, how, connection->fd, &event) == 0, "epoll_ctl");
}

/* With a reset, so that no port stays behind. */
static void leave(struct connection *connection)
{
    struct linger at_once = { .l_onoff = 1 };

    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(connection->fd);
    connection->fd = -1;
}

static void open_connection(struct connection *connection)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    must(fd >= 0, "socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EINPROGRESS, "connect");
    connection->fd = fd;
    connection->is_connecting = true;
    watch(connection, true, EPOLL_CTL_ADD);
}

static void write_more(struct connection *connection)
{
    ssize_t put = send(connection->fd, request.bytes + connection->sent, request.len - connection->sent, MSG_NOSIGNAL);

    if (put < 0 && errno != EAGAIN)
        fault("a connection was closed while it asked");
    if (put > 0)
        connection->sent += (size_t)put;
    if ((connection->sent < request.len) != connection->wants_out)
        watch(connection, connection->sent < request.len, EPOLL_CTL_MOD);
}

static void ask(struct connection *connection)
{
    connection->place = IN_HEAD;
    connection->head_len = 0;
    connection->sent = 0;
    if (!connection->is_owed)
        outstanding++;
    connection->is_owed = true;
    connection->asked++;
    if (connection->fd < 0)
        open_connection(connection);
    else
        write_more(connection);
}

static bool goes_on(const struct connection *connection)
{
    if (is_over || connection->is_new)
        return false;
    return asked.each == 0 || !is_measuring || connection->asked < asked.each;
}

static void note_latency(const struct connection *connection)
{
    if (is_measuring && latencies_count < LATENCIES_MAX)
        latencies[latencies_count++] = (float)(now_ns() - connection->asked_ns);
}

/* An answer may come before all of the request has gone. */
static void settle(struct connection *connection)
{
    if (connection->place != AT_END || (connection->sent < request.len && !connection->will_close))
        return;
    connection->is_owed = false;
    outstanding--;
    answered++;
    if (connection->is_new)
        note_latency(connection);
    if (connection->will_close || connection->is_new)
        leave(connection);
    if (goes_on(connection))
        ask(connection);
}

/* An event stream owes nothing any more when it has brought what was asked for. */
static void settle_stream(struct connection *connection)
{
    if (connection->is_owed && connection->events >= (is_measuring ? asked.events : 1)) {
        connection->is_owed = false;
        outstanding--;
    }
}

/* Counts what the kernel drops, and leaves the end of the body to be compared. */
static ssize_t skim(struct connection *connection)
{
    size_t most = connection->left - 1 < SKIMMED ? (size_t)connection->left - 1 : SKIMMED;
    ssize_t got = recv(connection->fd, buffer, most, MSG_TRUNC);

    if (got > 0) {
        connection->left -= (uint64_t)got;
        connection->at += (size_t)got;
    }
    return got;
}

static void has_closed(struct connection *connection)
{
    bool ends_body = connection->place == IN_BODY && connection->left > UINT64_MAX / 2 && connection->at == body.len;

    if (ends_body)
        connection->place = AT_END;
    else if (connection->is_owed || asked.events > 0)
        fault("a connection was closed without an answer");
    connection->will_close = true;
}

static void read_more(struct connection *connection)
{
    bool skims = asked.skim > 0 && is_measuring && connection->place == IN_BODY && connection->left > BUFFER;
    ssize_t got = skims ? skim(connection) : recv(connection->fd, buffer, BUFFER, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        has_closed(connection);
    else if (!skims)
        take(connection, buffer, (size_t)got);
    if (asked.events > 0 && connection->place != AT_END)
        settle_stream(connection);
    else if (connection->is_owed)
        settle(connection);
    else if (connection->will_close)
        leave(connection);
}

static void has_connected(struct connection *connection)
{
    int error = 0;
    socklen_t len = sizeof(error);

    getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    must(error == 0, "connect");
    connection->is_connecting = false;
    write_more(connection);
}

static void send_more(struct connection *connection)
{
    write_more(connection);
    if (connection->is_owed)
        settle(connection);
}

/* --- the run --- */

static void turn(int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(poll_fd, events, EVENTS, timeout_ms);

    must(ready >= 0 || errno == EINTR, "epoll_wait");
    for (int i = 0; i < ready; i++) {
        struct connection *connection = events[i].data.ptr;

        if (connection->fd >= 0 && connection->is_connecting && (events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            has_connected(connection);
        else if (connection->fd >= 0 && (events[i].events & EPOLLOUT) && connection->sent < request.len)
            send_more(connection);
        if (connection->fd >= 0 && !connection->is_connecting && (events[i].events & ~(uint32_t)EPOLLOUT))
            read_more(connection);
    }
}

static void ask_anew(uint64_t now)
{
    for (unsigned i = asked.connections; i < count; i++) {
        if (all[i].fd < 0) {
            all[i].asked_ns = now;
            ask(&all[i]);
            return;
        }
    }
    must(false, "too many new connections wait");
}

static int ms_until(uint64_t when_ns, uint64_t now)
{
    return when_ns <= now ? 0 : (int)((when_ns - now + 999999u) / 1000000u);
}

/* Asks until the time is over, or each has asked often enough; then waits for what is owed. New ones come when they are due, however
 * slow the ones before were. */
static void run(unsigned ms)
{
    uint64_t began = now_ns(), end = began + (uint64_t)ms * 1000000u, next = began;

    is_over = false;
    for (unsigned i = 0; i < asked.connections; i++) {
        all[i].asked = all[i].events = 0;
        if (asked.events > 0 && all[i].fd >= 0) {
            all[i].is_owed = true;
            outstanding++;
        } else {
            ask(&all[i]);
        }
    }
    while (outstanding > 0 || (!is_over && asked.new_us > 0)) {
        uint64_t now = now_ns();

        is_over = is_over || (asked.events == 0 && (ms > 0 || !is_measuring) && now >= end);
        if (is_over && outstanding == 0)
            return;
        while (!is_over && asked.new_us > 0 && next <= now) {
            ask_anew(now);
            next += (uint64_t)asked.new_us * 1000u;
        }
        turn(is_over || ms == 0 ? -1 : ms_until(asked.new_us > 0 && next < end ? next : end, now));
    }
}

static int by_size(const void *one, const void *other)
{
    float a = *(const float *)one, b = *(const float *)other;

    return a < b ? -1 : a > b;
}

static double latency_s(double part)
{
    if (latencies_count == 0)
        return 0;
    return latencies[(size_t)((double)(latencies_count - 1) * part)] / 1e9;
}

static void report(double seconds)
{
    uint64_t done = asked.events > 0 ? (uint64_t)asked.events * asked.connections : answered;

    qsort(latencies, latencies_count, sizeof(*latencies), by_size);
    printf("{\"answered\":%llu,\"seconds\":%.9f,\"new\":%llu,\"p50\":%.9f,\"p99\":%.9f}\n", (unsigned long long)done, seconds,
           (unsigned long long)latencies_count, latency_s(0.5), latency_s(0.99));
    fflush(stdout);
}

static void read_file(const char *path, char **bytes, size_t *len)
{
    struct stat facts;
    int fd = open(path, O_RDONLY);
    size_t got = 0;

    must(fd >= 0 && fstat(fd, &facts) == 0, path);
    *len = (size_t)facts.st_size;
    *bytes = malloc(*len + 1);
    must(*bytes != NULL, "malloc");
    while (got < *len) {
        ssize_t part = read(fd, *bytes + got, *len - got);

        must(part > 0, path);
        got += (size_t)part;
    }
    close(fd);
}

static void read_option(const char *text)
{
    const struct { const char *name; unsigned *value; } options[] = {
        { "connections", &asked.connections }, { "ms", &asked.ms }, { "each", &asked.each }, { "new_us", &asked.new_us },
        { "events", &asked.events }, { "skim", &asked.skim }, { "warm_ms", &asked.warm_ms }
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        size_t len = strlen(options[i].name);

        if (strncmp(text, options[i].name, len) == 0 && text[len] == '=') {
            *options[i].value = (unsigned)strtoul(text + len + 1, NULL, 10);
            return;
        }
    }
    errno = EINVAL;
    must(false, text);
}

static void raise_limit(void)
{
    struct rlimit limit;

    must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

static void prepare(void)
{
    count = asked.connections + (asked.new_us > 0 ? NEW_MAX : 0);
    all = calloc(count, sizeof(*all));
    latencies = calloc(LATENCIES_MAX, sizeof(*latencies));
    poll_fd = epoll_create1(0);
    must(all && latencies && poll_fd >= 0, "prepare");
    for (unsigned i = 0; i < count; i++) {
        all[i].fd = -1;
        all[i].is_new = i >= asked.connections;
    }
}

int main(int argc, char **arguments)
{
    char line[16];
    uint64_t began;

    must(argc > 3, "usage: http_load PORT REQUEST BODY NAME=COUNT...");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((in_port_t)argument(arguments, argc, 1));
    read_file(arguments[2], &request.bytes, &request.len);
    read_file(arguments[3], &body.bytes, &body.len);
    for (int i = 4; i < argc; i++)
        read_option(arguments[i]);
    raise_limit();
    prepare();
    run(asked.warm_ms);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        return 0;
    answered = latencies_count = 0;
    is_measuring = true;
    began = now_ns();
    run(asked.ms);
    report((double)(now_ns() - began) / 1e9);
    while (fgets(line, sizeof(line), stdin)) { }
    return 0;
}
