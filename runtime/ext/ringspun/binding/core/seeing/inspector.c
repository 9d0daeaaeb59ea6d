/* inspector: what Ringspun::Inspector cannot see from Ruby, and Ringspun::Inspector::Lookout, which finds strands that hold the
 * thread for too long (stalls).
 *
 * A lookout waits on a thread of its own. It looks without the GVL, because the stalling strand may hold the GVL. So it reads
 * only a few numbers of a machine that may be running, and follows no pointers; once it has the GVL it checks what it saw.
 */
#include "binding/core/strand/inner.h"
#include "seeing.h"

#include <errno.h>

static VALUE cLookout;
static ID id_machine, id_backtrace, id_list;

/* --- strands --- */

static rs_strand *engine_of(rsb_strand *strand, rsb_machine **machine) {
    *machine = rsb_machine_any_thread(strand->machine);
    return rsb_is_alive(strand) ? rs_strand_find(rs_strands_of((*machine)->engine), strand->id) : NULL;
}

/* The strand that owns the scope which this one belongs to: for one of {Machine#spin} the root of its run.
 *
 * @return [Strand, nil] nil for the root strand, and when it has ended
 * @since 0.1.0 */
static VALUE strand_owner(VALUE self) {
    rsb_machine *machine;
    rs_strand *engine = engine_of(rsb_strand_get(self), &machine);
    const rs_scope *parent = engine ? rs_strand_own(engine)->parent : NULL;
    if (!parent) return Qnil;
    bool outside = parent == &machine->outside; /* its owner is the root, which may have ended in a forked child */
    rs_strand *owner = outside ? rs_root(machine->engine) : rs_strand_at(rs_strands_of(machine->engine), parent->owner);
    return owner ? rsb_strand_show(rs_strand_user(owner)) : Qnil;
}

/* For how long it has been waiting, on the machine's clock: known when {Machine#locate=} was true as it began.
 *
 * @return [Float, nil] seconds; nil when it does not wait, or that is not known
 * @since 0.1.0 */
static VALUE strand_waited(VALUE self) {
    rsb_machine *machine;
    rs_strand *engine = engine_of(rsb_strand_get(self), &machine);
    if (!engine || !rs_strand_is(engine, RS_STRAND_PARKED) || rs_strand_parked_at(engine) == 0) return Qnil;
    return rsb_seconds(rs_now(machine->engine) - rs_strand_parked_at(engine));
}

/* --- machines --- */

/* Every strand that has not ended, the root included.
 *
 * @return [Array<Strand>]
 * @since 0.1.0 */
static VALUE machine_strands(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    rsb_notice_fork(machine);
    VALUE list = rb_ary_new();
    if (!machine->open) return list;
    RS_EACH_STRAND(rs_strands_of(machine->engine), strand) {
        if (rs_strand_user(strand)) rb_ary_push(list, rsb_strand_show(rs_strand_user(strand)));
    }
    return list;
}

/* @param locate [Boolean] record where strands are spun and when they begin to wait, for reports; about 1 us a strand
 * @since 0.1.0 */
static VALUE machine_set_locate(VALUE self, VALUE locate) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    machine->locate = RTEST(locate);
    if (machine->open) rs_machine_note_parks(machine->engine, machine->locate);
    return locate;
}

static VALUE machine_thread(VALUE self) { return rsb_machine_any_thread(self)->thread; }

static VALUE machine_strand_states(VALUE self) {
    static const char *const names[] = {
        [RS_STRAND_NEW] = "new", [RS_STRAND_READY] = "ready", [RS_STRAND_RUNNING] = "running", [RS_STRAND_PARKED] = "parked"};
    long counts[RS_STRAND_PARKED + 1] = {0};
    rsb_machine *machine = rsb_machine_any_thread(self);
    rsb_notice_fork(machine);
    if (machine->open) {
        RS_EACH_STRAND(rs_strands_of(machine->engine), strand) counts[rs_strand_state_now(strand)]++;
    }
    VALUE hash = rb_hash_new();
    for (int state = RS_STRAND_NEW; state <= RS_STRAND_PARKED; state++) {
        rb_hash_aset(hash, ID2SYM(rb_intern(names[state])), LONG2NUM(counts[state]));
    }
    return hash;
}

