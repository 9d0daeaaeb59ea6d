/* faults: reads the options of Machine.new that only a simulated machine has: its seed, and the faults that it is to draw. */
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
