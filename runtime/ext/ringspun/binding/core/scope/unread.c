/* unread: errors of strands that nobody has read. Each is kept until it is read or reported.
 *
 * A strand's error is reported at most once, besides the call of a scope's `on_error:`. It is due a second after the strand's
 * end, at once if the program has no handle to join, or when the run, the machine or the program ends. If the strand is joined
 * later, the error is raised all the same.
 *
 * The reminder is a timer of the engine. It does not keep a machine from ending, and does not count as a possible wake in a
 * deadlock. A strand of its own, the reporter, reports what is due, because an `on_error:` may wait. The reporter is made
 * beforehand, because nothing may be allocated in the loop, where the reminder fires. */
#include "inner.h"

#include <ruby/ractor.h>

/* A bound for programs that never join: if there are this many, all of them are reported at once and no longer kept. */
#define UNREAD_MAX 64
#define REPORT_AFTER_NS 1000000000

/* Machines that have or had such errors. They are kept alive until those are reported, because a thread may end without closing
 * its machine. One Hash per ractor, because none may touch another's objects. */
static rb_ractor_local_key_t with_unread_key;

static VALUE with_unread(void) {
    VALUE machines = rb_ractor_local_storage_value(with_unread_key);
    if (NIL_P(machines)) rb_ractor_local_storage_value_set(with_unread_key, machines = rb_hash_new());
    return machines;
}

typedef struct {
    VALUE unread;               /* Hash, bounded: strand => error that nobody has read */
    VALUE due;                  /* Array of [strand, error, handler or nil]: errors that are due */
    VALUE reporter;             /* the strand that reports them, or is about to; or nil */
    bool reporter_begun;
} unread_errors;

typedef struct {
    int64_t due_at_ns;          /* when its error is reported if nobody has read it by then */
    bool reported;              /* its error was */
    bool read;                  /* its error was read */
} error_state;

static rsb_part part;

static unread_errors *errors_of(const rsb_machine *machine) { return rsb_part_data(machine, &part); }

static error_state *state_of(const rsb_strand *strand) { return rsb_strand_part(strand, &part); }

static void mark_errors(rsb_machine *machine) {
    unread_errors *errors = errors_of(machine);
    rb_gc_mark(errors->unread);
    rb_gc_mark(errors->due);
    rb_gc_mark(errors->reporter);
}

void rsb_unread_open(rsb_machine *machine) {
    unread_errors *errors = errors_of(machine);
    errors->reporter = Qnil;
    errors->unread = rb_hash_new();
    errors->due = rb_ary_new();
}

static bool has_any(const rsb_machine *machine) {
    return RHASH_SIZE(errors_of(machine)->unread) > 0 || RARRAY_LEN(errors_of(machine)->due) > 0;
}

/* --- which are due --- */

typedef struct {
    rsb_machine *machine;
    int64_t now_ns;             /* RS_NEVER: all are due */
    int64_t next_ns;            /* when the first of the others is due */
    bool take;                  /* move those that are due to `due` */
    VALUE run;                  /* only of strands of that Ringspun.run; nil: of any */
} due_search;

static int look_at(VALUE object, VALUE error, VALUE argument) {
    due_search *search = (due_search *)argument;
    rsb_strand *strand = rsb_strand_data(object);
    if (state_of(strand)->reported || (!NIL_P(search->run) && strand->supervisor != search->run)) return ST_CONTINUE;
    int64_t due_ns = state_of(strand)->due_at_ns;
    bool all = search->now_ns == RS_NEVER;
    if (all || due_ns <= search->now_ns) {
        if (search->take) {
            VALUE entry = rb_ary_new_from_args(3, object, error, rsb_run_on_error(strand->supervisor));
            rb_ary_push(errors_of(search->machine)->due, entry);
            state_of(strand)->reported = true;
            return ST_CONTINUE;
        }
        due_ns = search->now_ns;
    }
    if (due_ns < search->next_ns) search->next_ns = due_ns;
    return ST_CONTINUE;
}

static int64_t search_due(rsb_machine *machine, int64_t now_ns, bool take) {
    due_search search = {machine, now_ns, RS_NEVER, take, Qnil};
    rb_hash_foreach(errors_of(machine)->unread, look_at, (VALUE)&search);
    return search.next_ns;
}

static void make_all_due(rsb_machine *machine) {
    search_due(machine, RS_NEVER, true);
    errors_of(machine)->unread = rb_hash_new();
    if (machine->open) rs_forget_reminder(machine->engine);
}

