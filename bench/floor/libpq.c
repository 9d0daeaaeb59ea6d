/*
 * Floors of the tables of Postgres: libpq alone, from one thread on one connection. Its functions are looked up when it runs, so
 * that no header of it needs to be there, and the library can be the one that the gem `pg` brings along.
 *
 *   libpq LIBRARY CONNINFO sequential STATEMENTS          one small statement after the other
 *   libpq LIBRARY CONNINFO pipelined STATEMENTS WINDOW    so many at once, each with a Sync of its own
 *   libpq LIBRARY CONNINFO batches STATEMENTS SIZE        so many behind one Sync, and then the next
 *   libpq LIBRARY CONNINFO rows HOW TIMES COLUMN SQL      all rows of a query, so often; of each one column is measured, from 1
 *   libpq LIBRARY CONNINFO resets HOW TIMES ROWS SQL      the first rows of a query, and a new connection; so often
 *   libpq LIBRARY CONNINFO copies WAY TIMES ROWS SQL      so many rows of text, by COPY; so often. WAY: in or out
 *
 * HOW do rows come? whole: when all are there; single: one by one; chunked: by up to 256.
 *
 * Says {} when it has connected, begins at a byte on its standard input, and stays connected until that ends.
 */
#include "measure.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What libpq's headers would say. */
enum { CONNECTION_OK = 0, COMMAND_OK = 1, TUPLES_OK = 2, COPIES_OUT = 3, COPIES_IN = 4, SINGLE_TUPLE = 9, PIPELINE_SYNC = 10, TUPLES_CHUNK = 12 };

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
    int (*PQsendQuery)(void *connection, const char *sql);
    int (*PQsetSingleRowMode)(void *connection);
    void (*PQreset)(void *connection);
    int (*PQntuples)(const void *result);
    int (*PQgetlength)(const void *result, int row, int column);
    int (*PQresultStatus)(const void *result);
    char *(*PQgetvalue)(const void *result, int row, int column);
    void (*PQclear)(void *result);
    int (*PQputCopyData)(void *connection, const char *bytes, int len);
    int (*PQputCopyEnd)(void *connection, const char *error);
    int (*PQgetCopyData)(void *connection, char **bytes, int async);
    void (*PQfreemem)(void *bytes);
} pq;

static const char *const names[] = {
    "PQconnectdb", "PQfinish", "PQstatus", "PQerrorMessage", "PQsocket", "PQsetnonblocking", "PQprepare", "PQexecPrepared",
    "PQsendQueryPrepared", "PQenterPipelineMode", "PQpipelineSync", "PQflush", "PQconsumeInput", "PQisBusy", "PQgetResult",
    "PQsendQuery", "PQsetSingleRowMode", "PQreset", "PQntuples", "PQgetlength", "PQresultStatus", "PQgetvalue", "PQclear",
    "PQputCopyData", "PQputCopyEnd", "PQgetCopyData", "PQfreemem",
};

/* Of newer libraries. */
static int (*send_sync)(void *connection);
static int (*set_chunked_rows_mode)(void *connection, int rows);

enum { ANSWER_FD = 3, WARM_UP = 256, CHUNK = 256, COPY_CHUNK = 65536 };

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

    void *chunked = dlsym(handle, "PQsetChunkedRowsMode");

    memcpy(&set_chunked_rows_mode, &chunked, sizeof(set_chunked_rows_mode));
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

/* What is to be done, and what has been. */
struct work {
    const char *mode;
    const char *how;   /* rows come */
    const char *sql;
    unsigned times;    /* statements, or queries */
    unsigned window;   /* of statements */
    unsigned column;   /* whose length is read */
    unsigned rows_max; /* of a query, or rows of a COPY */
    char *text;        /* of those that go in */
    size_t text_len;
    uint64_t answered;
    uint64_t rows;
    uint64_t bytes;
};

static void query(void *connection, const struct work *work)
{
    expect(pq.PQsendQuery(connection, work->sql), connection);
    if (strcmp(work->how, "single") == 0)
        expect(pq.PQsetSingleRowMode(connection), connection);
    if (strcmp(work->how, "chunked") == 0)
        expect(set_chunked_rows_mode(connection, CHUNK), connection);
}

/* Takes rows until there are no more, or enough. */
static void take_rows(void *connection, struct work *work)
{
    unsigned taken = 0;
    void *result;

    while (taken < work->rows_max && (result = pq.PQgetResult(connection))) {
        int status = pq.PQresultStatus(result);
        int rows = pq.PQntuples(result);

        expect(status == TUPLES_OK || status == SINGLE_TUPLE || status == TUPLES_CHUNK, connection);
        for (int row = 0; row < rows && taken < work->rows_max; row++, taken++)
            work->bytes += (unsigned)pq.PQgetlength(result, row, (int)work->column);
        pq.PQclear(result);
    }
    work->rows += taken;
}

