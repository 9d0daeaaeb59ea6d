/*
 * Floor of the table of enqueuing into a file: transaction after transaction of jobs, each with the rows that our storage writes,
 * by prepared statements on one connection. SQLite's functions are looked up when it runs, so that no header of it needs to be
 * there, and the library can be the copy that our storage uses: an extension of Ruby, for which a library with the names that it
 * has from there is loaded first.
 *
 *   sqlite_push NAMES LIBRARY full|normal JOBS BATCH BYTES      NAMES: or ""; BYTES: of a job
 *
 * The file is made in the folder BENCH_SCRATCH.
 */
#include "measure.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What SQLite's header would say. */
enum { SQLITE_OK = 0, SQLITE_ROW = 100, SQLITE_DONE = 101 };

static struct {
    int (*sqlite3_open)(const char *path, void **connection);
    int (*sqlite3_close)(void *connection);
    const char *(*sqlite3_errmsg)(void *connection);
    int (*sqlite3_exec)(void *connection, const char *sql, void *callback, void *context, char **error);
    int (*sqlite3_prepare_v2)(void *connection, const char *sql, int bytes, void **statement, const char **rest);
    int (*sqlite3_bind_int64)(void *statement, int place, long long number);
    int (*sqlite3_bind_text)(void *statement, int place, const char *text, int bytes, void *destructor);
    int (*sqlite3_step)(void *statement);
    int (*sqlite3_reset)(void *statement);
    int (*sqlite3_finalize)(void *statement);
    long long (*sqlite3_column_int64)(void *statement, int column);
} sqlite;

static const char *const names[] = {
    "sqlite3_open", "sqlite3_close", "sqlite3_errmsg", "sqlite3_exec", "sqlite3_prepare_v2", "sqlite3_bind_int64",
    "sqlite3_bind_text", "sqlite3_step", "sqlite3_reset", "sqlite3_finalize", "sqlite3_column_int64",
};

static const char TABLES[] =
    "PRAGMA journal_mode = WAL; PRAGMA mmap_size = 0;"
    "CREATE TABLE state (id INTEGER PRIMARY KEY, next INTEGER NOT NULL, front INTEGER NOT NULL);"
    "INSERT INTO state VALUES (1, 1, -1);"
    "CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL);"
    "INSERT INTO queues VALUES (1, 'default', 0);"
    "CREATE TABLE jobs (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);"
    "CREATE TABLE ready (queue INTEGER NOT NULL, priority INTEGER NOT NULL, place INTEGER NOT NULL, job INTEGER NOT NULL,"
    "                    PRIMARY KEY (queue, priority, place)) WITHOUT ROWID;";

static struct {
    void *connection, *begin, *numbers, *queue, *job, *ready, *next, *size, *commit;
} file;

static void find_library(const char *names_of_ruby, const char *path)
{
    void *all[sizeof(names) / sizeof(names[0])];

    if (*names_of_ruby && !dlopen(names_of_ruby, RTLD_LAZY | RTLD_GLOBAL))
        unavailable("no names of Ruby for the floor");

    void *handle = dlopen(path, RTLD_LAZY);

    if (!handle)
        unavailable("no SQLite for the floor");
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        all[i] = dlsym(handle, names[i]);
        if (!all[i])
            unavailable("the library has no SQLite for the floor");
    }
    memcpy(&sqlite, all, sizeof(sqlite));
}

static void expect(bool ok)
{
    if (ok)
        return;
    fprintf(stderr, "error: %s\n", sqlite.sqlite3_errmsg(file.connection));
    exit(1);
}

static void execute(const char *sql)
{
    expect(sqlite.sqlite3_exec(file.connection, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static void *prepare(const char *sql)
{
    void *statement;

    expect(sqlite.sqlite3_prepare_v2(file.connection, sql, -1, &statement, NULL) == SQLITE_OK);
    return statement;
}

static void open_file(bool durable)
{
    const char *folder = getenv("BENCH_SCRATCH");
    char path[4096];

    must(folder && snprintf(path, sizeof(path), "%s/floor.sqlite3", folder) < (int)sizeof(path), "BENCH_SCRATCH");
    expect(sqlite.sqlite3_open(path, &file.connection) == SQLITE_OK);
    execute(TABLES);
    execute(durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    file.begin = prepare("BEGIN IMMEDIATE");
    file.numbers = prepare("SELECT next, front FROM state");
    file.queue = prepare("SELECT id FROM queues WHERE name = 'default'");
    file.job = prepare("INSERT INTO jobs (id, entry) VALUES (?, ?)");
    file.ready = prepare("INSERT INTO ready (queue, priority, place, job) VALUES (?, ?, ?, ?)");
    file.next = prepare("UPDATE state SET next = ?, front = -1");
    file.size = prepare("UPDATE queues SET size = size + ? WHERE id = ?");
    file.commit = prepare("COMMIT");
}

static void bind(void *statement, int place, long long number)
{
    expect(sqlite.sqlite3_bind_int64(statement, place, number) == SQLITE_OK);
}

static void run(void *statement)
{
    expect(sqlite.sqlite3_step(statement) == SQLITE_DONE);
    sqlite.sqlite3_reset(statement);
}

static long long number_of(void *statement)
{
    expect(sqlite.sqlite3_step(statement) == SQLITE_ROW);

    long long number = sqlite.sqlite3_column_int64(statement, 0);

    sqlite.sqlite3_reset(statement);
    return number;
}

static void push(const char *job, unsigned bytes, unsigned count)
{
    run(file.begin);

    long long next = number_of(file.numbers), queue = number_of(file.queue);

    for (unsigned i = 0; i < count; i++, next++) {
        bind(file.job, 1, next);
        expect(sqlite.sqlite3_bind_text(file.job, 2, job, (int)bytes, NULL) == SQLITE_OK);
        run(file.job);
        bind(file.ready, 1, queue);
        bind(file.ready, 2, 0);
        bind(file.ready, 3, next);
        bind(file.ready, 4, next);
        run(file.ready);
    }
    bind(file.next, 1, next);
    run(file.next);
    bind(file.size, 1, count);
    bind(file.size, 2, queue);
    run(file.size);
    run(file.commit);
}

static void close_file(void)
{
    void **statements[] = { &file.begin, &file.numbers, &file.queue, &file.job, &file.ready, &file.next, &file.size, &file.commit };

    for (unsigned i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        sqlite.sqlite3_finalize(*statements[i]);
    expect(sqlite.sqlite3_close(file.connection) == SQLITE_OK);
}

int main(int count, char **arguments)
{
    unsigned jobs = argument(arguments, count, 4);
    unsigned batch = argument(arguments, count, 5);
    unsigned bytes = argument(arguments, count, 6);
    char *job = malloc(bytes);
    struct measurement measurement;

    must(job, "malloc");
    payload_fill(job, bytes, 0);
    find_library(arguments[1], arguments[2]);
    open_file(strcmp(arguments[3], "full") == 0);
    push(job, bytes, 1);

    measure_begin(&measurement);
    for (unsigned done = 0; done < jobs; done += batch)
        push(job, bytes, jobs - done < batch ? jobs - done : batch);
    measure_end(&measurement);

    void *stored = prepare("SELECT count(*) FROM jobs JOIN ready ON job = jobs.id");
    long long lost = (long long)jobs + 1 - number_of(stored);

    sqlite.sqlite3_finalize(stored);
    close_file();
    free(job);
    measurement.operations = jobs;
    measure_report(&measurement, 1, (uint64_t)jobs * bytes, "lost", (uint64_t)lost);
    return 0;
}
