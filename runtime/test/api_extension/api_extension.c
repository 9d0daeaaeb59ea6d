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

static void wake_at_once(ringspun_waker waker, void *data) { ringspun->wake(waker, *(int64_t *)data); }

/* Woken before it has even parked. */
static VALUE park_woken(VALUE self, VALUE value) {
    int64_t given = NUM2LL(value), answer;
    return ringspun->park(RINGSPUN_NEVER, wake_at_once, &given, &answer) ? LL2NUM(answer) : Qnil;
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

/* --- version 2 --- */

static ringspun_waker here[8];  /* of the waits by park_here, by their places */
static long given_up_count;

static void keep_here(ringspun_waker waker, void *data) { here[*(long *)data] = waker; }
static void note_given_up(void *data) { given_up_count++; }

/* place, seconds -> the value, or nil after so many seconds */
static VALUE park_here(VALUE self, VALUE place, VALUE seconds) {
    long at = NUM2LONG(place);
    int64_t value;
    bool woken = ringspun->park_or(ringspun->deadline(seconds), "an answer in a test", keep_here, note_given_up, &at, &value);
    return woken ? LL2NUM(value) : Qnil;
}

static VALUE wake_here(VALUE self, VALUE place, VALUE value) {
    ringspun->wake_here(here[NUM2LONG(place)], NUM2LL(value));
    return Qnil;
}

static VALUE given_up(VALUE self) { return LONG2NUM(given_up_count); }

static VALUE is_here(VALUE self) { return ringspun->machine_here() ? Qtrue : Qfalse; }

typedef struct {
    VALUE stream;
    char text[64];
    long times;                 /* that it asks to be called again */
    long place;                 /* of a wait that it ends; negative: of none */
} tick_work;

static tick_work tick_works[8];
static long tick_calls;
static int64_t tick_began;      /* when the last of them was asked for */

static void at_end(VALUE number) {
    tick_work *work = &tick_works[FIX2LONG(number)];
    tick_calls++;
    if (ringspun->now() < tick_began) rb_bug("the clock goes backwards");
    if (work->stream) ringspun->stream_put(work->stream, work->text, strlen(work->text));
    if (work->place >= 0) ringspun->wake_here(here[work->place], tick_calls);
    if (work->times-- > 0) ringspun->at_tick_end(at_end, number);
}

/* work, stream or nil, text, times, place */
static VALUE at_tick_end(VALUE self, VALUE number, VALUE stream, VALUE text, VALUE times, VALUE place) {
    tick_work *work = &tick_works[NUM2LONG(number)];
    *work = (tick_work){.stream = NIL_P(stream) ? 0 : stream, .times = NUM2LONG(times), .place = NUM2LONG(place)};
    snprintf(work->text, sizeof(work->text), "%s", StringValueCStr(text));
    tick_began = ringspun->now();
    return ringspun->at_tick_end(at_end, number) ? Qtrue : Qfalse;
}

static VALUE tick_ends(VALUE self) { return LONG2NUM(tick_calls); }

static VALUE stream_peek(VALUE self, VALUE stream) {
    const char *bytes;
    size_t length;
    ringspun->stream_peek(stream, &bytes, &length);
    return rb_str_new(bytes, (long)length);
}

static VALUE stream_more(VALUE self, VALUE stream, VALUE seconds) {
    return ringspun->stream_more(stream, ringspun->deadline(seconds)) ? Qtrue : Qfalse;
}

static VALUE more_of(VALUE stream) { return stream_more(Qnil, stream, Qnil); }

/* stream, text -> as stream_more, which is a wait for that */
static VALUE stream_more_for(VALUE self, VALUE stream, VALUE text) {
    int state = 0;
    ringspun->waits_for(StringValueCStr(text));
    VALUE more = rb_protect(more_of, stream, &state);
    ringspun->waits_for(NULL);
    RB_GC_GUARD(text);
    if (state) rb_jump_tag(state);
    return more;
}

static VALUE stream_drop(VALUE self, VALUE stream, VALUE length) {
    ringspun->stream_drop(stream, NUM2SIZET(length));
    return Qnil;
}

static VALUE stream_take(VALUE self, VALUE stream, VALUE length) {
    size_t start, capacity, wanted = NUM2SIZET(length);
    char *block = ringspun->stream_take(stream, wanted, &start, &capacity);
    if (start + wanted > capacity) rb_bug("the bytes lie outside of their block");
    if (capacity - start - wanted > capacity / 8) rb_bug("the block has room that nobody uses");
    VALUE taken = rb_str_new(block ? block + start : NULL, (long)wanted);
    ringspun->block_free(block);
    return taken;
}

static VALUE stream_put(VALUE self, VALUE stream, VALUE text) {
    return ringspun->stream_put(stream, RSTRING_PTR(text), (size_t)RSTRING_LEN(text)) ? Qtrue : Qfalse;
}

static VALUE stream_unsent(VALUE self, VALUE stream) { return SIZET2NUM(ringspun->stream_unsent(stream)); }

static void init_version_2(VALUE module) {
    rb_define_module_function(module, "park_here", park_here, 2);
    rb_define_module_function(module, "wake_here", wake_here, 2);
    rb_define_module_function(module, "given_up", given_up, 0);
    rb_define_module_function(module, "here?", is_here, 0);
    rb_define_module_function(module, "at_tick_end", at_tick_end, 5);
    rb_define_module_function(module, "tick_ends", tick_ends, 0);
    rb_define_module_function(module, "stream_peek", stream_peek, 1);
    rb_define_module_function(module, "stream_more", stream_more, 2);
    rb_define_module_function(module, "stream_more_for", stream_more_for, 2);
    rb_define_module_function(module, "stream_drop", stream_drop, 2);
    rb_define_module_function(module, "stream_take", stream_take, 2);
    rb_define_module_function(module, "stream_put", stream_put, 2);
    rb_define_module_function(module, "stream_unsent", stream_unsent, 1);
}

void Init_api_extension(void) {
    ringspun = ringspun_get_api(2);
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
    init_version_2(module);
}
