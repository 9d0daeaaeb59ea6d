/* several: waits for several strands, until all have ended or one has failed.
 *
 * The caller waits for them one after the other, so that strands that end well wake it seldom. It counts as an awaiter of each
 * meanwhile: one that ends without a value looks for its awaiters, and wakes them from the strand for which they wait just then.
 *
 * A wait owns nothing: when the error of one is raised, the others go on, and are their scope's as before. */
#include "inner.h"

/* One such wait. It lies on the stack of the strand that waits. */
typedef struct rsb_several {
    struct rsb_several *next;
    VALUE waiter;
    VALUE strands;              /* an Array of ours */
    VALUE failed;               /* the first of them that has ended without a value, or nil */
    rsb_machine *machine;
} rsb_several;

static rsb_part part;

/* The list of the machine's waits begins there, with the newest. */
static rsb_several **waits_of(const rsb_machine *machine) { return rsb_part_data(machine, &part); }

/* How many strands wait for several, that one among them. */
static uint32_t *awaiters_of(const rsb_strand *strand) { return rsb_strand_part(strand, &part); }

bool rsb_has_awaiters(const rsb_strand *strand) { return *awaiters_of(strand) > 0; }

static bool has(VALUE strands, VALUE strand) {
    for (long i = 0; i < RARRAY_LEN(strands); i++) {
        if (RARRAY_AREF(strands, i) == strand) return true;
    }
    return false;
}

/* A strand with awaiters has ended without a value: those that wait for it among several go on. */
static void tell_awaiters(rsb_machine *machine, rsb_strand *strand) {
    if (!rsb_has_awaiters(strand) || !rsb_strand_failed(strand)) return;
    for (rsb_several *wait = *waits_of(machine); wait; wait = wait->next) {
        if (!NIL_P(wait->failed) || !has(wait->strands, strand->self)) continue;
        wait->failed = strand->self;
        rs_strand *waiter = rs_strand_find(rs_strands_of(machine->engine), rsb_strand_data(wait->waiter)->id);
        if (waiter && rs_strand_wait(waiter) == RS_WAIT_JOIN) {
            rs_wake(machine->engine, rs_strand_id(waiter), rs_strand_ticket(waiter), RS_WAKE_VALUE, 0);
        }
    }
}

/* The waits of the parent's strands are gone. */
static void several_forked(rsb_machine *machine, rsb_strand *survivor) {
    rsb_several **at = waits_of(machine);
    while (*at) {
        if ((*at)->waiter == survivor->self) at = &(*at)->next;
        else *at = (*at)->next;
    }
}

static void count_awaiter(VALUE strands, int more) {
    for (long i = 0; i < RARRAY_LEN(strands); i++) {
        rsb_strand *strand = rsb_strand_data(RARRAY_AREF(strands, i));
        *awaiters_of(strand) += (uint32_t)more;
        strand->tells_end = true;
    }
}

static VALUE wait_for_each(VALUE argument) {
    rsb_several *wait = (rsb_several *)argument;
    for (long i = 0; i < RARRAY_LEN(wait->strands); i++) {
        rsb_strand *strand = rsb_strand_data(RARRAY_AREF(wait->strands, i));
        while (!strand->done && NIL_P(wait->failed)) rsb_strand_wait_once(wait->machine, strand);
    }
    return Qnil;
}

static VALUE end_wait(VALUE argument) {
    rsb_several *wait = (rsb_several *)argument;
    rsb_several **at = waits_of(wait->machine);
    while (*at && *at != wait) at = &(*at)->next; /* a fork may have taken it out */
    if (*at) *at = wait->next;
    count_awaiter(wait->strands, -1);
    return Qnil;
}

