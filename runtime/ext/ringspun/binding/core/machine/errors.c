/* errors: the module Ringspun and the tree of Ringspun::Error. */
#include "inner.h"

VALUE rsb_mRingspun;
VALUE rsb_eError, rsb_eUsage, rsb_eClosed, rsb_eWrongThread, rsb_eTimeout, rsb_eLimit, rsb_eDeadlock, rsb_eTerminated,
    rsb_eCancelled, rsb_eUnsupported;

VALUE rsb_error(VALUE class, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    VALUE message = rb_vsprintf(format, arguments);
    va_end(arguments);
    return rb_exc_new_str(class, message);
}

/* exit, a signal, and most other errors that are no StandardError end the program and not just the strand. */
bool rsb_concerns_root(VALUE error) {
    return !rb_obj_is_kind_of(error, rb_eStandardError) && !rb_obj_is_kind_of(error, rb_eScriptError) &&
           !rb_obj_is_kind_of(error, rb_eNoMemError) && !rb_obj_is_kind_of(error, rb_eSysStackError);
}

void rsb_suppress(VALUE error, VALUE others) { rb_funcall(rsb_mRingspun, rb_intern("suppress"), 2, error, others); }

void rsb_init_errors(void) {
    rsb_mRingspun = rb_define_module("Ringspun");
    rsb_eError = rb_define_class_under(rsb_mRingspun, "Error", rb_eStandardError);
    rsb_eUsage = rb_define_class_under(rsb_mRingspun, "UsageError", rsb_eError);
    rsb_eClosed = rb_define_class_under(rsb_mRingspun, "ClosedError", rsb_eError);
    rsb_eWrongThread = rb_define_class_under(rsb_mRingspun, "WrongThreadError", rsb_eUsage);
    rsb_eTimeout = rb_define_class_under(rsb_mRingspun, "TimeoutError", rsb_eError);
    rsb_eLimit = rb_define_class_under(rsb_mRingspun, "LimitError", rsb_eError);
    rsb_eDeadlock = rb_define_class_under(rsb_mRingspun, "DeadlockError", rsb_eError);
    rsb_eTerminated = rb_define_class_under(rsb_mRingspun, "TerminatedError", rsb_eError);
    rsb_eUnsupported = rb_define_class_under(rsb_mRingspun, "UnsupportedError", rsb_eError);
    /* Not a StandardError: a `rescue => error` between a wait and its scope must not swallow a cancellation. */
    rsb_eCancelled = rb_define_class_under(rsb_mRingspun, "Cancelled", rb_eException);
}
