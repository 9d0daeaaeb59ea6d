/* open_scope: the data of a scope, and how a scope is opened and closed: its memory may lie on the stack of a fiber. */
#include "inner.h"

VALUE rsb_cScope;

static void scope_mark(void *data) {
    rsb_scope *scope = data;
    rb_gc_mark(scope->machine);
    rb_gc_mark(scope->first_error);
    rb_gc_mark(scope->suppressed);
    rb_gc_mark(scope->foreign);
    rb_gc_mark(scope->deadline);
    rb_gc_mark(scope->on_error);
}

/* Not RUBY_TYPED_EMBEDDABLE: the engine keeps the struct's address. */
static const rb_data_type_t scope_type = {
    .wrap_struct_name = "Ringspun::Scope",
    .function = {.dmark = scope_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

VALUE rsb_scope_new(rsb_scope **scope) {
    VALUE self = TypedData_Make_Struct(rsb_cScope, rsb_scope, &scope_type, *scope);
    (*scope)->self = self;
    return self;
}

/* --- where a scope's memory lies --- */

RSB_APART void rsb_keep_fiber(rsb_strand *strand, VALUE fiber) {
    if (NIL_P(strand->scope_fibers)) strand->scope_fibers = rb_ary_new();
    rb_ary_push(strand->scope_fibers, fiber);
}

RSB_APART void rsb_let_fiber_go(rsb_strand *strand, VALUE fiber) {
    if (NIL_P(strand->scope_fibers)) return;
    for (long i = RARRAY_LEN(strand->scope_fibers); i-- > 0;) {
        if (RARRAY_AREF(strand->scope_fibers, i) != fiber) continue;
        rb_ary_delete_at(strand->scope_fibers, i);
        return;
    }
}

void rsb_scope_open(rsb_machine *machine, rs_scope *scope, int64_t deadline_ns, bool shield) {
    rsb_strand *strand = rsb_running(machine);
    VALUE fiber = rb_fiber_current();
    if (RS_UNLIKELY(!rs_reserve_timer(machine->engine))) rsb_fail_memory();
    if (RS_UNLIKELY(fiber != strand->home)) rsb_keep_fiber(strand, fiber);
    rs_scope_open(machine->engine, scope, deadline_ns, shield);
}

/* scope_fibers has one entry per open scope. A fiber that closes one of its scopes removes any one of its entries. */
void rsb_scope_close(rsb_machine *machine, rs_scope *scope) {
    if (scope->closed) return;
    rsb_strand *owner = rs_strand_user(rs_strand_at(rs_strands_of(machine->engine), scope->owner));
    rs_scope_close(machine->engine, scope);
    if (RS_UNLIKELY(!NIL_P(owner->scope_fibers))) rsb_let_fiber_go(owner, rb_fiber_current());
}

rsb_scope *rsb_scope_data(VALUE self) {
    rsb_scope *scope;
    TypedData_Get_Struct(self, rsb_scope, &scope_type, scope);
    return scope;
}

NORETURN(static void raise_ended(const rsb_scope *scope));
static void raise_ended(const rsb_scope *scope) {
    if (scope->open && scope->fork_count != rsb_forks) {
        rb_raise(rsb_eClosed, "this scope belongs to a strand of the parent process; open one of this process's own");
    }
    rb_raise(rsb_eClosed, "this scope has ended; strands and deadlines belong inside its block");
}

rsb_scope *rsb_scope_get_open(VALUE self, rsb_machine **machine) {
    rsb_scope *scope = rsb_scope_data(self);
    if (!scope->open || scope->engine.closed) raise_ended(scope);
    *machine = rsb_machine_of(scope->machine);
    if (RS_UNLIKELY(scope->engine.closed)) raise_ended(scope); /* rsb_machine_of has just noticed a fork */
    return scope;
}

void rsb_init_open_scope(void) {
    rsb_cScope = rb_define_class_under(rsb_mRingspun, "Scope", rb_cObject);
    rb_undef_alloc_func(rsb_cScope);
}
