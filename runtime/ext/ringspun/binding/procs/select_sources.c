/* select_sources: lets selectors wait for evaluations. A selector reads the result and leaves it for others. */
#include "evaluation.h"
#include "binding/sync/sync.h"

rs_source *rsb_evaluation_source(rsb_evaluation *evaluation) {
    rs_source *source = rs_evaluation_source(&evaluation->engine);
    if (RS_LIKELY(source != NULL)) return source;
    rsb_collect_for(sizeof(rs_source));
    source = rs_evaluation_source(&evaluation->engine);
    if (!source) rsb_fail_memory();
    return source;
}

static rs_source *evaluation_source(VALUE self) {
    rsb_evaluation *evaluation = rsb_evaluation_data(self);
    if (rs_is_concluded(&evaluation->engine)) return NULL; /* before rsb_evaluation_machine: any machine may read its result */
    rsb_evaluation_machine(evaluation);
    if (evaluation->engine.state == RS_EVALUATION_OF_STRAND) {
        rb_raise(rsb_eUsage, "the evaluation of a strand is never concluded; give the strand");
    }
    return rsb_evaluation_source(evaluation);
}

static bool evaluation_look(VALUE self, VALUE *result) {
    rsb_evaluation *evaluation = rsb_evaluation_data(self);
    if (!rs_is_concluded(&evaluation->engine)) rsb_evaluation_machine(evaluation);
    *result = evaluation->engine.result;
    if (!rs_is_concluded(&evaluation->engine)) return false;
    rsb_evaluation_read(self);
    return true;
}

static rsb_result_kind evaluations = {.is = rsb_is_evaluation, .source = evaluation_source, .look = evaluation_look};

void rsb_init_select_sources(void) { rsb_register_result(&evaluations); }
