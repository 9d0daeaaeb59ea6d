/* simulation: options and methods that only a simulated machine has, and its trace, which all machines have. */
#include "inner.h"

uint64_t rsb_seed(VALUE seed) {
    int64_t number = 0;
    bool fits = RB_INTEGER_TYPE_P(seed) && rb_integer_pack(seed, &number, 1, sizeof(number), 0,
                                                          INTEGER_PACK_2COMP | INTEGER_PACK_NATIVE_BYTE_ORDER) >= 0;
    bool too_large = fits && RTEST(rb_funcall(seed, '>', 1, ULL2NUM(UINT64_MAX)));
    if (fits && !too_large) return (uint64_t)number;
    rb_raise(rsb_eUsage, "seed: must be an Integer of at most 64 bits and not negative, got %" PRIsVALUE, rsb_inspect(seed));
}

static double read_probability(VALUE value, const char *name) {
    bool real = rb_obj_is_kind_of(value, rb_cNumeric) && RTEST(rb_funcall(value, rb_intern("real?"), 0));
    double probability = real ? NUM2DBL(value) : -1;
    if (probability >= 0 && probability <= 1) return probability;
    rb_raise(rsb_eUsage, "faults: %s must lie between 0.0 and 1.0, got %" PRIsVALUE, name, rsb_inspect(value));
}

static int read_fault(VALUE key, VALUE value, VALUE argument) {
    rs_sim_faults *faults = (rs_sim_faults *)argument;
    if (!SYMBOL_P(key) && !RB_TYPE_P(key, T_STRING)) {
        rb_raise(rsb_eUsage, "faults: %" PRIsVALUE " is no name of a fault; Simulation::FAULTS lists them", rsb_inspect(key));
    }
    const char *name = rb_id2name(rb_to_id(key));
    if (strcmp(name, "delay_max") == 0) {
        faults->delay_max_ns = rsb_span_to_ns(value, "delay_max");
        return ST_CONTINUE;
    }
    if (!rs_sim_set_fault(faults, name, 0)) rb_raise(rsb_eUsage, "faults: unknown fault %s; Simulation::FAULTS lists them", name);
    rs_sim_set_fault(faults, name, (uint16_t)(read_probability(value, name) * 1000 + 0.5));
    return ST_CONTINUE;
}

void rsb_simulation_options(VALUE options, rs_options *chosen, rs_sim_faults *faults) {
    VALUE given = rb_hash_lookup2(options, ID2SYM(rb_intern("faults")), Qnil);
    if (NIL_P(given)) return;
    if (given == Qfalse) {
        *faults = rs_sim_faults_none();
    } else if (given == Qtrue) {
        *faults = rs_sim_faults_default();
    } else if (RB_TYPE_P(given, T_HASH)) {
        *faults = rs_sim_faults_none();
        faults->delay_max_ns = 1000000;
        rb_hash_foreach(given, read_fault, (VALUE)faults);
    } else {
        rb_raise(rsb_eUsage, "faults: must be true, false or a Hash of fault => probability");
    }
    chosen->faults = faults;
}

static rsb_machine *simulated(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    if (machine->engine.backend != &rs_backend_sim) {
        rb_raise(rsb_eUsage, "only a simulated machine has this; see Ringspun::Simulation");
    }
    return machine;
}

/* @return [Integer] a hash of all events of the trace so far; equal for equal seeds in a simulation. 0 without `trace: true`
 * @since 0.1.0 */
static VALUE machine_trace_hash(VALUE self) { return ULL2NUM(rsb_machine_any_thread(self)->engine.trace.hash); }

/* The last events, oldest first: [seconds, what, subject, detail].
 *
 * @return [Array<Array>]
 * @since 0.1.0 */
static VALUE machine_trace(VALUE self) {
    rs_trace *trace = &rsb_machine_any_thread(self)->engine.trace;
    VALUE list = rb_ary_new();
    uint64_t first = trace->count > RS_TRACE_RING ? trace->count - RS_TRACE_RING : 0;
    for (uint64_t i = first; i < trace->count; i++) {
        const rs_trace_event *event = &trace->ring[i % RS_TRACE_RING];
        rb_ary_push(list, rb_ary_new_from_args(4, rsb_seconds(event->at_ns),
                                               ID2SYM(rb_intern(rs_trace_kind_name(event->kind))),
                                               ULL2NUM(event->subject), LL2NUM(event->detail)));
    }
    return list;
}

static VALUE machine_sim_advance(VALUE self, VALUE seconds) {
    rs_sim_advance(&simulated(self)->engine, rsb_span_to_ns(seconds, "advance"));
    return Qnil;
}

static VALUE machine_sim_random(VALUE self) { return ULL2NUM(rs_sim_random(&simulated(self)->engine)); }

static VALUE machine_sim_open_descriptors(VALUE self) {
    return UINT2NUM(rs_sim_open_descriptors(&simulated(self)->engine));
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
