/* evaluation: Ringspun::Evaluation as an object: its memory, its machine, and what all its methods share. */
#include "evaluation.h"

VALUE rsb_cEvaluation, rsb_eEvaluation;
static ID id_error_read;

static void evaluation_mark(void *data) {
    rsb_evaluation *evaluation = data;
    rb_gc_mark(evaluation->machine);
    rb_gc_mark(evaluation->proc);
    rb_gc_mark(evaluation->strand);
    rb_gc_mark(evaluation->engine.result);
    rb_gc_mark(evaluation->data);
}

/* The struct is embedded in the object. */
static void evaluation_free(void *data) { rs_evaluation_free(&((rsb_evaluation *)data)->engine); }

/* Strands that wait for it have it on their stacks, so it does not move while they are in its lists. */
static const rb_data_type_t evaluation_type = {
    .wrap_struct_name = "Ringspun::Evaluation",
    .function = {.dmark = evaluation_mark, .dfree = evaluation_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_EMBEDDABLE,
};

bool rsb_is_evaluation(VALUE object) {
    return RB_TYPE_P(object, T_DATA) && RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object) == &evaluation_type;
}

rsb_evaluation *rsb_evaluation_get(VALUE object) {
    if (RS_UNLIKELY(!rsb_is_evaluation(object))) {
        rb_raise(rsb_eUsage, "expected a Ringspun::Evaluation, got %" PRIsVALUE, rb_obj_class(object));
    }
    return rsb_evaluation_data(object);
}

bool rsb_is_of_strand(const rsb_evaluation *evaluation) { return evaluation->engine.state == RS_EVALUATION_OF_STRAND; }

VALUE rsb_evaluation_initialize(VALUE self) {
    if (RS_UNLIKELY(rb_obj_class(self) != rsb_cEvaluation)) rb_obj_call_init(self, 0, NULL);
    return self;
}

VALUE rsb_evaluation_make(rsb_machine *machine, VALUE proc, VALUE class, rs_evaluation_state state) {
    rsb_evaluation *evaluation;
    VALUE self = TypedData_Make_Struct(class, rsb_evaluation, &evaluation_type, evaluation);
    rs_evaluation_init(&evaluation->engine, state);
    evaluation->machine = machine->self;
    evaluation->proc = proc;
    evaluation->strand = evaluation->data = Qnil;
    evaluation->fork_count = machine->fork_count;
    return self;
}

VALUE rsb_evaluation_new(rsb_machine *machine, VALUE proc, VALUE class, rs_evaluation_state state) {
    return rsb_evaluation_initialize(rsb_evaluation_make(machine, proc, class, state));
}

/* A forked child has only the strand that has forked. */
static VALUE left_behind(void) {
    return rb_exc_new_cstr(rsb_eTerminated, "that evaluation runs in the parent process; it did not come along with the fork");
}

rsb_machine *rsb_evaluation_machine(rsb_evaluation *evaluation) {
    rsb_machine *machine = rsb_machine_of(evaluation->machine);
    if (RS_UNLIKELY(evaluation->fork_count != machine->fork_count)) {
        bool here = evaluation->frame && rsb_frame_is_of(evaluation->frame, rsb_running(machine));
        bool strand_here = rsb_is_of_strand(evaluation) && rsb_is_alive(rsb_strand_get(evaluation->strand));
        bool lost = !here && !strand_here && !rs_is_concluded(&evaluation->engine);
        rs_evaluation_forked(&evaluation->engine, lost, lost ? left_behind() : 0);
        evaluation->fork_count = machine->fork_count;
        if (!here) evaluation->frame = NULL;
    }
    return machine;
}

void rsb_evaluation_read(VALUE self) {
    if (RS_LIKELY(RBASIC_CLASS(self) == rsb_cEvaluation)) return;
    const rs_evaluation *engine = &rsb_evaluation_data(self)->engine;
    if (rs_is_concluded(engine) && rsb_is_exception(engine->result)) rb_check_funcall(self, id_error_read, 0, NULL);
}

/* @return [ConcurrentProc, nil] the proc whose run it is; nil for the evaluation of a strand
 * @since 0.1.0 */
static VALUE evaluation_proc(VALUE self) { return rsb_evaluation_get(self)->proc; }

void rsb_init_evaluation(void) {
    id_error_read = rb_intern("error_read");
    rsb_cEvaluation = rb_define_class_under(rsb_mRingspun, "Evaluation", rb_cObject);
    rb_undef_alloc_func(rsb_cEvaluation);
    rsb_eEvaluation = rb_define_class_under(rsb_cEvaluation, "Error", rsb_eError);
    VALUE timeout_error = rb_define_class_under(rsb_cEvaluation, "TimeoutError", rsb_eEvaluation);
    (void)timeout_error; /* YARD finds a class by the variable that it is assigned to */
    rb_define_const(rsb_cEvaluation, "Cancelled", rsb_eCancelled);
    rb_define_method(rsb_cEvaluation, "initialize_copy", rsb_refuse_copy, 1);
    rb_define_method(rsb_cEvaluation, "proc", evaluation_proc, 0);
}
