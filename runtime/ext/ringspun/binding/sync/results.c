/* results: the kinds of sources that have a result. Other rooms register theirs; strands are registered here. */
#include "select.h"

static const rsb_result_kind *kinds;

void rsb_register_result(rsb_result_kind *kind) {
    kind->next = kinds;
    kinds = kind;
}

const rsb_result_kind *rsb_result_kind_of(VALUE object) {
    const rsb_result_kind *kind = kinds;
    while (kind && !kind->is(object)) kind = kind->next;
    return kind;
}

/* --- strands --- */

static VALUE result_protected(VALUE self) {
    rsb_strand *strand = rsb_strand_data(self);
    return rsb_strand_result(rsb_machine_any_thread(strand->machine), strand);
}

static rs_source *strand_source(VALUE self) {
    rsb_strand *strand = rsb_strand_data(self);
    if (strand->done) return NULL;
    rsb_machine *machine = rsb_machine_of(strand->machine);
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), strand->id);
    if (!engine) rb_raise(rsb_eTerminated, "that strand runs in the parent process; it did not come along with the fork");
    if (engine == rs_running(machine->engine)) rb_raise(rsb_eUsage, "a strand cannot wait for its own end");
    return rs_strand_watched(engine);
}

/* The strand's value, or its error as an object. */
static bool strand_look(VALUE self, VALUE *result) {
    int state = 0;
    rsb_strand *strand = rsb_strand_data(self);
    if (RS_UNLIKELY(!strand->done)) return strand_source(self), false; /* raises for a strand of the parent process */
    *result = rb_protect(result_protected, self, &state);
    if (!state) return true;
    *result = rb_errinfo();
    if (!rsb_is_exception(*result)) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
    return true;
}

static rsb_result_kind strands = {.is = rsb_is_strand, .source = strand_source, .look = strand_look};

void rsb_init_results(void) { rsb_register_result(&strands); }
