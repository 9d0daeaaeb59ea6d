#include "ringspun/procs/evaluation.h"

#include <stdlib.h>

static void drop_source(rs_evaluation *evaluation) {
    rs_source_drop(evaluation->watched);
    free(evaluation->watched);
    evaluation->watched = NULL;
}

void rs_evaluation_free(rs_evaluation *evaluation) {
    if (RS_UNLIKELY(evaluation->watched != NULL)) drop_source(evaluation);
}

rs_source *rs_evaluation_source(rs_evaluation *evaluation) {
    RS_CHECK(evaluation->state == RS_EVALUATION_STARTS || evaluation->state == RS_EVALUATION_RUNS);
    if (!evaluation->watched) evaluation->watched = rs_try_alloc(sizeof(rs_source));
    return evaluation->watched;
}

static void wake(rs_machine *machine, rs_evaluation *evaluation) {
    if (evaluation->waiters.len > 0) rs_list_wake_all(machine, &evaluation->waiters, 0);
    if (RS_LIKELY(!evaluation->watched)) return;
    rs_source_ready(evaluation->watched);
    RS_CHECK(rs_is_concluded(evaluation));
    drop_source(evaluation); /* the result never changes, so selectors need it no more */
}

static void set(rs_evaluation *evaluation, uintptr_t result) {
    RS_CHECK(!rs_is_concluded(evaluation));
    evaluation->result = result;
    evaluation->state = RS_EVALUATION_CONCLUDED;
}

void rs_evaluation_conclude(rs_machine *machine, rs_evaluation *evaluation, uintptr_t result) {
    RS_CHECK(evaluation->state != RS_EVALUATION_OF_STRAND);
    if (rs_is_concluded(evaluation)) return;
    set(evaluation, result);
    wake(machine, evaluation);
}

void rs_evaluation_conclude_to(rs_machine *machine, rs_evaluation *evaluation, uintptr_t result, bool unwinds) {
    RS_CHECK(evaluation->state == RS_EVALUATION_RUNS || (evaluation->state == RS_EVALUATION_STARTS && !unwinds));
    set(evaluation, result);
    evaluation->unwinds = unwinds;
    if (!unwinds) wake(machine, evaluation);
}

void rs_evaluation_unwound(rs_machine *machine, rs_evaluation *evaluation) {
    if (RS_LIKELY(!evaluation->unwinds)) return;
    RS_CHECK(evaluation->state == RS_EVALUATION_CONCLUDED);
    evaluation->unwinds = false;
    wake(machine, evaluation);
    rs_list_wake_all_first(machine, &evaluation->unwinders);
}

void rs_evaluation_forked(rs_evaluation *evaluation, bool lost, uintptr_t result) {
    RS_CHECK(!lost || !rs_is_concluded(evaluation));
    rs_list_forget(&evaluation->waiters);
    rs_list_forget(&evaluation->unwinders);
    evaluation->unwinds = false;
    if (lost) set(evaluation, result);
}
