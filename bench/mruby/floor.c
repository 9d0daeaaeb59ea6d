/*
 * What mruby itself takes for a row of the tables `mruby` and `mruby_memory`, in the mruby that has our gem, without a use of that: by
 * its C API, or by bytecode where that is faster. Prints the reading as JSON, like work.rb.
 *
 *   floor ROW COUNT
 */
#include <mruby.h>
#include <mruby/array.h>
#include <mruby/compile.h>
#include <mruby/proc.h>
#include <mruby/variable.h>

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What the rows call. The last says how often. */
enum { COUNTS, TAKES_TURNS, WAITS_ONCE, DONE };

static const char program[] =
    "done = 0\n"
    "[proc { done += 1 },\n"
    " proc { |count|\n"
    "   fiber = Fiber.new { Fiber.yield(done += 1) while true }\n"
    "   fiber.resume while (count -= 1) >= 0 },\n"
    " proc { Fiber.yield; done += 1 },\n"
    " proc { done }]\n";

static mrb_state *mrb;
static mrb_value procs;

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "Error: %s\n", what);
    exit(1);
}

static mrb_value proc_at(int which) { return mrb_ary_ref(mrb, procs, which); }

static mrb_value fiber_of(int which) { return mrb_fiber_new(mrb, mrb_proc_ptr(proc_at(which))); }

/* --- the rows --- */

/* A block that C calls. */
static void call(long count) {
    mrb_value block = proc_at(COUNTS);
    while (count-- > 0) mrb_yield_argv(mrb, block, 0, NULL);
}

/* A fiber that is made, resumed, and ends. */
static void fiber(long count) {
    while (count-- > 0) {
        int arena = mrb_gc_arena_save(mrb);
        mrb_fiber_resume(mrb, fiber_of(COUNTS), 0, NULL);
        mrb_gc_arena_restore(mrb, arena);
    }
}

/* The same, and it waits once. */
static void waiting_fiber(long count) {
    while (count-- > 0) {
        int arena = mrb_gc_arena_save(mrb);
        mrb_value made = fiber_of(WAITS_ONCE);
        mrb_fiber_resume(mrb, made, 0, NULL);
        mrb_fiber_resume(mrb, made, 0, NULL);
        mrb_gc_arena_restore(mrb, arena);
    }
}

/* A fiber that is there, resumed, and yields: from bytecode, for C that resumes one enters the virtual machine anew. */
static void turn(long count) { mrb_yield(mrb, proc_at(TAKES_TURNS), mrb_int_value(mrb, count)); }

/* A block that C calls, after a look at a descriptor that is ready. */
static void poll_and_call(long count) {
    int ends[2];
    must(pipe(ends) == 0, "no pipe");
    struct pollfd writable = {.fd = ends[1], .events = POLLOUT};
    while (count-- > 0) {
        must(poll(&writable, 1, 0) == 1, "a pipe is not ready");
        call(1);
    }
    close(ends[0]);
    close(ends[1]);
}

static const struct { const char *name; void (*work)(long count); } rows[] = {
    {"call", call}, {"call_nonblock", fiber}, {"call_detached", fiber}, {"call_and_forget", fiber},
    {"wait 0", turn}, {"await_readable", poll_and_call}, {"await_writable", poll_and_call}, {"awaited call_detached", fiber},
    {"waiting call", turn}, {"waiting call_nonblock", waiting_fiber}, {"waiting call_detached", waiting_fiber},
    {"waiting call_and_forget", waiting_fiber}, {"switch, 3 strands", turn}, {"switch, 1,000 strands", turn}, {"spawn", fiber},
};

/* --- the reading --- */

static long done(void) { return (long)mrb_integer(mrb_yield_argv(mrb, proc_at(DONE), 0, NULL)); }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double measure(void (*work)(long count), long count) {
    mrb_full_gc(mrb);
    double began = now();
    work(count);
    double real = now() - began;
    must(mrb->exc == NULL, "mruby has raised an exception");
    return real;
}

static void measure_row(void (*work)(long count), long count) {
    measure(work, count); /* warms up */
    double gc_real = measure(work, count);
    mrb->gc.disabled = TRUE;
    double real = measure(work, count);
    printf("{\"real\": %.9f, \"gc_real\": %.9f, \"done\": %ld}\n", real, gc_real, done());
}

static double resident_bytes(void) {
    mrb_full_gc(mrb);
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    must(file != NULL, "no /proc/self/smaps_rollup");
    char line[256];
    long kilobytes = -1;
    while (kilobytes < 0 && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "Rss:", 4) == 0) kilobytes = strtol(line + 4, NULL, 10);
    }
    fclose(file);
    return (double)kilobytes * 1024;
}

/* By how many bytes the process grows for each fiber that has yielded. */
static void measure_memory(long count) {
    double before = resident_bytes(), began = now();
    mrb_value all = mrb_ary_new_capa(mrb, count);
    mrb_gc_register(mrb, all);
    for (long i = 0; i < count; i++) {
        int arena = mrb_gc_arena_save(mrb);
        mrb_value made = fiber_of(WAITS_ONCE);
        mrb_ary_push(mrb, all, made);
        mrb_fiber_resume(mrb, made, 0, NULL);
        mrb_gc_arena_restore(mrb, arena);
    }
    double grown = (resident_bytes() - before) / (double)count;
    for (long i = 0; i < count; i++) mrb_fiber_resume(mrb, mrb_ary_ref(mrb, all, i), 0, NULL);
    printf("{\"real\": %.9f, \"grown\": %.4f, \"done\": %ld}\n", now() - began, grown, done());
}

int main(int argc, char **argv) {
    must(argc == 3, "expected: floor ROW COUNT");
    long count = strtol(argv[2], NULL, 10);
    mrb = mrb_open();
    must(mrb != NULL && mrb->exc == NULL, "mruby does not open");
    procs = mrb_load_string(mrb, program);
    must(mrb->exc == NULL && mrb_array_p(procs), "the program does not load");
    mrb_gc_register(mrb, procs);
    if (strncmp(argv[1], "a ", 2) == 0 || strncmp(argv[1], "an ", 3) == 0) {
        measure_memory(count);
        return 0;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, argv[1]) != 0) continue;
        measure_row(rows[i].work, count);
        return 0;
    }
    must(false, "no such row");
    return 1;
}