/* The open machines of this ractor. Another ractor's objects must not be touched. */
static VALUE machine_all(VALUE class) {
    VALUE threads = rb_funcall(rb_cThread, id_list, 0), machines = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        VALUE machine = rb_attr_get(RARRAY_AREF(threads, i), id_machine);
        if (!NIL_P(machine)) rb_ary_push(machines, machine);
    }
    return machines;
}

/* --- a lookout --- */

/* Looks per limit: a stall is found at the latest limit / LOOKS after it has lasted for the limit. */
#define LOOKS 4
#define INTERVAL_MIN_NS 1000000
#define INTERVAL_MAX_NS 1000000000

typedef struct {
    VALUE machine_object;
    VALUE thread;               /* the one that calls #wait; nil: not known yet */
    rsb_machine *machine;
    int64_t limit_ns;
    pthread_mutex_t lock;       /* of `stopped` and `nudged` */
    pthread_cond_t changed;
    bool stopped;
    bool nudged;                /* by CRuby: an interrupt for this thread is pending */
    bool in_turn;               /* the last look saw `turn` */
    bool reported;              /* that turn was */
    rs_turn_seen turn;
    int64_t since_ns;           /* when it first saw that turn */
} lookout;

static void lookout_mark(void *data) {
    rb_gc_mark(((lookout *)data)->machine_object);
    rb_gc_mark(((lookout *)data)->thread);
}