/* What bench/lib/bench/copies.rb makes. */
static char *text_of_rows(unsigned rows, size_t *len)
{
    char *text = malloc((size_t)rows * 80);
    size_t at = 0;

    must(text != NULL, "malloc");
    for (unsigned id = 0; id < rows; id++) {
        time_t seconds = 1577836800 + (time_t)60 * id;
        char clock[32];

        strftime(clock, sizeof(clock), "%F %T", gmtime(&seconds));
        at += (size_t)sprintf(text + at, "%u\tresource %08u\t%s.%06u+00\n", id, id, clock, id % 1000000);
    }
    *len = at;
    return text;
}

static void end_copy(void *connection)
{
    void *result;

    while ((result = pq.PQgetResult(connection)))
        check(result, COMMAND_OK, connection);
}

static void copy_in(void *connection, struct work *work)
{
    for (size_t at = 0; at < work->text_len; at += COPY_CHUNK) {
        size_t len = work->text_len - at < COPY_CHUNK ? work->text_len - at : COPY_CHUNK;

        expect(pq.PQputCopyData(connection, work->text + at, (int)len) == 1, connection);
    }
    expect(pq.PQputCopyEnd(connection, NULL) == 1, connection);
    work->rows += work->rows_max;
}

static void copy_out(void *connection, struct work *work)
{
    char *bytes;
    int len;

    while ((len = pq.PQgetCopyData(connection, &bytes, 0)) > 0) {
        work->rows++;
        pq.PQfreemem(bytes);
    }
}

static void copy(void *connection, struct work *work)
{
    bool in = strcmp(work->how, "in") == 0;

    expect(pq.PQsendQuery(connection, work->sql), connection);
    check(pq.PQgetResult(connection), in ? COPIES_IN : COPIES_OUT, connection);
    if (in)
        copy_in(connection, work);
    else
        copy_out(connection, work);
    end_copy(connection);
}

static bool copies(const struct work *work)
{
    return strcmp(work->mode, "copies") == 0;
}

static bool reads_rows(const struct work *work)
{
    return strcmp(work->mode, "rows") == 0 || strcmp(work->mode, "resets") == 0 || copies(work);
}

static bool is_sequential(const struct work *work)
{
    return strcmp(work->mode, "sequential") == 0;
}

static void run(void *connection, struct work *work)
{
    if (is_sequential(work)) {
        work->answered = sequential(connection, work->times);
    } else if (!reads_rows(work)) {
        work->answered = pipelined(connection, work->times, work->window, strcmp(work->mode, "batches") == 0 ? work->window : 1);
    } else {
        for (unsigned i = 0; i < work->times; i++) {
            if (copies(work)) {
                copy(connection, work);
                continue;
            }
            query(connection, work);
            take_rows(connection, work);
            if (strcmp(work->mode, "resets") == 0)
                pq.PQreset(connection);
            expect(pq.PQstatus(connection) == CONNECTION_OK, connection);
        }
    }
}

static struct work work_of(int count, char **arguments)
{
    struct work work = { .mode = arguments[3], .how = arguments[4], .rows_max = UINT32_MAX };

    if (reads_rows(&work)) {
        must(count == 8, "HOW, TIMES, COLUMN or ROWS, SQL");
        work.times = argument(arguments, count, 5);
        work.sql = arguments[7];
        if (strcmp(work.mode, "rows") == 0)
            work.column = argument(arguments, count, 6) - 1;
        else
            work.rows_max = argument(arguments, count, 6);
        if (copies(&work) && strcmp(work.how, "in") == 0)
            work.text = text_of_rows(work.rows_max, &work.text_len);
        if (strcmp(work.how, "chunked") == 0 && !set_chunked_rows_mode)
            unavailable("libpq is too old for chunks of rows");
    } else {
        work.times = argument(arguments, count, 4);
        work.window = is_sequential(&work) ? 1 : argument(arguments, count, 5);
    }
    return work;
}

static void warm_up(void *connection, const struct work *work)
{
    struct work few = *work;

    few.times = reads_rows(work) ? 1 : WARM_UP;
    run(connection, &few);
}

int main(int count, char **arguments)
{
    must(count > 4, "LIBRARY CONNINFO MODE ...");
    find_library(arguments[1]);

    struct work work = work_of(count, arguments);
    void *connection = connect_to(arguments[2]);
    struct measurement measurement;
    char byte;

    if (!reads_rows(&work))
        prepare(connection);
    if (!reads_rows(&work) && !is_sequential(&work))
        expect(pq.PQenterPipelineMode(connection) && pq.PQsetnonblocking(connection, 1) == 0, connection);
    warm_up(connection, &work);
    must(dprintf(ANSWER_FD, "{}\n") > 0 && read(STDIN_FILENO, &byte, 1) == 1, "begin");

    measure_begin(&measurement);
    run(connection, &work);
    measure_end(&measurement);

    measurement.operations = reads_rows(&work) ? work.rows : work.times;
    measure_report(&measurement, 1, work.bytes, reads_rows(&work) ? "rows" : "answered",
                   reads_rows(&work) ? work.rows : work.answered);
    must(dprintf(ANSWER_FD, "\n") == 1 && read(STDIN_FILENO, &byte, 1) == 0, "end");
    pq.PQfinish(connection);
    return 0;
}
