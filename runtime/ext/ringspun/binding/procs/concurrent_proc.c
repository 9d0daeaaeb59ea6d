/* concurrent_proc: Ringspun::ConcurrentProc: the class of its evaluations, and its error handlers. */
#include "evaluation.h"

VALUE rsb_cConcurrentProc;
static ID id_evaluation_class, id_trigger;
static VALUE sym_error, security_error;

/* The instance variable is set if the proc has another class of evaluations than its own class says. */
VALUE rsb_evaluation_class(VALUE proc) {
    VALUE class = rb_ivar_count(proc) > 0 ? rb_attr_get(proc, id_evaluation_class) : Qnil;
    if (!NIL_P(class)) return class;
    if (RS_LIKELY(rb_class_of(proc) == rsb_cConcurrentProc)) return rsb_cEvaluation;
    return rb_funcall(rb_obj_class(proc), id_evaluation_class, 0);
}

static VALUE proc_set_evaluation_class(VALUE self, VALUE class) {
    if (!RB_TYPE_P(class, T_CLASS) || !RTEST(rb_class_inherited_p(class, rsb_cEvaluation))) {
        rb_raise(rsb_eUsage, "expected a subclass of Ringspun::Evaluation, got %" PRIsVALUE, rsb_inspect(class));
    }
    return rb_ivar_set(self, id_evaluation_class, class);
}

bool rsb_is_rescueable(VALUE error) {
    return rb_obj_is_kind_of(error, rb_eStandardError) || rb_obj_is_kind_of(error, rb_eScriptError) ||
           rb_obj_is_kind_of(error, security_error) || rb_obj_is_kind_of(error, rb_eSysStackError);
}

static VALUE trigger(VALUE pair) {
    return rb_funcall(RARRAY_AREF(pair, 0), id_trigger, 2, sym_error, RARRAY_AREF(pair, 1));
}

/* Whether this ends no more than the handler that raised it. */
static bool is_handlers_own(VALUE error) {
    return rsb_is_rescueable(error) || rb_obj_is_kind_of(error, rb_eNoMemError) || rb_obj_is_kind_of(error, rsb_eCancelled);
}

static VALUE warn_of(VALUE failed) {
    rb_warn("ringspun: an error handler failed with %" PRIsVALUE, rsb_inspect(failed));
    return Qnil;
}

/* False: it has raised what ends more than a handler, in rb_errinfo. */
static bool forget(void) {
    VALUE error = rb_errinfo();
    if (!rsb_is_exception(error) || !is_handlers_own(error)) return false;
    rb_set_errinfo(Qnil);
    return true;
}

/* An error of a handler is a warning, so that it does not replace the error that was handled. What ends more than a handler (exit,
 * an interrupt, throw, Thread#kill) stays in rb_errinfo, and its state is returned. Where there is neither stack nor a reader for
 * a warning there is none: the caller still has to close its frame. */
int rsb_trigger_error(VALUE proc, VALUE error) {
    int state = 0;
    rb_protect(trigger, rb_assoc_new(proc, error), &state);
    if (RS_LIKELY(!state)) return 0;
    VALUE failed = rb_errinfo();
    if (!forget()) return state;
    rb_protect(warn_of, failed, &state);
    return state && !forget() ? state : 0;
}

void rsb_init_concurrent_proc(void) {
    id_evaluation_class = rb_intern("evaluation_class");
    id_trigger = rb_intern("trigger");
    sym_error = ID2SYM(rb_intern("error"));
    security_error = rb_path2class("SecurityError");
    rb_gc_register_mark_object(security_error);
    rsb_cConcurrentProc = rb_define_class_under(rsb_mRingspun, "ConcurrentProc", rb_cProc);
    rb_define_private_method(rsb_cConcurrentProc, "evaluation_class=", proc_set_evaluation_class, 1);
}
