/* select_sources: evaluations and strands as what selectors wait for. Their results stay there for others. */
#include "evaluation.h"
#include "binding/sync/select.h"

bool rsb_is_evaluation(VALUE object) { return RTEST(rb_obj_is_kind_of(object, rsb_cEvaluation)); }

rs_source *rsb_evaluation_source(VALUE self) {
    rsb_evaluation *evaluation = rsb_evaluation_data(self);
    if (evaluation->state == RSB_CONCLUDED) return NULL; /* its machine may be any */
    rsb_evaluation_machine(evaluation);
    if (evaluation->state == RSB_OF_STRAND) rb_raise(rsb_eUsage, "the evaluation of a strand is never concluded; give the strand");
    if (!evaluation->watched) {
        evaluation->watched = rsb_alloc(sizeof(rs_source));
        *evaluation->watched = (rs_source){0};
    }
    return evaluation->watched;
}

bool rsb_evaluation_look(VALUE self, VALUE *result) {
    rsb_evaluation *evaluation = rsb_evaluation_data(self);
    if (evaluation->state != RSB_CONCLUDED) rsb_evaluation_machine(evaluation);
    *result = evaluation->result;
    return evaluation->state == RSB_CONCLUDED;
}

static VALUE result_protected(VALUE self) {
    rsb_strand *strand = rsb_strand_data(self);
    return rsb_strand_result(rsb_machine_any_thread(strand->machine), strand);
}

rs_source *rsb_strand_source(VALUE self) {
    rsb_strand *strand = rsb_strand_data(self);
    if (strand->done) return NULL;
    rsb_machine *machine = rsb_machine_of(strand->machine);
    rs_strand *engine = rs_strand_find(&machine->engine.strands, strand->id);
    if (!engine) rb_raise(rsb_eTerminated, "that strand runs in the parent process; it did not come along with the fork");
    if (engine == rs_running(&machine->engine)) rb_raise(rsb_eUsage, "a strand cannot wait for its own end");
    return &engine->watched;
}

/* What it ended with, an error as an object. */
bool rsb_strand_look(VALUE self, VALUE *result) {
    int state = 0;
    rsb_strand *strand = rsb_strand_data(self);
    if (RS_UNLIKELY(!strand->done)) return rsb_strand_source(self), false; /* which raises for one that has stayed in the parent */
    *result = rb_protect(result_protected, self, &state);
    if (!state) return true;
    *result = rb_errinfo();
    if (!rsb_is_exception(*result)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    return true;
}
