/*
 * Floors of the tables of Postgres: libpq alone, from one thread on one connection. Its functions are looked up when it runs, so
 * that no header of it needs to be there, and the library can be the one that the gem `pg` brings along.
 *
 *   libpq LIBRARY CONNINFO sequential STATEMENTS          one small statement after the other
 *   libpq LIBRARY CONNINFO pipelined STATEMENTS WINDOW    so many at once, each with a Sync of its own
 *   libpq LIBRARY CONNINFO batches STATEMENTS SIZE        so many behind one Sync, and then the next
 *
 * Says {} when it has connected, begins at a byte on its standard input, and stays connected until that ends.
 */
#include "measure.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What libpq's headers would say. */
enum { CONNECTION_OK = 0, COMMAND_OK = 1, TUPLES_OK = 2, PIPELINE_SYNC = 10 };

static struct {
    void *(*PQconnectdb)(const char *conninfo);
    void (*PQfinish)(void *connection);
    int (*PQstatus)(const void *connection);
    char *(*PQerrorMessage)(const void *connection);
    int (*PQsocket)(const void *connection);
    int (*PQsetnonblocking)(void *connection, int on);
    void *(*PQprepare)(void *connection, const char *name, const char *sql, int count, const unsigned *types);
    void *(*PQexecPrepared)(void *connection, const char *name, int count, const char *const *values, const int *lengths,
                            const int *formats, int result_format);
    int (*PQsendQueryPrepared)(void *connection, const char *name, int count, const char *const *values, const int *lengths,
                               const int *formats, int result_format);
    int (*PQenterPipelineMode)(void *connection);
    int (*PQpipelineSync)(void *connection);
    int (*PQflush)(void *connection);
    int (*PQconsumeInput)(void *connection);
    int (*PQisBusy)(void *connection);
    void *(*PQgetResult)(void *connection);
    int (*PQresultStatus)(const void *result);
    char *(*PQgetvalue)(const void *result, int row, int column);
    void (*PQclear)(void *result);
} pq;

static const char *const names[] = {
    "PQconnectdb", "PQfinish", "PQstatus", "PQerrorMessage", "PQsocket", "PQsetnonblocking", "PQprepare", "PQexecPrepared",
    "PQsendQueryPrepared", "PQenterPipelineMode", "PQpipelineSync", "PQflush", "PQconsumeInput", "PQisBusy", "PQgetResult",
    "PQresultStatus", "PQgetvalue", "PQclear",
};

static int (*send_sync)(void *connection);

enum { ANSWER_FD = 3, WARM_UP = 256 };

static void find_library(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);
    void *all[sizeof(names) / sizeof(names[0])];

    if (!handle)
        unavailable("no libpq for the floor");
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        all[i] = dlsym(handle, names[i]);
        if (!all[i])
            unavailable("libpq is too old for the floor");
    }
    memcpy(&pq, all, sizeof(pq));

    /* libpq 17 can leave the Sync in its buffer; before, each is a system call. */
    void *quiet = dlsym(handle, "PQsendPipelineSync");

    memcpy(&send_sync, quiet ? &quiet : (void **)&pq.PQpipelineSync, sizeof(send_sync));
}

static void expect(bool ok, const void *connection)
{
    if (ok)
        return;
    fprintf(stderr, "error: %s", pq.PQerrorMessage(connection));
    exit(1);
}

static void check(void *result, int status, const void *connection)
{
    expect(pq.PQresultStatus(result) == status, connection);
    pq.PQclear(result);
}

static void *connect_to(const char *conninfo)
{
    void *connection = pq.PQconnectdb(conninfo);

    expect(pq.PQstatus(connection) == CONNECTION_OK, connection);
    return connection;
}

static void prepare(void *connection)
{
    check(pq.PQprepare(connection, "small", "select $1::int", 0, NULL), COMMAND_OK, connection);
}

static void wait_for(void *connection, short events)
{
    struct pollfd poll_fd = { .fd = pq.PQsocket(connection), .events = events };

    must(poll(&poll_fd, 1, -1) == 1, "poll");
    expect(pq.PQconsumeInput(connection), connection);
}

