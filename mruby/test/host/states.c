/* Several mrb_states in several threads: strands in each, with a call of the host's that waits; states that are closed on another
 * thread than the one that has used them, with strands still waiting and ops in flight. */
#include <mruby.h>
#include <mruby/compile.h>
#include <mruby/string.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 5 };

static const char program[] =
    "def work(number)\n"
    "  machine = Ringspun.machine\n"
    "  read, write = machine.pipe\n"
    "  machine.scope do |scope|\n"
    "    strands = Array.new(20) { |one| scope.spin { wait(0.001 * (one % 3)) and one } }\n"
    "    reader = scope.spin { read.read_partial }\n"
    "    machine.yield\n"
    "    write.write('x' * number)\n"
    "    strands.map { |strand| strand.await }.sum + reader.await.size\n"
    "  end\n"
    "end\n"
    "def leave_waiting\n"
    "  machine = Ringspun.machine\n"
    "  read, = machine.pipe\n"
    "  machine.spin { read.read_partial }\n"
    "  machine.spin { machine.timeout(60) { wait(60) } }\n"
    "  concurrent_proc { wait(60) }.call_nonblock\n"
    "  2.times { concurrently { wait(60) } }\n"
    "  machine.spin { Fiber.new { machine.scope { |scope| scope.spin { wait(60) } and wait(60) } }.resume }\n"
    "  wait(0.001)\n"
    "  Fiber.new { machine.scope { |scope| scope.spin { wait(60) } and Fiber.yield } }.resume\n"
    "  :left\n"
    "end\n"
    "def simulate\n"
    "  $generator = Fiber.new { Ringspun::Simulation.run { |machine| machine.spin { wait(60) } and wait(1) and Fiber.yield } }\n"
    "  $generator.resume\n"
    "  wait(0)\n"
    "end\n"
    /* mruby lets a fiber that was transferred to end in the root, where another strand waits. */
    "def transfer\n"
    "  Ringspun.machine.scope do |scope|\n"
    "    scope.spin { Fiber.new { 1 }.transfer }\n"
    "    wait(60)\n"
    "  end\n"
    "rescue Ringspun::UsageError => error\n"
    "  error.message\n"
    "end\n"
    "def cross = Hash.new { wait(0) }[1]\n";

static void check(mrb_state *mrb, bool holds, const char *what) {
    if (mrb->exc) mrb_print_error(mrb);
    if (holds && !mrb->exc) return;
    fprintf(stderr, "states: %s\n", what);
    exit(1);
}

static mrb_state *open_state(void) {
    mrb_state *mrb = mrb_open();
    if (!mrb) abort();
    mrb_load_string(mrb, program);
    check(mrb, true, "the program cannot be loaded");
    return mrb;
}

static mrb_value call(mrb_state *mrb, const char *name) { return mrb_funcall(mrb, mrb_top_self(mrb), name, 0); }

static void work(mrb_state *mrb, mrb_int number) {
    mrb_value sum = mrb_funcall(mrb, mrb_top_self(mrb), "work", 1, mrb_fixnum_value(number));
    check(mrb, mrb_fixnum_p(sum) && mrb_fixnum(sum) == 190 + number, "work has another result");
}

static void *run_states(void *argument) {
    mrb_int number = (mrb_int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        mrb_state *one = open_state(), *other = open_state();
        work(one, number);
        work(other, number + 1);
        work(one, number + 2);
        mrb_close(one);
        work(other, number);
        mrb_close(other);
    }
    return NULL;
}

static void *leave_state(void *unused) {
    (void)unused;
    mrb_state *mrb = open_state();
    work(mrb, 1);
    call(mrb, "leave_waiting");
    check(mrb, true, "strands cannot be left");
    return mrb;
}

static void *on_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, body, argument) != 0) abort();
    pthread_join(thread, &result);
    return result;
}

static void run_in_threads(void) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, run_states, (void *)(i + 1)) != 0) abort();
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* The next state is likely to have the address of the one before. */
static void close_on_other_threads(void) {
    for (int round = 0; round < ROUNDS; round++) {
        mrb_state *mrb = on_thread(leave_state, NULL);
        mrb_close(mrb);
        mrb = open_state();
        work(mrb, 3);
        mrb_close(mrb);
    }
}

static void expect_message(mrb_state *mrb, mrb_value message, const char *part) {
    const char *text = mrb_string_p(message) ? mrb_string_value_cstr(mrb, &message) : "no message";
    if (!strstr(text, part)) fprintf(stderr, "states: %s\n", text);
    check(mrb, strstr(text, part), part);
}

static void expect_error(mrb_state *mrb, const char *method, const char *part) {
    mrb_funcall(mrb, mrb_top_self(mrb), method, strcmp(method, "wait") == 0 ? 1 : 0, mrb_fixnum_value(0));
    if (!mrb->exc) check(mrb, false, method);
    mrb_value error = mrb_obj_value(mrb->exc);
    mrb->exc = NULL;
    expect_message(mrb, mrb_funcall(mrb, error, "message", 0), part);
}

static void *use_state(void *mrb) {
    const char *backend = getenv("RINGSPUN_BACKEND");
    if (backend && strcmp(backend, "epoll") == 0) work(mrb, 2);
    else expect_error(mrb, "wait", "opened on another thread");
    return NULL;
}

static void use_on_another_thread(void) {
    mrb_state *mrb = open_state();
    work(mrb, 1);
    on_thread(use_state, mrb);
    work(mrb, 3);
    mrb_close(mrb);
}

static void close_in_the_middle(void) {
    mrb_state *mrb = open_state();
    call(mrb, "simulate");
    mrb_close(mrb);
    mrb = open_state();
    expect_message(mrb, call(mrb, "transfer"), "Fiber#transfer");
    mrb_close(mrb);
}

static void refuse_inside_functions(void) {
    mrb_state *mrb = open_state();
    expect_error(mrb, "cross", "cannot wait inside a Hash's block");
    expect_error(mrb, "wait", "cannot wait inside wait"); /* with no bytecode at all that could go on */
    work(mrb, 4);
    mrb_close(mrb);
}

int main(void) {
    refuse_inside_functions();
    run_in_threads();
    close_on_other_threads();
    use_on_another_thread();
    close_in_the_middle();
    puts("states: all is well");
    return 0;
}
