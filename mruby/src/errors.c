/* errors: the classes of errors, and what ends a wait without a value. */
#include "binding.h"

#include <mruby/error.h>
#include <mruby/string.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct RClass *rsm_class(mrb_state *mrb, const char *name) {
    return mrb_class_get_under(mrb, mrb_module_get(mrb, "Ringspun"), name);
}

mrb_value rsm_error(mrb_state *mrb, const char *class, const char *message) {
    return mrb_exc_new_str(mrb, rsm_class(mrb, class), mrb_str_new_static(mrb, message, strlen(message)));
}

void rsm_deliver(mrb_state *mrb, rsm_machine *machine, rs_strand *engine, mrb_value error, bool first) {
    rsm_strand *strand = engine->user;
    if (!mrb_array_p(strand->raises)) {
        strand->raises = mrb_ary_new(mrb);
        mrb_gc_register(mrb, strand->raises);
    }
    mrb_ary_push(mrb, strand->raises, error);
    if (first) rs_interrupt_first(&machine->engine, engine);
    else rs_interrupt(&machine->engine, engine);
}

static void taken(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand) {
    rs_take_interrupt(rs_running(&machine->engine));
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
    if (kind == RS_WAKE_CANCEL) rs_cancellation_met(&machine->engine);
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

int64_t rsm_int_arg(mrb_state *mrb, mrb_value value, int64_t min, int64_t max, const char *what) {
    bool fits = mrb_integer_p(value) && mrb_integer(value) >= min && mrb_integer(value) <= max;
    if (RS_LIKELY(fits)) return mrb_integer(value);
    char limits[64];
    snprintf(limits, sizeof(limits), max < MRB_INT_MAX ? "%" PRId64 " to %" PRId64 : "%" PRId64 " or more", min, max);
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: expected an Integer, %s, got %v", what, limits, mrb_inspect(mrb, value));
    return 0;
}

void rsm_check_string(mrb_state *mrb, mrb_value value, const char *what) {
    if (RS_LIKELY(mrb_string_p(value))) return;
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: expected a String, got %v", what, mrb_inspect(mrb, value));
}

mrb_value rsm_only_arg(mrb_state *mrb) {
    mrb_value value;
    mrb_get_args(mrb, "o", &value);
    return value;
}

mrb_value rsm_block_arg(mrb_state *mrb, const char *method) {
    mrb_value block;
    mrb_get_args(mrb, "&", &block);
    if (RS_UNLIKELY(mrb_nil_p(block))) mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s needs a block", method);
    return block;
}

/* --- errors of the system --- */

/* mruby-errno gives it the class of the number. */
static mrb_value system_error(mrb_state *mrb, int number, mrb_value what) {
    struct RClass *class = rsm_class(mrb, "SystemCallError");
    if (mrb_class_defined(mrb, "SystemCallError")) {
        return mrb_obj_new(mrb, class, 2, (mrb_value[]){what, mrb_fixnum_value(number)});
    }
    mrb_value error = mrb_exc_new_str(mrb, class, mrb_format(mrb, "%s - %v", strerror(number), what));
    mrb_iv_set(mrb, error, mrb_intern_lit(mrb, "errno"), mrb_fixnum_value(number));
    return error;
}

/* "connect to 127.0.0.1:1", "open /tmp/file". */
static mrb_value described(mrb_state *mrb, const rs_request *request) {
    const char *name = rs_request_traits(request)->name;
    switch (request->kind) {
    case RS_OP_OPEN: return mrb_format(mrb, "%s %s", name, request->open.path);
    case RS_OP_UNLINK: return mrb_format(mrb, "%s %s", name, request->path.path);
    case RS_OP_CONNECT:
    case RS_OP_BIND: return mrb_format(mrb, "%s to %v", name, rsm_address_text(mrb, request->address.bytes, request->address.len));
    default: return mrb_str_new_cstr(mrb, name);
    }
}

/* How it was opened, if it is open; negative: it is not. */
static int mode_of(const rsm_machine *machine, int fd) {
    return rs_is_simulated(&machine->engine) ? rs_sim_mode(&machine->engine, fd) : fcntl(fd, F_GETFL);
}

/* The method that runs is one of an IO. */
static bool is_io(mrb_state *mrb, mrb_value self) {
    return mrb_class_defined(mrb, "IO") && mrb_obj_is_kind_of(mrb, self, mrb_class_get(mrb, "IO"));
}

void rsm_fail_closed(mrb_state *mrb, const rs_request *request) {
    if (is_io(mrb, mrb->c->ci->stack[0])) mrb_raise(mrb, mrb_class_get(mrb, "IOError"), "stream closed in another strand");
    const char *what = rs_request_traits(request)->name;
    mrb_raisef(mrb, rsm_class(mrb, "ClosedError"), "%s: descriptor %d is not open any more", what, request->fd);
}

static mrb_noreturn void refuse_descriptor(mrb_state *mrb, rsm_machine *machine, const rs_request *request, const char *what) {
    int fd = request->fd, mode = rs_descriptor_is_closing(machine->engine.descriptors, fd) ? -1 : mode_of(machine, fd);
    if (mode < 0) rsm_fail_closed(mrb, request);
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: descriptor %d is open for %s only", what, fd,
               (mode & O_ACCMODE) == O_WRONLY ? "writing" : "reading");
}

