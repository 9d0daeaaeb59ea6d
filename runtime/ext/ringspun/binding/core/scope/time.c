/* time: the machine's clock, deadlines by it, sleeping until one, and running a block until one. */
#include "inner.h"

/* --- the clock --- */

/* @return [Float] seconds on the machine's clock: virtual in a simulation, monotonic otherwise
 * @since 0.1.0 */
static VALUE machine_now(VALUE self) { return rsb_seconds(rs_now(rsb_machine_of(self)->engine)); }

/* --- deadlines --- */

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
    int64_t start_ns = rs_now(machine->engine);
    VALUE seconds = argc == 0 ? Qnil : argv[0];
    int64_t delay_ns = NIL_P(seconds) ? RS_NEVER : rsb_seconds_to_ns(seconds, "sleep");
    if (delay_ns == 0) {
        rsb_yield(machine);
        return INT2FIX(0);
    }
    rsb_sleep_until(machine, rs_deadline_after(start_ns, delay_ns));
    return LL2NUM((rs_now(machine->engine) - start_ns + RSB_SECOND_NS / 2) / RSB_SECOND_NS);
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

void rsb_init_time(void) {
    rb_define_method(rsb_cMachine, "now", machine_now, 0);
    rb_define_method(rsb_cMachine, "sleep", machine_sleep, -1);
    rb_define_method(rsb_cMachine, "timeout", machine_timeout, 1);
}
