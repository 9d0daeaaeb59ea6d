/*
 * What mruby itself takes for a row of the tables `mruby` and `mruby_memory`, in the mruby that has our gem, without a use of that: by
 * its C API, in the loops of work.rb. Prints the reading as JSON, like work.rb.
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

/* The loops of the rows, which are those of work.rb, and beside them the block of a fiber that waits once, and how often the rows'
 * work was done. */
enum { CALL, FIBER, AWAITED_FIBER, WAITING_FIBER, AWAITED_WAITING_FIBER, CALLED_TURN, TURN, POLL, WAITS_ONCE, DONE };

static const char program[] =
    "done = 0\n"
    "counts = proc { done += 1 }\n"
    "waits_once = proc { Fiber.yield; done += 1 }\n"
    "batches = proc do |count, &block|\n"
    "  batch = Array.new(100)\n"
    "  turns = count / batch.size\n"
    "  while turns > 0\n"
    "    block.call(batch)\n"
    "    turns -= 1\n"
    "  end\n"
    "end\n"
    "[proc { |count| batches.call(count) { |batch| batch.each { bare_call(&counts) } } },\n"
    " proc { |count| batches.call(count) { |batch| batch.each { bare_fiber(&counts) } } },\n"
    " proc { |count| batches.call(count) { |batch| batch.map { new_fiber(&counts) }.each { |fiber| bare_resume(fiber) } } },\n"
    " proc { |count| batches.call(count) { |batch| batch.each { bare_waiting_fiber(&waits_once) } } },\n"
    " proc { |count|\n"
    "   batches.call(count) { |batch| batch.map { started_fiber(&waits_once) }.each { |fiber| bare_resume(fiber) } } },\n"
    " proc { |count|\n"
    "   fiber = Fiber.new { Fiber.yield(done += 1) while true }\n"
    "   resumes = proc { fiber.resume }\n"
    "   batches.call(count) { |batch| batch.each { resumes.call } } },\n"
    " proc { |count|\n"
    "   fiber = Fiber.new { Fiber.yield(done += 1) while true }\n"
    "   fiber.resume while (count -= 1) >= 0 },\n"
    " proc { |count|\n"
    "   polls = proc { |reader, _| bare_poll(&counts) }\n"
    "   batches.call(count) { |batch| batch.each { |*arguments| polls.call(*arguments) } } },\n"
    " waits_once, proc { done }]\n";

static mrb_state *mrb;
static mrb_value procs;

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "Error: %s\n", what);
    exit(1);
}

static mrb_value proc_at(int which) { return mrb_ary_ref(mrb, procs, which); }

/* --- what the loops call --- */

static mrb_value block_given(void) {
    mrb_value block;
    mrb_get_args(mrb, "&!", &block);
    return block;
}

static mrb_value new_fiber(mrb_value block) { return mrb_fiber_new(mrb, mrb_proc_ptr(block)); }

/* A method with a block, which it calls. */
static mrb_value bare_call(mrb_state *state, mrb_value self) {
    (void)state, (void)self;
    return mrb_yield_argv(mrb, block_given(), 0, NULL);
}

/* A fiber that is made, resumed, and ends. */
static mrb_value bare_fiber(mrb_state *state, mrb_value self) {
    (void)state, (void)self;
    return mrb_fiber_resume(mrb, new_fiber(block_given()), 0, NULL);
}

/* The same, and it waits once. */
static mrb_value bare_waiting_fiber(mrb_state *state, mrb_value self) {
    (void)state, (void)self;
    mrb_value made = new_fiber(block_given());
    mrb_fiber_resume(mrb, made, 0, NULL);
    return mrb_fiber_resume(mrb, made, 0, NULL);
}

/* A fiber for later. */
static mrb_value made_fiber(mrb_state *state, mrb_value self) {
    (void)state, (void)self;
    return new_fiber(block_given());
}

/* One that waits. */
static mrb_value started_fiber(mrb_state *state, mrb_value self) {
    (void)state, (void)self;
    mrb_value made = new_fiber(block_given());
    mrb_fiber_resume(mrb, made, 0, NULL);
    return made;
}

/* Whose end somebody waits for. */
static mrb_value bare_resume(mrb_state *state, mrb_value self) {
    (void)state, (void)self;
    return mrb_fiber_resume(mrb, mrb_get_arg1(mrb), 0, NULL);
}

/* A look at a descriptor that is ready, and a call. */
static mrb_value bare_poll(mrb_state *state, mrb_value self) {
    static struct pollfd writable = {.fd = -1, .events = POLLOUT};
    int ends[2];
    if (writable.fd < 0) {
        must(pipe(ends) == 0, "no pipe");
        writable.fd = ends[1];
    }
    must(poll(&writable, 1, 0) == 1, "a pipe is not ready");
    return bare_call(state, self);
}

static const struct { const char *name; int loop; } rows[] = {
    {"call", CALL}, {"call_nonblock", FIBER}, {"call_detached", FIBER}, {"call_and_forget", FIBER},
    {"wait 0", CALLED_TURN}, {"await_readable", POLL}, {"await_writable", POLL}, {"awaited call_detached", AWAITED_FIBER},
    {"waiting call", CALLED_TURN}, {"waiting call_nonblock", AWAITED_WAITING_FIBER},
    {"waiting call_detached", AWAITED_WAITING_FIBER},
    {"waiting call_and_forget", WAITING_FIBER}, {"switch, 3 strands", TURN}, {"switch, 1,000 strands", TURN}, {"spawn", FIBER},
};

/* --- the reading --- */

static long done(void) { return (long)mrb_integer(mrb_yield_argv(mrb, proc_at(DONE), 0, NULL)); }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double measure(int loop, long count) {
    mrb_full_gc(mrb);
    double began = now();
    mrb_yield(mrb, proc_at(loop), mrb_int_value(mrb, count));
    double real = now() - began;
    must(mrb->exc == NULL, "mruby has raised an exception");
    return real;
}

static void measure_row(int loop, long count) {
    measure(loop, count); /* warms up */
    double gc_real = measure(loop, count);
    mrb->gc.disabled = TRUE;
    double real = measure(loop, count);
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
        mrb_value made = new_fiber(proc_at(WAITS_ONCE));
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
    struct RClass *object = mrb->object_class;
    mrb_define_method(mrb, object, "bare_call", bare_call, MRB_ARGS_BLOCK());
    mrb_define_method(mrb, object, "bare_fiber", bare_fiber, MRB_ARGS_BLOCK());
    mrb_define_method(mrb, object, "bare_waiting_fiber", bare_waiting_fiber, MRB_ARGS_BLOCK());
    mrb_define_method(mrb, object, "new_fiber", made_fiber, MRB_ARGS_BLOCK());
    mrb_define_method(mrb, object, "started_fiber", started_fiber, MRB_ARGS_BLOCK());
    mrb_define_method(mrb, object, "bare_resume", bare_resume, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, object, "bare_poll", bare_poll, MRB_ARGS_BLOCK());
    procs = mrb_load_string(mrb, program);
    must(mrb->exc == NULL && mrb_array_p(procs), "the program does not load");
    mrb_gc_register(mrb, procs);
    if (strncmp(argv[1], "a ", 2) == 0 || strncmp(argv[1], "an ", 3) == 0) {
        measure_memory(count);
        return 0;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, argv[1]) != 0) continue;
        measure_row(rows[i].loop, count);
        return 0;
    }
    must(false, "no such row");
    return 1;
}
