/* options: reads the options of Machine.new, and opens the engine with the backend that they choose. */
#include "inner.h"

#include <string.h>

bool rsb_whole_ticks;

static const rs_backend *const backends[] = {&rs_backend_uring, &rs_backend_epoll, &rs_backend_sim};

/* Not getenv(3): another ractor may change the environment meanwhile. */
static VALUE environment(const char *name) {
    return rb_funcall(rb_const_get(rb_cObject, rb_intern("ENV")), rb_intern("[]"), 1, rb_str_new_cstr(name));
}

static const char *name_of(VALUE option, const char *what, const char *expected) {
    if (!NIL_P(option) && !SYMBOL_P(option) && !RB_TYPE_P(option, T_STRING)) {
        rb_raise(rsb_eUsage, "%s: expected %s, got %" PRIsVALUE, what, expected, rsb_inspect(option));
    }
    return NIL_P(option) ? "" : rb_id2name(rb_to_id(option));
}

/* NULL: neither the option nor RINGSPUN_BACKEND names one. */
static const rs_backend *wanted_backend(VALUE name) {
    const char *wanted = name_of(NIL_P(name) ? environment("RINGSPUN_BACKEND") : name, "backend", ":uring, :epoll or :sim");
    if (!*wanted) return NULL;
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        if (strcmp(wanted, rs_backend_name(backends[i])) == 0) return backends[i];
    }
    rb_raise(rsb_eUsage, "unknown backend %s: there are :uring, :epoll and :sim", wanted);
}

static void note_reason(rsb_machine *machine, const char *reason, const char *detail) {
    snprintf(machine->backend_reason, sizeof(machine->backend_reason), "%s%s", reason, detail);
}

void rsb_fail_to_open(rsb_machine *machine, int error, const char *what) {
    if (error == RS_NO_MEMORY) rsb_fail_memory();
    const char *why = rs_refusal_text(machine->engine);
    rb_syserr_fail_str(-error, *why ? rb_sprintf("%s: %s", what, why) : rb_str_new_cstr(what));
}

/* If the kernel gives no io_uring, for whatever reason, epoll is taken. */
static int open_best(rsb_machine *machine, const rs_options *options) {
    note_reason(machine, "the best that opens", "");
    int error = rs_machine_open(machine->engine, &rs_backend_uring, options);
    if (error == 0 || error == RS_NO_MEMORY) return error;
    note_reason(machine, "no io_uring: ", rs_refusal_text(machine->engine));
    return rs_machine_open(machine->engine, &rs_backend_epoll, options);
}

static void open_engine(rsb_machine *machine, const rs_backend *backend, const rs_options *options) {
    int error;
    if (backend) {
        note_reason(machine, backend == &rs_backend_sim ? "asked for: nothing is real here" : "asked for", "");
        error = rs_machine_open(machine->engine, backend, options);
    } else {
        error = open_best(machine, options);
    }
    if (error && error != RS_NO_MEMORY && backend == &rs_backend_uring) {
        rb_raise(rsb_eUnsupported, "no io_uring: %s; leave backend: out, and Ringspun takes epoll", rs_refusal_text(machine->engine));
    }
    if (error) rsb_fail_to_open(machine, error, "no machine");
}

static VALUE option(VALUE options, const char *name) {
    if (RHASH_EMPTY_P(options)) return Qnil; /* to look its name up takes longer than all else here */
    return rb_hash_lookup2(options, ID2SYM(rb_intern(name)), Qnil);
}

static uint32_t option_count(VALUE options, const char *name, uint32_t otherwise) {
    VALUE value = option(options, name);
    if (NIL_P(value)) return otherwise;
    return (uint32_t)rsb_integer(value, 1, 1 << 24, name);
}

static void refuse(VALUE options, const char *name, const char *why) {
    if (RTEST(option(options, name))) rb_raise(rsb_eUsage, "%s: is for %s", name, why);
}

static const char *const stream_io_names[] = {"auto", "inline", "ring"};

static rs_stream_io read_stream_io(VALUE name) {
    const char *wanted = name_of(NIL_P(name) ? environment("RINGSPUN_STREAM_IO") : name, "stream_io", ":auto, :inline or :ring");
    if (!*wanted) return RS_STREAM_IO_AUTO;
    for (size_t i = 0; i < sizeof(stream_io_names) / sizeof(stream_io_names[0]); i++) {
        if (strcmp(wanted, stream_io_names[i]) == 0) return (rs_stream_io)i;
    }
    rb_raise(rsb_eUsage, "unknown stream_io %s: there are :auto, :inline and :ring", wanted);
}

