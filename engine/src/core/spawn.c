/* spawn: how strands begin and end. */
#include "core/run.h"

/* Of each strand for the end of its wait, of each open scope for its deadline, and for the reminder. */
bool rs_reserve_timer(rs_machine *machine) {
    RS_CHECK(machine->timers.len < rs_strands_live(&machine->strands) + machine->scopes_open + 2);
    return rs_timers_reserve(&machine->timers, rs_strands_live(&machine->strands) + machine->scopes_open + 2);
}

static rs_strand *make_strand(rs_machine *machine, rs_scope *scope, void *user) {
    if (!rs_reserve_timer(machine)) return NULL;
    rs_strand *strand = rs_strand_take(&machine->strands);
    if (!strand) return NULL;
    RS_CHECK(!scope || !scope->closed);
    RS_CHECK(rs_links_empty(&strand->open_scopes) && strand->joiners.len == 0 && strand->locks == 0);
    strand->user = user;
    rs_scope_attach(&strand->own, scope, strand->index);
    strand->scope = &strand->own;
    strand->own.armed = !scope || scope->armed; /* it has no deadline itself */
    if (scope) scope->live++;
    machine->metrics.strands_spawned++;
    rs_trace_if(machine, RS_TRACE_SPAWN, rs_strand_id(strand), 0);
    return strand;
}

rs_strand *rs_spawn(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push(&machine->strands, strand);
    return strand;
}

rs_strand *rs_spawn_next(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push_front(&machine->strands, strand);
    return strand;
}

rs_strand *rs_spawn_behind_front(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push_behind_front(&machine->strands, strand);
    return strand;
}

rs_strand *rs_spawn_in_place(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (strand) rs_run_push_front_of_others(&machine->strands, strand);
    return strand;
}

static void end_holder(rs_machine *machine, const rs_strand *strand) {
    RS_EACH_PART(machine, part) {
        if (part->holder_ends) part->holder_ends(machine, strand);
    }
}

void rs_finish(rs_machine *machine) {
    rs_strand *strand = rs_runs(machine);
    RS_CHECK(strand->state == RS_STRAND_RUNNING);
    if (RS_UNLIKELY(strand->locks > 0)) end_holder(machine, strand);
    rs_scope_close_all(machine, strand);
    RS_CHECK(strand->scope == &strand->own && strand->shield_depth == 0 && strand->stacked == 0);
    rs_trace_if(machine, RS_TRACE_FINISH, rs_strand_id(strand), 0);
    rs_scope *scope = strand->own.parent;
    rs_scope_detach(machine, &strand->own);
    if (RS_UNLIKELY(rs_source_is_watched(&strand->watched))) {
        rs_source_ready(&strand->watched);
        rs_source_drop(&strand->watched);
    }
    if (strand->joiners.len > 0) rs_list_wake_all(machine, &strand->joiners, 0);
    if (scope) {
        RS_CHECK(!scope->closed);
        RS_CHECK(scope->live > 0);
        if (--scope->live == 0) rs_list_wake_all(machine, &scope->waiters, 0);
    }
    RS_ASSERT(rs_links_empty(&strand->own.children) && strand->joiners.len == 0 && rs_links_empty(&strand->open_scopes));
    machine->running = RS_NO_INDEX;
    rs_strand_release(&machine->strands, strand);
}

rs_strand *rs_spawn_first(rs_machine *machine, rs_scope *scope, void *user) {
    rs_strand *strand = make_strand(machine, scope, user);
    if (!strand) return NULL;
    rs_yield_in_front(machine);
    rs_run_now(machine, strand);
    return strand;
}
