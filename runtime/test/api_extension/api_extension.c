/* An extension on Ringspun's C API, for api_test.rb: threads of its own which know nothing of Ruby wake strands. */
#include <ringspun.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

static const ringspun_api *ringspun;

typedef struct {
    ringspun_waker waker;
    int64_t value;
    int gate;                   /* readable before the wake; -1: at once */
} errand;

static void *run_errand(void *argument) {
    errand mine = *(errand *)argument;
    struct pollfd gate = {.fd = mine.gate, .events = POLLIN};
    if (mine.gate >= 0 && poll(&gate, 1, -1) < 0) abort();
    ringspun->wake(mine.waker, mine.value);
    free(argument);
    return NULL;
}

static void send_errand(ringspun_waker waker, void *data) {
    errand *mine = malloc(sizeof(*mine));
    *mine = *(errand *)data;
    mine->waker = waker;
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_errand, mine)) abort();
    pthread_detach(thread);
}

/* value, gate, seconds -> the value, or nil after so many seconds */
static VALUE park(VALUE self, VALUE value, VALUE gate, VALUE seconds) {
    errand mine = {.value = NUM2LL(value), .gate = NUM2INT(gate)};
    int64_t answer;
    return ringspun->park(ringspun->deadline(seconds), send_errand, &mine, &answer) ? LL2NUM(answer) : Qnil;
}

static void wake_here(ringspun_waker waker, void *data) { ringspun->wake(waker, *(int64_t *)data); }

/* Woken before it has even parked. */
static VALUE park_woken(VALUE self, VALUE value) {
    int64_t given = NUM2LL(value), answer;
    return ringspun->park(RINGSPUN_NEVER, wake_here, &given, &answer) ? LL2NUM(answer) : Qnil;
}

static ringspun_waker kept;

/* As if a signal handler had come in between: something is to be raised in the strand before it parks. */
static void keep_and_interrupt(ringspun_waker waker, void *data) {
    kept = waker;
    VALUE machine = rb_funcall(rb_path2class("Ringspun::Machine"), rb_intern("current"), 0);
    rb_funcall(machine, rb_intern("schedule"), 2, rb_funcall(machine, rb_intern("running"), 0), *(VALUE *)data);
}

static VALUE park_interrupted(VALUE self, VALUE error) {
    ringspun->park(RINGSPUN_NEVER, keep_and_interrupt, &error, NULL);
    return Qnil;
}

static VALUE wake_kept(VALUE self, VALUE value) {
    ringspun->wake(kept, NUM2LL(value));
    return Qnil;
}

static VALUE read_text(VALUE self, VALUE fd, VALUE length) {
    VALUE text = rb_str_new_cstr("");
    ringspun->read(NUM2INT(fd), text, NUM2LONG(length), 0);
    return text;
}

static VALUE write_text(VALUE self, VALUE fd, VALUE text) { return LONG2NUM(ringspun->write(NUM2INT(fd), text)); }

static VALUE wait_readable(VALUE self, VALUE fd) { return INT2NUM(ringspun->wait_ready(NUM2INT(fd), RINGSPUN_READABLE)); }

static VALUE yield_to_others(VALUE self) {
    ringspun->yield();
    return Qnil;
}

static VALUE within(VALUE self, VALUE seconds) {
    return ringspun->with_deadline(ringspun->deadline(seconds), rb_yield, Qundef);
}

static VALUE now(VALUE self) { return LL2NUM(ringspun->now()); }

static VALUE demand(VALUE self, VALUE version) {
    ringspun_get_api(NUM2UINT(version));
    return Qtrue;
}

void Init_api_extension(void) {
    ringspun = ringspun_get_api(1);
    VALUE module = rb_define_module("ApiExtension");
    rb_define_module_function(module, "park", park, 3);
    rb_define_module_function(module, "park_woken", park_woken, 1);
    rb_define_module_function(module, "park_interrupted", park_interrupted, 1);
    rb_define_module_function(module, "wake_kept", wake_kept, 1);
    rb_define_module_function(module, "read", read_text, 2);
    rb_define_module_function(module, "write", write_text, 2);
    rb_define_module_function(module, "wait_readable", wait_readable, 1);
    rb_define_module_function(module, "yield", yield_to_others, 0);
    rb_define_module_function(module, "within", within, 1);
    rb_define_module_function(module, "now", now, 0);
    rb_define_module_function(module, "demand", demand, 1);
}
