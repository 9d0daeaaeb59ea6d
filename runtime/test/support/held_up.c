/* Holds a process up at some of its lines of Ruby. It is C so that the whole process stands still, as when a machine gives it no
 * processor: the thread that sleeps keeps the GVL, and no scheduler hears of the sleep. And it allocates no object, for tests that
 * count objects. */
#include <ruby.h>
#include <ruby/debug.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#define TIMES_MAX 4
#define FOLDERS_MAX 8
#define PATH_MAX_BYTES 512

static struct {
    /* Which lines count: of files that begin with one of these, without those that end with one of the last. */
    char tests[FOLDERS_MAX][PATH_MAX_BYTES], libraries[FOLDERS_MAX][PATH_MAX_BYTES], left_out[FOLDERS_MAX][PATH_MAX_BYTES];
    /* How many such lines run until the next time, that one included, and whether only those of tests count. */
    long gaps[TIMES_MAX];
    bool only_tests[TIMES_MAX];
    int times, done;
    long nanoseconds;
    struct {
        char path[PATH_MAX_BYTES];
        int line;
    } held[TIMES_MAX];
} state;

static VALUE trace;

static bool begins(const char *path, char (*folders)[PATH_MAX_BYTES]) {
    for (int i = 0; i < FOLDERS_MAX && folders[i][0]; i++)
        if (!strncmp(path, folders[i], strlen(folders[i]))) return true;
    return false;
}

static bool counts(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < FOLDERS_MAX && state.left_out[i][0]; i++) {
        size_t end = strlen(state.left_out[i]);
        if (end <= length && !strcmp(path + length - end, state.left_out[i])) return false;
    }
    return begins(path, state.tests) || (!state.only_tests[state.done] && begins(path, state.libraries));
}

static void hold_up(void) {
    struct timespec left = {.tv_nsec = state.nanoseconds};
    while (nanosleep(&left, &left) && errno == EINTR) continue;
}

static void at_line(VALUE tracepoint, void *data) {
    (void)data;
    if (state.done == state.times) return;

    rb_trace_arg_t *event = rb_tracearg_from_tracepoint(tracepoint);
    VALUE path = rb_tracearg_path(event);
    if (!RB_TYPE_P(path, T_STRING) || RSTRING_LEN(path) >= PATH_MAX_BYTES) return;
    char name[PATH_MAX_BYTES];
    memcpy(name, RSTRING_PTR(path), RSTRING_LEN(path));
    name[RSTRING_LEN(path)] = 0;
    if (!counts(name) || --state.gaps[state.done]) return;

    strcpy(state.held[state.done].path, name);
    state.held[state.done++].line = NUM2INT(rb_tracearg_lineno(event));
    hold_up();
}

static void copy_paths(VALUE paths, char (*to)[PATH_MAX_BYTES]) {
    long count = RARRAY_LEN(paths);
    if (count > FOLDERS_MAX) rb_raise(rb_eArgError, "at most %d paths", FOLDERS_MAX);
    for (long i = 0; i < count; i++) {
        VALUE path = RARRAY_AREF(paths, i);
        const char *name = StringValueCStr(path);
        if (strlen(name) >= PATH_MAX_BYTES) rb_raise(rb_eArgError, "too long a path: %s", name);
        strcpy(to[i], name);
    }
}

/* Each gap is a pair: how many lines, and whether only those of tests count. */
static VALUE start_at_lines(VALUE self, VALUE gaps, VALUE milliseconds, VALUE tests, VALUE libraries, VALUE left_out) {
    memset(&state, 0, sizeof state);
    if (RARRAY_LEN(gaps) > TIMES_MAX) rb_raise(rb_eArgError, "at most %d times", TIMES_MAX);
    copy_paths(tests, state.tests);
    copy_paths(libraries, state.libraries);
    copy_paths(left_out, state.left_out);
    state.nanoseconds = NUM2LONG(milliseconds) * 1000000;
    for (long i = 0; i < RARRAY_LEN(gaps); i++) {
        VALUE gap = rb_check_array_type(RARRAY_AREF(gaps, i));
        if (NIL_P(gap) || RARRAY_LEN(gap) != 2) rb_raise(rb_eArgError, "a gap is a pair");
        state.gaps[i] = NUM2LONG(RARRAY_AREF(gap, 0));
        state.only_tests[i] = RTEST(RARRAY_AREF(gap, 1));
    }
    state.times = (int)RARRAY_LEN(gaps);
    rb_tracepoint_enable(trace);
    return Qnil;
}

/* Answers the lines at which it was held up since then, as pairs. */
static VALUE stop_at_lines(VALUE self) {
    if (RTEST(rb_tracepoint_enabled_p(trace))) rb_tracepoint_disable(trace);
    VALUE held = rb_ary_new();
    for (int i = 0; i < state.done; i++)
        rb_ary_push(held, rb_assoc_new(rb_str_new_cstr(state.held[i].path), INT2NUM(state.held[i].line)));
    state.times = state.done = 0;
    return held;
}

void Init_held_up(void) {
    rb_gc_register_address(&trace);
    trace = rb_tracepoint_new(Qnil, RUBY_EVENT_LINE, at_line, NULL);
    VALUE module = rb_define_module("HeldUp");
    rb_define_singleton_method(module, "start_at_lines", start_at_lines, 5);
    rb_define_singleton_method(module, "stop_at_lines", stop_at_lines, 0);
}
