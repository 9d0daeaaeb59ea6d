/* scope_concurrently: Scope#concurrently, for concurrent procs that belong to a scope. */
#include "evaluation.h"

/* Starts the block as a concurrent proc that belongs to this scope. The scope waits for it. Its error cancels the scope, which
 * raises it.
 *
 * @param arguments [Array<Object>] for the block
 * @return [Evaluation]
 * @raise [ClosedError] when the scope has ended
 * @since 0.1.0 */
static VALUE scope_concurrently(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine;
    rsb_scope *scope = rsb_scope_get_open(self, &machine);
    rsb_need_block("Scope#concurrently");
    int keywords = rb_keyword_given_p();
    VALUE proc = rb_funcall_with_block(rsb_cConcurrentProc, rb_intern("new"), 0, NULL, rb_block_proc());
    rsb_start start = rsb_start_of(machine, proc, argc, argv, Qnil, keywords);
    VALUE evaluation = start.evaluation = rsb_evaluation_new(machine, proc, rsb_cEvaluation, RS_EVALUATION_STARTS);
    rsb_start_in_scope(machine, &scope->engine, self, &start);
    return evaluation;
}

void rsb_init_scope_concurrently(void) { rb_define_method(rsb_cScope, "concurrently", scope_concurrently, -1); }