/* Copies the Array: the program may change its own during the wait. */
static VALUE strands_of(int argc, VALUE *argv, VALUE machine) {
    bool list = argc == 1 && RB_TYPE_P(argv[0], T_ARRAY);
    VALUE strands = list ? rb_ary_dup(argv[0]) : rb_ary_new_from_values(argc, argv);
    for (long i = 0; i < RARRAY_LEN(strands); i++) {
        if (rsb_strand_get(RARRAY_AREF(strands, i))->machine == machine) continue;
        rb_raise(rsb_eWrongThread, "that strand runs on another machine; only its own can wait for it");
    }
    return strands;
}

/* The first in the order given of those that have failed by now, or nil. */
static VALUE failed_by_now(VALUE strands) {
    for (long i = 0; i < RARRAY_LEN(strands); i++) {
        rsb_strand *strand = rsb_strand_data(RARRAY_AREF(strands, i));
        if (strand->done && rsb_strand_failed(strand)) return strand->self;
    }
    return Qnil;
}

/* The errors of the others that have failed by now go with the one that will be raised. */
static void suppress_other_errors(rsb_machine *machine, VALUE strands, VALUE first) {
    VALUE others = Qnil;
    for (long i = 0; i < RARRAY_LEN(strands); i++) {
        VALUE object = RARRAY_AREF(strands, i), error = rsb_strand_data(object)->error;
        if (NIL_P(error)) continue;
        rsb_unread_read(machine, object);
        if (error == first) continue;
        if (NIL_P(others)) others = rb_ary_new();
        if (!RTEST(rb_ary_includes(others, error))) rb_ary_push(others, error);
    }
    if (!NIL_P(others)) rsb_suppress(first, others);
}

static void raise_error_of(rsb_machine *machine, VALUE strands, VALUE failed) {
    VALUE error = rsb_strand_data(failed)->error;
    if (!NIL_P(error)) suppress_other_errors(machine, strands, error);
    rsb_strand_awaited(machine, rsb_strand_data(failed));
}

/* Waits for all the strands. When one fails, its error is raised at once, and the others go on: they are their scope's as before.
 * Where several have failed already, it is the first in the order given; {Ringspun.suppressed} lists the errors of the others.
 *
 * May switch strands.
 *
 * @overload await(*strands)
 *   @param strands [Array<Strand>]
 * @overload await(strands)
 *   @param strands [Array<Strand>] in one Array
 * @return [Array] their values, in the order given
 * @raise [Exception] the first error
 * @raise [TerminatedError] when the first that has failed was terminated or cancelled
 * @since 0.1.0
 */
static VALUE machine_await(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    VALUE strands = strands_of(argc, argv, self);
    rsb_several wait = {*waits_of(machine), rsb_running(machine)->self, strands, failed_by_now(strands), machine};
    if (NIL_P(wait.failed)) {
        *waits_of(machine) = &wait;
        count_awaiter(strands, 1);
        rb_ensure(wait_for_each, (VALUE)&wait, end_wait, (VALUE)&wait);
    }
    if (!NIL_P(wait.failed)) raise_error_of(machine, strands, wait.failed);
    long count = RARRAY_LEN(strands);
    VALUE values = rb_ary_new_capa(count);
    for (long i = 0; i < count; i++) rb_ary_push(values, rsb_strand_data(RARRAY_AREF(strands, i))->value);
    RB_GC_GUARD(strands);
    return values;
}

/* Like {#await} without the values.
 *
 * May switch strands.
 *
 * @overload join(*strands)
 *   @param strands [Array<Strand>]
 * @overload join(strands)
 *   @param strands [Array<Strand>] in one Array
 * @return [nil]
 * @raise (see #await)
 * @since 0.1.0 */
static VALUE machine_join(int argc, VALUE *argv, VALUE self) {
    machine_await(argc, argv, self);
    return Qnil;
}

static rsb_part part = {.data_size = sizeof(rsb_several *), .strand_size = sizeof(uint32_t), .forked = several_forked,
                        .strand_ends = tell_awaiters};

void rsb_init_several(void) {
    rsb_register_part(&part);
    rb_define_method(rsb_cMachine, "await", machine_await, -1);
    rb_define_method(rsb_cMachine, "join", machine_join, -1);
}