static const rb_data_type_t lookout_type = {
    .wrap_struct_name = "Ringspun::Inspector::Lookout",
    .function = {.dmark = lookout_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static lookout *get(VALUE self) {
    lookout *out;
    TypedData_Get_Struct(self, lookout, &lookout_type, out);
    return out;
}

static VALUE lookout_new(VALUE class, VALUE machine, VALUE limit) {
    lookout *out;
    VALUE self = TypedData_Make_Struct(class, lookout, &lookout_type, out);
    out->machine_object = machine;
    out->thread = Qnil;
    out->machine = rsb_machine_any_thread(machine);
    out->limit_ns = rsb_span_to_ns(limit, "limit");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&out->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&out->lock, NULL);
    return self;
}

static bool is_over(const rsb_machine *machine) {
    return !__atomic_load_n(&machine->open, __ATOMIC_ACQUIRE) || machine->thread_ended;
}

/* Every turn has a number of its own, so a strand seen twice in the same turn has held the thread in between. A strand that is
 * the only one of its machine, as the root is outside of a run, holds up nobody. */
static bool sees_same_turn(lookout *out) {
    rs_turn_seen turn = rs_look_at_turn(out->machine->engine);
    bool in_turn = turn.strand != RS_NO_INDEX && turn.live > 1;
    if (in_turn && out->in_turn && turn.number == out->turn.number) return true;
    out->in_turn = in_turn;
    out->reported = false;
    out->turn = turn;
    out->since_ns = rs_clock_ns();
    return false;
}

static bool sees_stall(lookout *out) {
    return sees_same_turn(out) && !out->reported && rs_clock_ns() - out->since_ns >= out->limit_ns;
}

static int64_t interval_ns(const lookout *out) {
    int64_t interval = out->limit_ns / LOOKS;
    if (interval < INTERVAL_MIN_NS) return INTERVAL_MIN_NS;
    return interval > INTERVAL_MAX_NS ? INTERVAL_MAX_NS : interval;
}

static void *look_without_gvl(void *argument) {
    lookout *out = argument;
    pthread_mutex_lock(&out->lock);
    while (!out->stopped && !out->nudged && !is_over(out->machine) && !sees_stall(out)) {
        struct timespec until = rsb_timespec(rs_clock_ns() + interval_ns(out));
        pthread_cond_timedwait(&out->changed, &out->lock, &until);
    }
    pthread_mutex_unlock(&out->lock);
    return NULL;
}

static void nudge(void *argument) {
    lookout *out = argument;
    pthread_mutex_lock(&out->lock);
    out->nudged = true;
    pthread_cond_signal(&out->changed);
    pthread_mutex_unlock(&out->lock);
}

/* The strand that had that turn. NULL: it has ended, or may have, since. */
static rsb_strand *strand_of_turn(const lookout *out) {
    if (!out->machine->open) return NULL;
    rs_strand *strand = rs_strand_of_turn(out->machine->engine, &out->turn);
    return strand ? rs_strand_user(strand) : NULL;
}

/* [strand, seconds, backtrace, whether it still holds the thread]. If it held the GVL in C code, it may be parked by the time
 * that this thread has the GVL; then the backtrace is that of the park. */
static VALUE stall(lookout *out) {
    VALUE seconds = rsb_seconds(rs_clock_ns() - out->since_ns);
    rsb_strand *strand = strand_of_turn(out);
    bool lasts = sees_same_turn(out);
    VALUE traced = lasts ? out->machine->thread : strand ? strand->fiber : Qnil;
    VALUE backtrace = NIL_P(traced) ? Qnil : rb_funcall(traced, id_backtrace, 0);
    VALUE shown = strand ? rsb_strand_show(strand) : Qnil;
    return rb_ary_new_from_args(4, shown, seconds, backtrace, lasts ? Qtrue : Qfalse);
}

/* While the thread waits here it wakes no strand, so a machine does not count it before it raises a DeadlockError. After a wait,
 * and at its end, it may wake one. */
static void only_looks(const lookout *out, bool so) {
    if (!NIL_P(out->thread)) rb_ivar_set(out->thread, rsb_id_only_looks, so && !out->stopped ? Qtrue : Qfalse);
}

/* Sets the thread that will call #wait, before it does. */
static VALUE lookout_set_thread(VALUE self, VALUE thread) {
    lookout *out = get(self);
    out->thread = thread;
    only_looks(out, true);
    return thread;
}

static VALUE stall_or_nil(lookout *out) {
    for (;;) {
        out->nudged = false;
        rb_thread_call_without_gvl(look_without_gvl, out, nudge, out);
        if (out->stopped || is_over(out->machine)) return Qnil;
        if (out->nudged) continue;
        out->reported = true;
        return stall(out);
    }
}

static VALUE lookout_wait(VALUE self) {
    lookout *out = get(self);
    only_looks(out, true);
    VALUE found = stall_or_nil(out);
    only_looks(out, false);
    return found;
}

static VALUE lookout_stop(VALUE self) {
    lookout *out = get(self);
    pthread_mutex_lock(&out->lock);
    out->stopped = true;
    pthread_cond_signal(&out->changed);
    pthread_mutex_unlock(&out->lock);
    only_looks(out, false);
    return Qnil;
}

void rsb_init_inspector(void) {
    id_machine = rb_intern("ringspun_machine");
    id_backtrace = rb_intern("backtrace");
    id_list = rb_intern("list");
    rb_define_method(rsb_cStrand, "owner", strand_owner, 0);
    rb_define_method(rsb_cStrand, "waited", strand_waited, 0);
    rb_define_method(rsb_cMachine, "strands", machine_strands, 0);
    rb_define_method(rsb_cMachine, "locate=", machine_set_locate, 1);
    rb_define_private_method(rsb_cMachine, "thread", machine_thread, 0);
    rb_define_private_method(rsb_cMachine, "strand_states", machine_strand_states, 0);
    rb_define_private_method(rb_singleton_class(rsb_cMachine), "all", machine_all, 0);
    VALUE inspector = rb_define_class_under(rsb_mRingspun, "Inspector", rb_cObject);
    cLookout = rb_define_class_under(inspector, "Lookout", rb_cObject);
    rb_undef_alloc_func(cLookout);
    rb_define_singleton_method(cLookout, "new", lookout_new, 2);
    rb_define_method(cLookout, "thread=", lookout_set_thread, 1);
    rb_define_method(cLookout, "wait", lookout_wait, 0);
    rb_define_method(cLookout, "stop", lookout_stop, 0);
}
