/* select_sources: lets selectors wait for evaluations. A selector reads the result and leaves it for others. */
#include "evaluation.h"
#include "binding/sync/sync.h"

rs_source *rsb_evaluation_source(rsb_evaluation *evaluation) {
    if (!evaluation->watched) {
        evaluation->watched = rsb_alloc(sizeof(rs_source));
        rs_source_init(evaluation->watched);
    }
    return evaluation->watched;
}

static rs_source *evaluation_source(VALUE self) {
    rsb_evaluation *evaluation = rsb_evaluation_data(self);
    if (evaluation->state == RSB_CONCLUDED) return NULL; /* before rsb_evaluation_machine: any machine may read its result */
    rsb_evaluation_machine(evaluation);
    if (evaluation->state == RSB_OF_STRAND) rb_raise(rsb_eUsage, "the evaluation of a strand is never concluded; give the strand");
    return rsb_evaluation_source(evaluation);
}

static bool evaluation_look(VALUE self, VALUE *result) {
    rsb_evaluation *evaluation = rsb_evaluation_data(self);
    if (evaluation->state != RSB_CONCLUDED) rsb_evaluation_machine(evaluation);
    *result = evaluation->result;
    return evaluation->state == RSB_CONCLUDED;
}

static rsb_result_kind evaluations = {.is = rsb_is_evaluation, .source = evaluation_source, .look = evaluation_look};

void rsb_init_select_sources(void) { rsb_register_result(&evaluations); }