static void refuse_others(VALUE options, const rs_backend *backend) {
    if (backend != &rs_backend_sim) {
        static const char why[] = "backend: :sim; nothing is drawn from a seed in a real machine";
        refuse(options, "seed", why);
        refuse(options, "faults", why);
    }
    if (backend == &rs_backend_sim) refuse(options, "busy_poll", "backends that are real; a simulated machine waits for nobody");
    if (backend && backend != &rs_backend_uring) {
        static const char why[] = "backend: :uring; there is no ring on others";
        refuse(options, "entries", why);
        refuse(options, "sqpoll", why);
        VALUE stream_io = option(options, "stream_io");
        if (!NIL_P(stream_io) && read_stream_io(stream_io) == RS_STREAM_IO_RING) rb_raise(rsb_eUsage, "stream_io: :ring is for %s", why);
    }
}

/* The kernel's own limit: IORING_MAX_ENTRIES in https://github.com/torvalds/linux/blob/v6.18/io_uring/io_uring.c */
#define RING_ENTRIES_MAX 32768

static void read_sqpoll(rs_options *chosen, VALUE sqpoll) {
    if (!RTEST(sqpoll)) return;
    chosen->sqpoll = true;
    VALUE idle = sqpoll == Qtrue ? Qnil : sqpoll, cpu = Qnil;
    if (RB_TYPE_P(sqpoll, T_HASH)) {
        idle = option(sqpoll, "idle");
        cpu = option(sqpoll, "cpu");
        if (RHASH_SIZE(sqpoll) != (size_t)!NIL_P(idle) + !NIL_P(cpu)) {
            rb_raise(rsb_eUsage, "sqpoll: takes true, the idle time in seconds, or idle: and cpu:, got %" PRIsVALUE,
                     rsb_inspect(sqpoll));
        }
    }
    int64_t idle_ms = NIL_P(idle) ? 0 : rsb_span_to_ns(idle, "sqpoll: idle") / RSB_MILLISECOND_NS;
    if (!NIL_P(idle) && (idle_ms < 1 || idle_ms > UINT32_MAX)) {
        rb_raise(rsb_eUsage, "sqpoll: the idle time must be at least 0.001 seconds and less than a month, got %" PRIsVALUE,
                 rsb_inspect(idle));
    }
    chosen->sqpoll_idle_ms = (uint32_t)idle_ms;
    if (!NIL_P(cpu)) chosen->sqpoll_cpu = (int32_t)rsb_integer(cpu, 0, INT32_MAX, "sqpoll: cpu");
}

/* Who stays awake for longer takes a processor for nothing: to sleep and be woken costs some 50 us. See docs/decisions/18. */
#define BUSY_POLL_MAX_NS 10000000

static void read_busy_poll(rs_options *chosen, VALUE seconds) {
    if (NIL_P(seconds)) return;
    chosen->busy_poll_ns = seconds == Qfalse ? 0 : rsb_span_to_ns(seconds, "busy_poll");
    if (chosen->busy_poll_ns > BUSY_POLL_MAX_NS) {
        rb_raise(rsb_eUsage, "busy_poll: must be at most 0.01 seconds, or false, got %" PRIsVALUE, rsb_inspect(seconds));
    }
}

static rs_options read_options(rsb_machine *machine, VALUE options) {
    rs_options chosen = rs_default_options();
    chosen.threads_move = machine->thread_moves;
    chosen.whole_ticks = rsb_whole_ticks;
    chosen.strands_max = option_count(options, "strands_max", chosen.strands_max);
    chosen.workers_max = option_count(options, "workers_max", chosen.workers_max);
    VALUE file_io = rb_hash_lookup2(options, ID2SYM(rb_intern("file_io")), ID2SYM(rb_intern("inline")));
    if (file_io == ID2SYM(rb_intern("offload"))) chosen.offload_files = true;
    else if (file_io != ID2SYM(rb_intern("inline"))) rb_raise(rsb_eUsage, "file_io: must be :inline or :offload");
    VALUE entries = option(options, "entries"), seed = option(options, "seed");
    if (!NIL_P(entries)) chosen.ring_entries = (uint32_t)rsb_integer(entries, 1, RING_ENTRIES_MAX, "entries");
    read_sqpoll(&chosen, option(options, "sqpoll"));
    read_busy_poll(&chosen, option(options, "busy_poll"));
    chosen.stream_io = read_stream_io(option(options, "stream_io"));
    if (!NIL_P(seed)) chosen.seed = rsb_seed(seed);
    chosen.trace = RTEST(rb_hash_lookup2(options, ID2SYM(rb_intern("trace")), Qfalse));
    return chosen;
}

void rsb_open_engine(rsb_machine *machine, VALUE options) {
    const rs_backend *backend = wanted_backend(option(options, "backend"));
    rs_options chosen = read_options(machine, options);
    struct rs_sim_faults faults;
    refuse_others(options, backend);
    rsb_simulation_options(options, &chosen, &faults);
    open_engine(machine, backend, &chosen);
}
