/* time: converts seconds to nanoseconds and deadlines, sleeps until a deadline, and runs a block until one. */
#include "inner.h"

#include <limits.h>
#include <math.h>

/* --- seconds --- */

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

VALUE rsb_seconds(int64_t ns) { return rb_float_new((double)ns / RSB_SECOND_NS); }

int rsb_milliseconds(int64_t ns) {
    if (ns == RS_NEVER) return -1;
    if (ns <= 0) return 0;
    int64_t rounded_up = (ns - 1) / RSB_MILLISECOND_NS + 1;
    return rounded_up < INT_MAX ? (int)rounded_up : INT_MAX;
}

/* --- deadlines --- */

int64_t rsb_deadline(rsb_machine *machine, VALUE seconds, const char *what) {
    return NIL_P(seconds) ? RS_NEVER : rsb_deadline_after(machine, rsb_seconds_to_ns(seconds, what));
}

int64_t rsb_timeout_deadline(rsb_machine *machine, VALUE options) {
    return rsb_deadline(machine, rsb_timeout_option(options), "timeout");
}

int64_t rsb_timeout_given(rsb_machine *machine, int argc, VALUE *argv) {
    VALUE options;
    rb_scan_args(argc, argv, ":", &options);
    return rsb_timeout_deadline(machine, options);
}

/* --- sleeping --- */

rs_wake_kind rsb_sleep(rsb_machine *machine, int64_t deadline_ns) {
    return rsb_wait(machine, RS_WAIT_SLEEP, 0, deadline_ns, NULL, NULL, NULL);
}

void rsb_slept(rsb_machine *machine, rs_wake_kind kind) {
    if (kind != RS_WAKE_TIMEOUT) rsb_raise_wake(machine, kind);
}

void rsb_sleep_for(rsb_machine *machine, int64_t delay_ns) {
    if (delay_ns == 0) rsb_yield(machine);
    else rsb_sleep_until(machine, rsb_deadline_after(machine, delay_ns));
}

/* Lets others run for that many seconds.
 *
 * May switch strands.
 *
 * @param seconds [Numeric, nil] 0 or less: lets others run once; nil sleeps until cancelled
 * @return [Integer] seconds slept, rounded, like Kernel#sleep
 * @since 0.1.0
 */
static VALUE machine_sleep(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    rsb_machine *machine = rsb_machine_of(self);
    int64_t start_ns = rs_now(&machine->engine);
    VALUE seconds = argc == 0 ? Qnil : argv[0];
    int64_t delay_ns = NIL_P(seconds) ? RS_NEVER : rsb_seconds_to_ns(seconds, "sleep");
    if (delay_ns == 0) {
        rsb_yield(machine);
        return INT2FIX(0);
    }
    rsb_sleep_until(machine, rs_deadline_after(start_ns, delay_ns));
    return LL2NUM((rs_now(&machine->engine) - start_ns + RSB_SECOND_NS / 2) / RSB_SECOND_NS);
}

/* --- running until --- */

/* Runs the body in that open scope, and closes the scope. */
static inline VALUE run_in(rsb_machine *machine, rs_scope *scope, VALUE (*body)(VALUE), VALUE argument, int *state, bool *answers) {
    VALUE value = rb_protect(body, argument, state);
    if (RS_UNLIKELY(rsb_forks != machine->fork_count)) rsb_after_fork(machine);
    *answers = rs_scope_answers(scope);
    rsb_scope_close(machine, scope);
    return value;
}

static inline VALUE run_until(rsb_machine *machine, int64_t deadline_ns, VALUE (*body)(VALUE), VALUE argument, bool *late) {
    rs_scope scope;
    int state = 0;
    bool answers;
    rsb_scope_open(machine, &scope, deadline_ns, false);
    VALUE value = run_in(machine, &scope, body, argument, &state, &answers);
    *late = false;
    if (RS_LIKELY(!state)) return value;
    if (!answers || !rsb_is_exception(rb_errinfo()) || !rb_obj_is_kind_of(rb_errinfo(), rsb_eCancelled)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    *late = true;
    return Qnil;
}

VALUE rsb_until(rsb_machine *machine, int64_t deadline_ns, VALUE (*body)(VALUE), VALUE argument, bool *late) {
    return run_until(machine, deadline_ns, body, argument, late);
}

VALUE rsb_until_raised(rsb_machine *machine, int64_t deadline_ns, const VALUE *raises, VALUE (*body)(VALUE), VALUE argument) {
    rsb_once once = {.raises = raises};
    int state = 0;
    bool answers;
    rsb_scope_open(machine, &once.engine, deadline_ns, false);
    rs_scope_make_once(&once.engine);
    VALUE value = run_in(machine, &once.engine, body, argument, &state, &answers);
    if (RS_UNLIKELY(state)) rb_jump_tag(state);
    return value;
}

/* Runs the block. If it still waits after that many seconds, its waits are cancelled until it has unwound, and the error is
 * raised here, never inside a later wait. A block that ends in time costs no system call.
 *
 * May switch strands if the block does.
 *
 * @param seconds [Numeric, nil] 0 or less: the limit has passed; nil: no limit
 * @return [Object] the block's value
 * @raise [TimeoutError] when the time has passed and a wait of the block was cancelled
 * @since 0.1.0
 */
static VALUE machine_timeout(VALUE self, VALUE seconds) {
    rsb_need_block("timeout");
    rsb_machine *machine = rsb_machine_of(self);
    bool late;
    VALUE value = run_until(machine, rsb_deadline(machine, seconds, "timeout"), rb_yield, Qundef, &late);
    if (RS_LIKELY(!late)) return value;
    rb_raise(rsb_eTimeout, "timed out after %" PRIsVALUE " s", seconds);
}

/* @return [Integer, Float, Rational, nil] nil: that is no span of time */
static VALUE seconds_of(VALUE module, VALUE value) { return rsb_number_of_seconds(value); }

void rsb_init_time(void) {
    id_divmod = rb_intern("divmod");
    id_to_f = rb_intern("to_f");
    id_is_real = rb_intern("real?");
    rb_define_singleton_method(rb_define_module_under(rsb_mRingspun, "Seconds"), "of", seconds_of, 1);
    rb_define_method(rsb_cMachine, "sleep", machine_sleep, -1);
    rb_define_method(rsb_cMachine, "timeout", machine_timeout, 1);
}
