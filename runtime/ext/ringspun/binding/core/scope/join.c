/* join: waiting for the end of a strand, and reading what it has ended with. */
#include "inner.h"

void rsb_strand_wait_once(rsb_machine *machine, rsb_strand *strand) {
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), strand->id);
    if (!engine) rb_raise(rsb_eTerminated, "that strand runs in the parent process; it did not come along with the fork");
    if (engine == rs_running(machine->engine)) {
        rb_raise(rsb_eUsage, "a strand cannot wait for its own end; join it from another one, or just return");
    }
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_JOIN, 0, RS_NEVER, rs_strand_joiners(engine), NULL, NULL);
    rsb_raise_wake(machine, kind);
}

static void wait_for_end(rsb_machine *machine, rsb_strand *strand) {
    while (!strand->done) rsb_strand_wait_once(machine, strand);
}

#define TERMINATED "the strand was terminated or cancelled before it had a value"

static VALUE error_of(rsb_machine *machine, const rsb_strand *strand) {
    if (!NIL_P(strand->error)) rsb_unread_read(machine, strand->self);
    else if (strand->cancelled) return rb_exc_new_cstr(rsb_eTerminated, TERMINATED);
    return strand->error;
}

VALUE rsb_strand_result(rsb_machine *machine, rsb_strand *strand) {
    VALUE error = error_of(machine, strand);
    if (!NIL_P(error)) rb_exc_raise(error);
    return strand->value;
}

VALUE rsb_strand_awaited(rsb_machine *machine, rsb_strand *strand) {
    VALUE error = error_of(machine, strand);
    if (!NIL_P(error)) rsb_raise_result(error);
    return strand->value;
}

static rsb_strand *own_strand(VALUE self, rsb_machine **machine) {
    rsb_strand *strand = rsb_strand_get(self);
    *machine = rsb_machine_of(strand->machine);
    return strand;
}

/* Waits until the strand has ended and returns its value.
 *
 * May switch strands.
 *
 * @return [Object] the value of the strand's block
 * @raise [Exception] what the block raised
 * @raise [Ringspun::TerminatedError] when the strand was terminated or cancelled
 * @raise [Ringspun::WrongThreadError] when called from another thread than the machine's
 * @since 0.1.0
 */
static VALUE strand_await(VALUE self) {
    rsb_machine *machine;
    rsb_strand *strand = own_strand(self, &machine);
    wait_for_end(machine, strand);
    return rsb_strand_awaited(machine, strand);
}

/* Waits until the strand has ended; like {#await}, but returns the strand.
 *
 * May switch strands.
 *
 * @return [Strand] self
 * @raise (see #await)
 * @since 0.1.0
 */
static VALUE strand_join(VALUE self) {
    strand_await(self);
    return self;
}

/* The error that the strand ended with. Once it was read here, it is not reported any more.
 *
 * @return [Exception, nil]
 * @since 0.1.0 */
static VALUE strand_error(VALUE self) {
    rsb_strand *strand = rsb_strand_get(self);
    if (NIL_P(strand->error)) return Qnil;
    rsb_unread_read(rsb_machine_any_thread(strand->machine), self);
    return strand->error;
}

void rsb_init_join(void) {
    rb_define_method(rsb_cStrand, "await", strand_await, 0);
    rb_define_method(rsb_cStrand, "join", strand_join, 0);
    rb_define_method(rsb_cStrand, "error", strand_error, 0);
}
