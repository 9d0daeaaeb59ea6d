/* wait: waiting for a time, for the next turn, or in a list. */
#include "core.h"

#include <math.h>
#include <mruby/numeric.h>

/* It ends by itself: its time is up, or somebody wakes it. Anything else is raised. */
static mrb_value after_wait(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    if (RS_UNLIKELY(rs_was_resumed(machine->engine, kind))) return rsm_take_resume_value(mrb, machine, strand);
    if (RS_UNLIKELY(kind != RS_WAKE_TIMEOUT)) rsm_raise_wake(mrb, machine, kind);
    return mrb_true_value();
}

static mrb_value give_way(mrb_state *mrb, rsm_machine *machine, bool resumable) {
    rs_strand *running = rs_running(machine->engine);
    rsm_raise_wake(mrb, machine, rs_refusal(machine->engine, 0));
    if (resumable) rs_make_resumable(running, rs_next_ticket(machine->engine));
    rs_yield(machine->engine);
    return rsm_park(mrb, machine, rs_strand_user(running), after_wait);
}

static mrb_value machine_yield(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_check_boundary(mrb);
    return give_way(mrb, machine, false);
}

static bool is_number(mrb_state *mrb, mrb_value value) {
    if (RS_LIKELY(mrb_fixnum_p(value) || mrb_float_p(value))) return true;
    return mrb_obj_is_kind_of(mrb, value, mrb_class_get(mrb, "Numeric"));
}

static mrb_float not_negative(mrb_float seconds) { return seconds < 0 ? 0 : seconds; }

/* NaN unless it is a number, or answers to divmod, as a program's own span of time does. */
static mrb_float read_seconds(mrb_state *mrb, mrb_value seconds) {
    if (RS_LIKELY(mrb_fixnum_p(seconds))) return not_negative((mrb_float)mrb_fixnum(seconds));
    if (is_number(mrb, seconds)) return not_negative(mrb_as_float(mrb, seconds));
    if (!mrb_respond_to(mrb, seconds, mrb_intern_lit(mrb, "divmod"))) return (mrb_float)NAN;
    mrb_value parts = mrb_check_array_type(mrb, mrb_funcall(mrb, seconds, "divmod", 1, mrb_fixnum_value(1)));
    if (!mrb_array_p(parts) || RARRAY_LEN(parts) != 2) return (mrb_float)NAN;
    return not_negative(mrb_as_float(mrb, mrb_ary_entry(parts, 0)) + mrb_as_float(mrb, mrb_ary_entry(parts, 1)));
}

static mrb_float seconds_of(mrb_state *mrb, mrb_value seconds, const char *what) {
    mrb_float number = read_seconds(mrb, seconds);
    if (RS_LIKELY(!isnan(number))) return number;
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: expected a number of seconds, got %!v", what, seconds);
    return 0;
}

int64_t rsm_deadline(mrb_state *mrb, rsm_machine *machine, mrb_value seconds, const char *what) {
    if (mrb_nil_p(seconds)) return RS_NEVER;
    mrb_float number = seconds_of(mrb, seconds, what);
    int64_t span_ns = number < 9e9 ? (int64_t)(number * 1e9) : RS_NEVER;
    return rs_deadline_after(rs_now(machine->engine), span_ns);
}

/* 0 or less: until the next turn. `resumable`: it is Kernel#wait, which Evaluation#resume! may end. */
static mrb_value wait_for(mrb_state *mrb, mrb_value seconds, bool resumable) {
    const char *what = resumable ? "wait" : "sleep";
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_check_boundary(mrb);
    if (seconds_of(mrb, seconds, what) == 0) return give_way(mrb, machine, resumable);
    rs_strand *running = rs_running(machine->engine);
    uint64_t ticket = rs_park_begin(machine->engine, RS_WAIT_SLEEP, 0, rsm_deadline(mrb, machine, seconds, what));
    if (ticket == 0) rsm_raise_wake(mrb, machine, rs_refused(machine->engine));
    if (resumable) rs_make_resumable(running, ticket);
    return rsm_park(mrb, machine, rs_strand_user(running), after_wait);
}

static mrb_value kernel_wait(mrb_state *mrb, mrb_value self) {
    mrb_value seconds = mrb_get_arg1(mrb);
    if (!is_number(mrb, seconds) && isnan(read_seconds(mrb, seconds))) {
        mrb_raisef(mrb, E_TYPE_ERROR, "wait: expected a number of seconds, got %!v", seconds);
    }
    return wait_for(mrb, seconds, true);
}

static mrb_value machine_sleep(mrb_state *mrb, mrb_value self) { return wait_for(mrb, mrb_get_arg1(mrb), false); }

mrb_value rsm_wait_in(mrb_state *mrb, rsm_machine *machine, rs_list *list, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns,
                      rsm_epilogue epilogue) {
    rsm_check_boundary(mrb);
    rs_strand *running = rs_running(machine->engine);
    rsm_strand *me = rs_strand_user(running);
    if (RS_UNLIKELY(rs_park_begin(machine->engine, wait, flags, deadline_ns) == 0)) {
        return epilogue(mrb, machine, me, rs_refused(machine->engine), 0);
    }
    rs_list_append(machine->engine, list, running, 0);
    return rsm_park(mrb, machine, me, epilogue);
}

void rsm_init_wait(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    mrb_define_method(mrb, mrb->kernel_module, "wait", kernel_wait, MRB_ARGS_REQ(1));
    mrb_define_class_method(mrb, module, "wait", kernel_wait, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, machine, "sleep", machine_sleep, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, machine, "yield", machine_yield, MRB_ARGS_NONE());
}
