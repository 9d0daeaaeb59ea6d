/* seconds: reads spans of time that callers pass, in seconds, and gives nanoseconds back as seconds. */
#include "machine.h"

#include <limits.h>
#include <math.h>

static ID id_divmod, id_to_f, id_is_real;

static bool is_real(VALUE number) {
    return rb_obj_is_kind_of(number, rb_cNumeric) && RTEST(rb_funcall(number, id_is_real, 0));
}

static VALUE unless_nan(double number) { return isnan(number) ? Qnil : rb_float_new(number); }

/* What has no divmod is no span of time for Kernel#sleep either: a String and a Time answer to to_f. */
static VALUE number_of_span(VALUE span) {
    VALUE one = INT2FIX(1);
    if (rb_special_const_p(span) || !rb_respond_to(span, id_divmod)) return Qnil;
    if (rb_respond_to(span, id_to_f)) return rsb_number_of_seconds(rb_funcall(span, id_to_f, 0));
    VALUE parts = rb_check_array_type(rb_funcallv(span, id_divmod, 1, &one));
    if (NIL_P(parts) || RARRAY_LEN(parts) != 2) return Qnil;
    VALUE whole = RARRAY_AREF(parts, 0), rest = RARRAY_AREF(parts, 1);
    return is_real(whole) && is_real(rest) ? unless_nan(NUM2DBL(whole) + NUM2DBL(rest)) : Qnil;
}

VALUE rsb_number_of_seconds(VALUE seconds) {
    if (RB_INTEGER_TYPE_P(seconds) || RB_TYPE_P(seconds, T_RATIONAL)) return seconds;
    if (RB_FLOAT_TYPE_P(seconds)) return isnan(RFLOAT_VALUE(seconds)) ? Qnil : seconds;
    if (!rb_obj_is_kind_of(seconds, rb_cNumeric)) return number_of_span(seconds);
    return is_real(seconds) ? unless_nan(NUM2DBL(seconds)) : Qnil;
}

static double read_seconds(VALUE seconds, const char *what) {
    VALUE number = rsb_number_of_seconds(seconds);
    if (NIL_P(number)) rb_raise(rsb_eUsage, "%s: expected a number of seconds, got %" PRIsVALUE, what, rsb_inspect(seconds));
    return NUM2DBL(number);
}

static int64_t to_ns(double seconds) {
    if (seconds <= 0) return 0;
    return seconds >= 9.2e9 ? RS_NEVER : (int64_t)(seconds * RSB_SECOND_NS);
}

int64_t rsb_seconds_to_ns(VALUE seconds, const char *what) {
    if (RB_FIXNUM_P(seconds)) {
        long whole = FIX2LONG(seconds);
        if (whole <= 0) return 0;
        return whole > RS_NEVER / RSB_SECOND_NS ? RS_NEVER : whole * RSB_SECOND_NS;
    }
    return to_ns(read_seconds(seconds, what));
}

int64_t rsb_span_to_ns(VALUE seconds, const char *what) {
    double number = read_seconds(seconds, what);
    if (number < 0) rb_raise(rsb_eUsage, "%s: seconds must not be negative, got %" PRIsVALUE, what, rsb_inspect(seconds));
    return to_ns(number);
}

int64_t rsb_interval_ns(VALUE seconds) {
    struct timespec interval = rb_time_timespec_interval(seconds);
    if (interval.tv_sec > RS_NEVER / RSB_SECOND_NS - 1) return RS_NEVER;
    return (int64_t)interval.tv_sec * RSB_SECOND_NS + interval.tv_nsec;
}

int64_t rsb_limit_ns(VALUE seconds) {
    if (NIL_P(seconds)) return RS_NEVER;
    VALUE read = rsb_number_of_seconds(seconds);
    double number = NUM2DBL(NIL_P(read) ? seconds : read); /* raises what CRuby raises for what is no number */
    if (number > (double)(RS_NEVER / RSB_SECOND_NS - 1)) return RS_NEVER;
    return number > 0 ? rsb_interval_ns(seconds) : 0;
}

int64_t rsb_timeout_ns(VALUE seconds) { return NIL_P(seconds) ? RS_NEVER : rsb_seconds_to_ns(seconds, "timeout"); }

int64_t rsb_deadline(rsb_machine *machine, VALUE seconds, const char *what) {
    return NIL_P(seconds) ? RS_NEVER : rsb_deadline_after(machine, rsb_seconds_to_ns(seconds, what));
}

VALUE rsb_seconds(int64_t ns) { return rb_float_new((double)ns / RSB_SECOND_NS); }

int rsb_milliseconds(int64_t ns) {
    if (ns == RS_NEVER) return -1;
    if (ns <= 0) return 0;
    int64_t rounded_up = (ns - 1) / RSB_MILLISECOND_NS + 1;
    return rounded_up < INT_MAX ? (int)rounded_up : INT_MAX;
}

/* @return [Integer, Float, Rational, nil] nil: that is no span of time */
static VALUE seconds_of(VALUE module, VALUE value) { return rsb_number_of_seconds(value); }

void rsb_init_seconds(void) {
    id_divmod = rb_intern("divmod");
    id_to_f = rb_intern("to_f");
    id_is_real = rb_intern("real?");
    rb_define_singleton_method(rb_define_module_under(rsb_mRingspun, "Seconds"), "of", seconds_of, 1);
}
