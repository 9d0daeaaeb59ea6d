/* inner: what the rooms of core share of this one, and no room above core uses. */
#ifndef RINGSPUN_BINDING_CORE_SCOPE_INNER_H
#define RINGSPUN_BINDING_CORE_SCOPE_INNER_H

#include "binding/core/strand/inner.h"
#include "scope.h"

/* --- open_scope.c --- */

rsb_scope *rsb_scope_data(VALUE self);
VALUE rsb_scope_new(rsb_scope **scope);

/* The scope may lie on the stack of the running fiber, which is kept alive until the scope is closed. */
void rsb_scope_open(rsb_machine *machine, rs_scope *scope, int64_t deadline_ns, bool shield);
void rsb_scope_close(rsb_machine *machine, rs_scope *scope);

/* --- run.c --- */

/* The supervisor of strands in that run: the scope of a run inside another, else nil. It is not told of their errors. */
VALUE rsb_supervisor_of_run(const rsb_machine *machine, const rs_scope *run);
/* Whether that supervisor is such a run; and its `on_error:`, or nil. */
bool rsb_is_run(VALUE scope);
VALUE rsb_run_on_error(VALUE scope);

/* --- unread.c --- */

void rsb_unread_open(rsb_machine *machine);
/* The strand ended with an error that nobody has read. `awaited`: another strand waits for it, but may end before it reads the
 * error. `held`: the program may have its handle, and join it. */
void rsb_unread_keep(rsb_machine *machine, rsb_strand *strand, bool awaited, bool held);
/* Reports an error at once, to a scope's `on_error:`. */
void rsb_unread_report(rsb_machine *machine, VALUE strand, VALUE error, VALUE handler);
void rsb_unread_read(rsb_machine *machine, VALUE strand);
bool rsb_has_unread(const rsb_machine *machine);
/* Whether it is the strand that reports errors. Nobody can join it to read its own; another strand goes on in its place. */
bool rsb_is_reporter(const rsb_machine *machine, const rsb_strand *strand);
void rsb_reporter_failed(rsb_machine *machine);
/* Reports all unread errors of a machine that ends; and those of this ractor's machines whose threads have ended (`all`: of all
 * its machines, at the program's end). Then raises what an `on_error:` has raised that is no StandardError, as by exit. */
VALUE rsb_report_unread(VALUE machine);
void rsb_report_all_unread(bool all);

/* --- join.c --- */

/* Waits for the end of that strand, which has not ended yet. Something else may wake the caller before. */
void rsb_strand_wait_once(rsb_machine *machine, rsb_strand *strand);
/* Its value; raises what it has ended with (rsb_raise_result). */
VALUE rsb_strand_awaited(rsb_machine *machine, rsb_strand *strand);

/* --- several.c --- */

bool rsb_has_awaiters(const rsb_strand *strand);

#endif