/* A Ringspun.run inside another one has ended. */
static VALUE machine_make_due(VALUE self, VALUE run) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    due_search search = {machine, RS_NEVER, RS_NEVER, true, run};
    rb_hash_foreach(errors_of(machine)->unread, look_at, (VALUE)&search);
    return Qnil;
}

/* --- the reporter --- */

static VALUE report_due(VALUE machine) { return rb_funcall(machine, rb_intern("report_due_errors"), 0); }

static VALUE run_reporter(RB_BLOCK_CALL_FUNC_ARGLIST(first, machine));

/* There is one reporter at a time, and it may be running. A reporter that was cancelled before its first turn has ended without a
 * report, and is replaced. */
static void prepare_reporter(rsb_machine *machine) {
    unread_errors *errors = errors_of(machine);
    bool begun = errors->reporter_begun && !NIL_P(errors->reporter);
    if (!NIL_P(errors->reporter) && !(begun && rsb_strand_data(errors->reporter)->done)) return;
    errors->reporter = rsb_strand_prepare(machine, rb_proc_new(run_reporter, machine->self));
    errors->reporter_begun = false;
}

/* If there can be no strand now, the reminder tries again. Allocates nothing. */
static void begin_reporter(rsb_machine *machine) {
    unread_errors *errors = errors_of(machine);
    if (NIL_P(errors->reporter) || errors->reporter_begun) return;
    errors->reporter_begun = rsb_strand_begin_next(machine, rsb_strand_data(errors->reporter));
    if (!errors->reporter_begun) rs_remind(machine->engine, rs_now(machine->engine) + REPORT_AFTER_NS);
}

static void replace_reporter(rsb_machine *machine, int64_t next_ns) {
    errors_of(machine)->reporter = Qnil;
    if (next_ns == RS_NEVER) return;
    prepare_reporter(machine);
    rs_remind(machine->engine, next_ns);
}

static VALUE end_of_reporter(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    rsb_notice_fork(machine);
    int64_t now_ns = rs_now(machine->engine);
    replace_reporter(machine, RARRAY_LEN(errors_of(machine)->due) > 0 ? now_ns : search_due(machine, now_ns, false));
    return Qnil;
}

static VALUE run_reporter(RB_BLOCK_CALL_FUNC_ARGLIST(first, machine)) {
    return rb_ensure(report_due, machine, end_of_reporter, machine);
}

static void on_reminder(rs_machine *engine) {
    rsb_machine *machine = rs_user_of(engine);
    int64_t now_ns = rs_now(engine), next_ns = search_due(machine, now_ns, false);
    if (RARRAY_LEN(errors_of(machine)->due) > 0 || next_ns <= now_ns) begin_reporter(machine);
    else if (next_ns != RS_NEVER) rs_remind(machine->engine, next_ns);
}

bool rsb_is_reporter(const rsb_machine *machine, const rsb_strand *strand) { return strand->self == errors_of(machine)->reporter; }

void rsb_reporter_failed(rsb_machine *machine) {
    replace_reporter(machine, rs_now(machine->engine) + REPORT_AFTER_NS);
}

/* --- keeping them --- */

static void note_machine(rsb_machine *machine) {
    if (!has_any(machine)) rb_hash_aset(with_unread(), machine->self, Qtrue);
}

void rsb_unread_keep(rsb_machine *machine, rsb_strand *strand, bool awaited, bool held) {
    note_machine(machine);
    bool too_many = RHASH_SIZE(errors_of(machine)->unread) >= UNREAD_MAX && !awaited;
    if (too_many) make_all_due(machine);
    prepare_reporter(machine);
    bool may_be_read = held || awaited;
    state_of(strand)->due_at_ns = rs_now(machine->engine) + (may_be_read ? REPORT_AFTER_NS : 0);
    rb_hash_aset(errors_of(machine)->unread, rsb_strand_show(strand), strand->error);
    if (!may_be_read || too_many) begin_reporter(machine);
    if (may_be_read) rs_remind(machine->engine, state_of(strand)->due_at_ns);
}

void rsb_unread_report(rsb_machine *machine, VALUE strand, VALUE error, VALUE handler) {
    note_machine(machine);
    prepare_reporter(machine);
    rb_ary_push(errors_of(machine)->due, rb_ary_new_from_args(3, strand, error, handler));
    begin_reporter(machine);
}

