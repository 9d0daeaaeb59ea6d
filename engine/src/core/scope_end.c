#include "ringspun/core/scope_end.h"

bool rs_scope_child_ended(rs_machine *machine, rs_scope *scope, rs_scope_end *end, bool cancelled, bool failed) {
    if (cancelled) end->cut_children = true;
    if (!failed || scope->closed) return false;
    rs_scope_cancel(machine, scope, RS_CANCELLED_BY_CALL);
    return true;
}

void rs_scope_block_ended(rs_machine *machine, rs_scope *scope, rs_scope_end *end, rs_block_end how) {
    RS_CHECK(!end->cancelled && !end->foreign);
    if (how == RS_BLOCK_RETURNED) return;
    end->cancelled = how == RS_BLOCK_CANCELLED && scope->effective;
    end->foreign = how == RS_BLOCK_CANCELLED && !scope->effective;
    rs_scope_cancel(machine, scope, RS_CANCELLED_BY_CALL);
}

void rs_scope_end_waited(rs_machine *machine, rs_scope *scope, rs_scope_end *end, rs_wake_kind kind) {
    if (kind == RS_WAKE_VALUE) return;
    end->interrupted = kind;
    rs_scope_cancel(machine, scope, RS_CANCELLED_BY_CALL);
}

rs_scope_ends rs_scope_ends_by(const rs_scope *scope, const rs_scope_end *end, bool has_error) {
    if (has_error) return RS_ENDS_BY_ERROR;
    if (end->foreign) return RS_ENDS_BY_FOREIGN;
    bool cancelled = end->cancelled || end->interrupted == RS_WAKE_CANCEL;
    bool is_late = scope->cause == RS_CANCELLED_BY_DEADLINE && (cancelled || end->cut_children);
    if (end->answers && is_late) return RS_ENDS_BY_DEADLINE;
    if (!cancelled) return RS_ENDS_BY_VALUE;
    return end->answers ? RS_ENDS_CANCELLED : RS_ENDS_BY_ABOVE;
}