void rsm_fail(mrb_state *mrb, rsm_machine *machine, int64_t result, const rs_request *request) {
    const char *what = rs_request_traits(request)->name;
    switch (result) {
    case RS_NO_MEMORY: mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    case RS_LOST: mrb_raisef(mrb, rsm_class(mrb, "UnsupportedError"), "%s: %s", what, machine->engine.refusal_text);
    case -EBADF: refuse_descriptor(mrb, machine, request, what);
    case -ENOTSOCK:
    case -EOPNOTSUPP: mrb_raisef(mrb, rsm_class(mrb, "UnsupportedError"), "%s: not supported on descriptor %d", what, request->fd);
    default: mrb_exc_raise(mrb, system_error(mrb, (int)-result, described(mrb, request)));
    }
}

static mrb_value error_errno(mrb_state *mrb, mrb_value self) { return mrb_iv_get(mrb, self, mrb_intern_lit(mrb, "errno")); }

/* The class of that name that a gem of mruby's brings, or one of ours. */
static void adopt_error(mrb_state *mrb, struct RClass *module, struct RClass *error, const char *name) {
    if (mrb_class_defined(mrb, name)) {
        mrb_define_const(mrb, module, name, mrb_obj_value(mrb_class_get(mrb, name)));
        return;
    }
    struct RClass *ours = mrb_define_class_under(mrb, module, name, error);
    mrb_define_method(mrb, ours, "errno", error_errno, MRB_ARGS_NONE());
}

static mrb_value module_warn(mrb_state *mrb, mrb_value self) {
    mrb_value text = mrb_get_arg1(mrb);
    fprintf(stderr, "ringspun: %.*s\n", (int)RSTRING_LEN(text), RSTRING_PTR(text));
    return mrb_nil_value();
}

void rsm_init_errors(mrb_state *mrb, struct RClass *module) {
    struct RClass *error = mrb_define_class_under(mrb, module, "Error", mrb->eStandardError_class);
    static const char *const names[] = {"UsageError", "TimeoutError", "ClosedError", "DeadlockError", "LimitError",
                                        "TerminatedError", "UnsupportedError", "EndOfStreamError"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) mrb_define_class_under(mrb, module, names[i], error);
    mrb_define_module_function(mrb, module, "__warn", module_warn, MRB_ARGS_REQ(1));
    adopt_error(mrb, module, error, "SystemCallError");
    adopt_error(mrb, module, error, "SocketError");
    mrb_define_class_under(mrb, module, "Cancelled", mrb->eException_class);
}