void rsb_unread_read(rsb_machine *machine, VALUE strand) {
    state_of(rsb_strand_data(strand))->read = true;
    rb_hash_delete(errors_of(machine)->unread, strand);
}

static int take_one(VALUE strand, VALUE error, VALUE errors) {
    state_of(rsb_strand_data(strand))->read = true;
    rb_ary_push(errors, error);
    return ST_CONTINUE;
}

VALUE rsb_unread_take_all(rsb_machine *machine) {
    VALUE errors = rb_ary_new();
    rb_hash_foreach(errors_of(machine)->unread, take_one, errors);
    rb_hash_clear(errors_of(machine)->unread);
    return errors;
}

static void unread_forked(rsb_machine *machine, rsb_strand *survivor) {
    rb_hash_clear(errors_of(machine)->unread);
    rb_ary_clear(errors_of(machine)->due);
    errors_of(machine)->reporter = Qnil;
}

/* --- reporting them --- */

/* The next error to report, of those that are due or of all: [strand, error, the `on_error:` of a scope or of a run inside another, or
 * nil]. nil: none. */
static VALUE machine_next_unread(VALUE self, VALUE all) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    if (RTEST(all)) make_all_due(machine);
    else if (RARRAY_LEN(errors_of(machine)->due) == 0) search_due(machine, rs_now(machine->engine), true);
    while (RARRAY_LEN(errors_of(machine)->due) > 0) {
        VALUE entry = rb_ary_shift(errors_of(machine)->due);
        rsb_strand *strand = rsb_strand_data(RARRAY_AREF(entry, 0));
        bool of_scope = RTEST(RARRAY_AREF(entry, 2)) && !rsb_is_run(strand->supervisor);
        if (of_scope || !state_of(strand)->read) return entry; /* else somebody has joined it since */
    }
    return Qnil;
}

/* Something ended the report of this error before it was complete: a warning reports it at the end. */
static VALUE machine_keep_unreported(VALUE self, VALUE strand, VALUE error) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    note_machine(machine);
    rb_ary_push(errors_of(machine)->due, rb_ary_new_from_args(3, strand, error, Qfalse));
    return Qnil;
}

VALUE rsb_report_unread(VALUE self) {
    return has_any(rsb_machine_any_thread(self)) ? rb_funcall(self, rb_intern("report_unread_errors"), 0) : Qnil;
}

/* Keeps the first error of those that handlers raise until all are told. */
static void report(VALUE machine, VALUE *raised) {
    int state = 0;
    rb_protect(rsb_report_unread, machine, &state);
    if (!state) return;
    if (rsb_is_exception(rb_errinfo()) && NIL_P(*raised)) *raised = rb_errinfo();
    rb_set_errinfo(Qnil);
}

bool rsb_has_unread(const rsb_machine *machine) { return has_any(machine); }

void rsb_report_all_unread(bool all) {
    VALUE unread = with_unread();
    if (RHASH_SIZE(unread) == 0) return;
    VALUE machines = rb_funcall(unread, rb_intern("keys"), 0), raised = Qnil;
    for (long i = 0; i < RARRAY_LEN(machines); i++) {
        VALUE object = RARRAY_AREF(machines, i);
        rsb_machine *machine = rsb_machine_any_thread(object);
        rsb_notice_fork(machine);
        if (machine->fork_count != rsb_forks) {
            rb_hash_delete(unread, object); /* of another thread of the parent, which reports it */
            continue;
        }
        if (!all && !rsb_is_gone(machine) && has_any(machine)) continue;
        rb_hash_delete(unread, object);
        report(object, &raised);
    }
    if (!NIL_P(raised)) rb_exc_raise(raised);
}

static VALUE report_all_unread(VALUE class) {
    rsb_report_all_unread(true);
    return Qnil;
}

static rsb_part part = {.data_size = sizeof(unread_errors), .strand_size = sizeof(error_state), .mark = mark_errors,
                        .forked = unread_forked};

void rsb_init_unread(void) {
    rsb_register_part(&part);
    rsb_driver.on_reminder = on_reminder;
    with_unread_key = rb_ractor_local_storage_value_newkey();
    rb_define_private_method(rsb_cMachine, "make_due", machine_make_due, 1);
    rb_define_private_method(rsb_cMachine, "next_unread", machine_next_unread, 1);
    rb_define_private_method(rsb_cMachine, "keep_unreported", machine_keep_unreported, 2);
    rb_define_private_method(rb_singleton_class(rsb_cMachine), "report_unread_errors", report_all_unread, 0);
}
