/* raise: what ends a wait without a value, and errors that are raised in another strand, or were in one. */
#include "core.h"

#include <mruby/error.h>

void rsm_deliver(mrb_state *mrb, rsm_machine *machine, rs_strand *engine, mrb_value error, bool first) {
    rsm_strand *strand = rs_strand_user(engine);
    if (!mrb_array_p(strand->raises)) {
        strand->raises = mrb_ary_new(mrb);
        mrb_gc_register(mrb, strand->raises);
    }
    mrb_ary_push(mrb, strand->raises, error);
    if (first) rs_interrupt_first(machine->engine, engine);
    else rs_interrupt(machine->engine, engine);
}

static void taken(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    rs_take_interrupt(rs_running(machine->engine));
    if (RARRAY_LEN(strand->raises) > 0) return;
    mrb_gc_unregister(mrb, strand->raises);
    strand->raises = mrb_nil_value();
}

void rsm_undeliver(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, mrb_value error) {
    for (mrb_int i = 0; mrb_array_p(strand->raises) && i < RARRAY_LEN(strand->raises); i++) {
        if (!mrb_obj_eq(mrb, mrb_ary_ref(mrb, strand->raises, i), error)) continue;
        mrb_value last = mrb_ary_pop(mrb, strand->raises);
        if (i < RARRAY_LEN(strand->raises)) mrb_ary_set(mrb, strand->raises, i, last);
        taken(mrb, machine, strand);
        return;
    }
}

static mrb_value take_interrupt(mrb_state *mrb, rsm_machine *machine) {
    rsm_strand *strand = rsm_running(machine);
    mrb_value error = mrb_ary_shift(mrb, strand->raises);
    mrb_gc_protect(mrb, error);
    taken(mrb, machine, strand);
    return error;
}

mrb_value rsm_wake_error(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind) {
    if (kind == RS_WAKE_CANCEL) rs_cancellation_met(machine->engine);
    switch (kind) {
    case RS_WAKE_VALUE: return mrb_nil_value();
    case RS_WAKE_TIMEOUT: return rsm_error(mrb, "TimeoutError", "timed out");
    case RS_WAKE_CANCEL: return rsm_error(mrb, "Cancelled", "cancelled: its scope was cancelled or its deadline passed");
    case RS_WAKE_INTERRUPT: return take_interrupt(mrb, machine);
    case RS_WAKE_NO_MEMORY: break;
    }
    return mrb_obj_value(mrb->nomem_err);
}

void rsm_raise_wake(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind) {
    if (RS_UNLIKELY(kind != RS_WAKE_VALUE)) mrb_exc_raise(mrb, rsm_wake_error(mrb, machine, kind));
}

void rsm_raise_result(mrb_state *mrb, rsm_machine *machine, mrb_value error) {
    bool terminated = mrb_obj_is_kind_of(mrb, error, machine->terminated_class);
    if (terminated && rs_refusal(machine->engine, 0) == RS_WAKE_CANCEL) rsm_raise_wake(mrb, machine, RS_WAKE_CANCEL);
    mrb_exc_raise(mrb, error);
}
