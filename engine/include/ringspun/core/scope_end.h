/* scope_end: how a scope ends that runs a block of its owner and has strands in it. Owned by the machine's thread. Zeroed memory is one
 * whose block runs.
 *
 * In order. Its block ends (rs_scope_block_ended); if it did not return, the children are cancelled. The owner waits for the children
 * (rs_scope_end_waits) in `scope.waiters`; once something has ended that wait, the children are cancelled, and it waits shielded. Then the
 * scope closes, and says by what it ends (rs_scope_ends_by). The first error of the block or of a child cancels all, and is raised; the
 * driver keeps it. Only the scope that was cancelled absorbs its cancellation. A cancellation that came from no scope around passes
 * through: the program has raised it, or the block ran as part of another strand.
 */
#ifndef RINGSPUN_SCOPE_END_H
#define RINGSPUN_SCOPE_END_H

#include "ringspun/core/machine.h"

typedef struct {
    rs_wake_kind interrupted;   /* what has ended a wait for the children before its time; VALUE: nothing */
    bool cancelled;             /* the block, or that wait, ended by a cancellation */
    bool foreign;               /* the block ended by a cancellation that was not this scope's */
    bool cut_children;          /* a child ended by a cancellation */
    bool answers;               /* that cancellation was this scope's own (rs_scope_answers) */
} rs_scope_end;

/* FAILED: with an error, or left by a jump. */
typedef enum { RS_BLOCK_RETURNED, RS_BLOCK_FAILED, RS_BLOCK_CANCELLED } rs_block_end;

/* VALUE: that of the block. CANCELLED: without one. ABOVE: a scope above is cancelled, and goes on with that. */
typedef enum { RS_ENDS_BY_VALUE, RS_ENDS_BY_ERROR, RS_ENDS_BY_FOREIGN, RS_ENDS_BY_DEADLINE, RS_ENDS_BY_ABOVE,
               RS_ENDS_CANCELLED } rs_scope_ends;

/* A strand of the scope has ended. True: with an error that is the scope's. False: with none, or the scope had ended before. */
bool rs_scope_child_ended(rs_machine *machine, rs_scope *scope, rs_scope_end *end, bool cancelled, bool failed);

void rs_scope_block_ended(rs_machine *machine, rs_scope *scope, rs_scope_end *end, rs_block_end how);

/* Whether the owner is to wait for children, with those flags of rs_park_begin; and how a wait of it has ended. */
static inline bool rs_scope_end_waits(const rs_scope *scope, const rs_scope_end *end, uint32_t *flags) {
    *flags = end->interrupted == RS_WAKE_VALUE ? 0 : RS_PARK_SHIELDED;
    return scope->live > 0;
}
void rs_scope_end_waited(rs_machine *machine, rs_scope *scope, rs_scope_end *end, rs_wake_kind kind);

/* Before the scope is closed. */
static inline void rs_scope_closes(const rs_scope *scope, rs_scope_end *end) { end->answers = rs_scope_answers(scope); }

rs_scope_ends rs_scope_ends_by(const rs_scope *scope, const rs_scope_end *end, bool has_error);

#endif
