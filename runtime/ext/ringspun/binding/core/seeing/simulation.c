/* simulation: methods that only a simulated machine has, and its trace, which all machines have. */
#include "seeing.h"

static rsb_machine *simulated(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    if (!rs_is_simulated(machine->engine)) {
        rb_raise(rsb_eUsage, "only a simulated machine has this; see Ringspun::Simulation");
    }
    return machine;
}

/* @return [Integer] a hash of all events of the trace so far; equal for equal seeds in a simulation. 0 without `trace: true`
 * @since 0.1.0 */
static VALUE machine_trace_hash(VALUE self) { return ULL2NUM(rs_trace_hash(rsb_machine_any_thread(self)->engine)); }

static void add_event(void *list, const rs_trace_event *event) {
    rb_ary_push((VALUE)list, rb_ary_new_from_args(4, rsb_seconds(event->at_ns), ID2SYM(rb_intern(rs_trace_kind_name(event->kind))),
                                                  ULL2NUM(event->subject), LL2NUM(event->detail)));
}

/* The last events, oldest first: [seconds, what, subject, detail].
 *
 * @return [Array<Array>]
 * @since 0.1.0 */
static VALUE machine_trace(VALUE self) {
    VALUE list = rb_ary_new();
    rs_trace_each(rsb_machine_any_thread(self)->engine, add_event, (void *)list);
    return list;
}

static VALUE machine_sim_advance(VALUE self, VALUE seconds) {
    rs_sim_advance(simulated(self)->engine, rsb_span_to_ns(seconds, "advance"));
    return Qnil;
}

static VALUE machine_sim_random(VALUE self) { return ULL2NUM(rs_sim_random(simulated(self)->engine)); }

static VALUE machine_sim_open_descriptors(VALUE self) {
    return UINT2NUM(rs_sim_open_descriptors(simulated(self)->engine));
}

void rsb_init_simulation(void) {
    rb_define_method(rsb_cMachine, "trace_hash", machine_trace_hash, 0);
    rb_define_method(rsb_cMachine, "trace", machine_trace, 0);
    rb_define_private_method(rsb_cMachine, "sim_advance", machine_sim_advance, 1);
    rb_define_private_method(rsb_cMachine, "sim_random", machine_sim_random, 0);
    rb_define_private_method(rsb_cMachine, "sim_open_descriptors", machine_sim_open_descriptors, 0);
    VALUE faults = rb_ary_new();
    for (size_t i = 0; rs_sim_fault_name(i); i++) rb_ary_push(faults, ID2SYM(rb_intern(rs_sim_fault_name(i))));
    rb_define_const(rsb_cMachine, "SIMULATED_FAULTS", rb_obj_freeze(faults));
}