static const char *text_of(unsigned number)
{
    static char text[16];

    snprintf(text, sizeof(text), "%u", number);
    return text;
}

/* Whether the result is the answer to the statement with that number. */
static bool answers(void *result, unsigned number, const void *connection)
{
    expect(pq.PQresultStatus(result) == TUPLES_OK, connection);

    bool right = strcmp(pq.PQgetvalue(result, 0, 0), text_of(number)) == 0;

    pq.PQclear(result);
    return right;
}

static unsigned sequential(void *connection, unsigned statements)
{
    unsigned answered = 0;

    for (unsigned number = 0; number < statements; number++) {
        const char *value = text_of(number);

        answered += answers(pq.PQexecPrepared(connection, "small", 1, &value, NULL, NULL, 0), number, connection);
    }
    return answered;
}

static void ask(void *connection, unsigned number)
{
    const char *value = text_of(number);

    expect(pq.PQsendQueryPrepared(connection, "small", 1, &value, NULL, NULL, 0), connection);
}

static void flush(void *connection)
{
    int left;

    while ((left = pq.PQflush(connection)) == 1)
        wait_for(connection, POLLIN | POLLOUT);
    expect(left == 0, connection);
}

/* What is behind `synced` Syncs, of which one comes after every `size` statements, and at the end of all. */
struct progress {
    unsigned answered;
    unsigned right;
    unsigned synced;
};

/* Takes the results that have come. */
static bool take(void *connection, struct progress *progress, unsigned sent)
{
    bool any = false;

    while (progress->answered < sent || progress->synced < progress->answered) {
        if (pq.PQisBusy(connection))
            break;

        void *result = pq.PQgetResult(connection);

        if (!result)
            continue; /* the end of one statement's results */
        any = true;
        if (pq.PQresultStatus(result) == PIPELINE_SYNC) {
            progress->synced = progress->answered;
            pq.PQclear(result);
        } else {
            progress->right += answers(result, progress->answered++, connection);
        }
    }
    return any;
}

/* So many statements at once, with a Sync behind every `size`. */
static unsigned pipelined(void *connection, unsigned statements, unsigned window, unsigned size)
{
    struct progress progress = { 0 };

    for (unsigned sent = 0; progress.synced < statements;) {
        while (sent < statements && sent + size <= progress.synced + window) {
            for (unsigned i = 0; i < size && sent < statements; i++)
                ask(connection, sent++);
            expect(send_sync(connection), connection);
        }
        flush(connection);
        if (!take(connection, &progress, sent))
            wait_for(connection, POLLIN);
    }
    return progress.right;
}

static unsigned run(void *connection, const char *mode, unsigned statements, unsigned window)
{
    if (strcmp(mode, "sequential") == 0)
        return sequential(connection, statements);
    return pipelined(connection, statements, window, strcmp(mode, "batches") == 0 ? window : 1);
}

int main(int count, char **arguments)
{
    if (count < 5)
        return 2;
    find_library(arguments[1]);

    void *connection = connect_to(arguments[2]);
    const char *mode = arguments[3];
    bool one_by_one = strcmp(mode, "sequential") == 0;
    unsigned statements = argument(arguments, count, 4);
    unsigned window = one_by_one ? 1 : argument(arguments, count, 5);
    struct measurement measurement;
    char byte;

    prepare(connection);
    if (!one_by_one)
        expect(pq.PQenterPipelineMode(connection) && pq.PQsetnonblocking(connection, 1) == 0, connection);
    run(connection, mode, WARM_UP, window);
    must(dprintf(ANSWER_FD, "{}\n") > 0 && read(STDIN_FILENO, &byte, 1) == 1, "begin");

    measure_begin(&measurement);
    unsigned answered = run(connection, mode, statements, window);
    measure_end(&measurement);

    measurement.operations = statements;
    measure_report(&measurement, 1, 0, "answered", answered);
    must(dprintf(ANSWER_FD, "\n") == 1 && read(STDIN_FILENO, &byte, 1) == 0, "end");
    pq.PQfinish(connection);
    return 0;
}
