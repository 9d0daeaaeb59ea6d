/* strand: Ringspun::Strand, the handle to a strand, and how a strand is made, runs and ends. */
#include "inner.h"

#include <string.h>

VALUE rsb_cStrand;
rsb_supervisors rsb_supervision;
rsb_work rsb_without_block;
static VALUE loaded_features, mIsolation;

/* --- memory --- */

static void strand_mark(void *data) {
    rsb_strand *strand = data;
    rb_gc_mark(strand->machine);
    rb_gc_mark(strand->fiber);
    rb_gc_mark(strand->home);
    rb_gc_mark(strand->scope_fibers);
    rb_gc_mark(strand->body);
    rb_gc_mark(strand->value);
    rb_gc_mark(strand->error);
    rb_gc_mark(strand->raises);
    rb_gc_mark(strand->messages);
    rb_gc_mark(strand->storage);
    rb_gc_mark(strand->supervisor);
    rb_gc_mark(strand->spawned_at);
    rb_gc_mark(strand->blocker);
    if (strand->kill) rb_gc_mark(strand->kill);
    if (strand->hook_error) rb_gc_mark(strand->hook_error); /* pinned: it is compared with the entries of `raises` */
    for (const rsb_part *part = rsb_parts_of_strands; part; part = part->next_of_strands) {
        if (part->mark_strand) part->mark_strand(strand);
    }
}

/* While it runs its machine pins it. One that has ended may move. */
static void strand_compact(void *data) {
    rsb_strand *strand = data;
    strand->self = rb_gc_location(strand->self);
}

static const rb_data_type_t strand_type = {
    .wrap_struct_name = "Ringspun::Strand",
    .function = {.dmark = strand_mark, .dfree = RUBY_DEFAULT_FREE, .dcompact = strand_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_EMBEDDABLE,
};

/* Of memory that is zero. */
static void set_up(rsb_strand *strand, VALUE self, rsb_machine *machine) {
    strand->self = self;
    strand->machine = machine->self;
    strand->fiber = strand->home = strand->scope_fibers = strand->body = strand->value = strand->error = Qnil;
    strand->raises = strand->messages = strand->storage = strand->supervisor = strand->spawned_at = strand->blocker = Qnil;
}

static VALUE allocate(rsb_machine *machine) {
    VALUE object = rb_data_typed_object_zalloc(rsb_cStrand, rsb_strand_bytes, &strand_type);
    set_up(rsb_strand_data(object), object, machine);
    return object;
}

rsb_strand *rsb_strand_get(VALUE object) {
    if (RS_UNLIKELY(!RB_TYPE_P(object, T_DATA) || !RTYPEDDATA_P(object) || RTYPEDDATA_TYPE(object) != &strand_type)) {
        rb_raise(rsb_eUsage, "expected a Ringspun::Strand, got %" PRIsVALUE, rb_obj_class(object));
    }
    return rsb_strand_data(object);
}

/* --- life --- */

VALUE rsb_strand_handle(rsb_machine *machine) { return allocate(machine); }

VALUE rsb_strand_show(rsb_strand *strand) {
    strand->shown = true;
    return strand->self;
}

VALUE rsb_strand_prepare(rsb_machine *machine, VALUE body) {
    VALUE object = allocate(machine);
    rsb_strand *strand = rsb_strand_data(object);
    strand->shown = true;
    strand->body = body;
    return object;
}

/* Active Record may have been loaded since the last strand was spun. Comparing one length is all that this costs a spin
 * otherwise. */
void rsb_notice_features(rsb_machine *machine) {
    long count = RARRAY_LEN(loaded_features);
    if (RS_LIKELY(count == machine->features_seen)) return;
    machine->features_seen = count;
    rb_funcall(mIsolation, rb_intern("watch"), 0);
}

rsb_strand *rsb_strand_make(rsb_machine *machine, VALUE supervisor, VALUE body) {
    rsb_notice_features(machine);
    VALUE object = rsb_strand_prepare(machine, body);
    rsb_strand *strand = rsb_strand_data(object);
    strand->supervisor = supervisor;
    strand->storage = rsb_fiber_storage();
    if (machine->locate) strand->spawned_at = rb_funcall(machine->self, rb_intern("place_of_call"), 0);
    RB_GC_GUARD(object);
    return strand;
}

void rsb_fail_strand_limit(rsb_machine *machine) {
    uint32_t strands_max = rs_options_of(machine->engine)->strands_max;
    if (rs_strands_live(rs_strands_of(machine->engine)) < strands_max) rsb_fail_memory();
    rb_raise(rsb_eLimit, "this machine runs at most %u strands (strands_max:); bound them, for example with a Ringspun::Semaphore",
             strands_max);
}

rs_strand *rsb_strand_spawned(rsb_machine *machine, rsb_strand *strand, rs_strand *engine) {
    if (!engine) rsb_fail_strand_limit(machine);
    strand->id = rs_strand_id(engine);
    rs_strand_awaits_turn(engine);
    return engine;
}

bool rsb_strand_begin_next(rsb_machine *machine, rsb_strand *strand) {
    rs_strand *engine = rs_spawn_next(machine->engine, rsb_outermost_run(machine), strand);
    return engine && rsb_strand_spawned(machine, strand, engine);
}

VALUE rsb_strand_new(rsb_machine *machine, rs_scope *scope, VALUE supervisor, VALUE body) {
    rsb_strand *strand = rsb_strand_make(machine, supervisor, body);
    rsb_strand_spawned(machine, strand, rs_spawn(machine->engine, scope, strand));
    return strand->self;
}

VALUE rsb_strand_root(rsb_machine *machine, const rs_strand *engine) {
    VALUE object = allocate(machine);
    rsb_strand *strand = rsb_strand_get(object);
    strand->started = true;
    strand->id = rs_strand_id(engine);
    return object;
}

RSB_APART static void end_with_error(rsb_machine *machine, rsb_strand *strand, rs_strand *engine, VALUE error) {
    if (rb_obj_is_kind_of(error, rsb_eCancelled)) {
        strand->cancelled = true;
        return;
    }
    strand->error = error;
    if (strand->id == rs_root_id(machine->engine)) {
        machine->child_error = error;
        return;
    }
    rsb_supervision.failed(machine, strand, engine);
}

RSB_APART static void finish(rsb_machine *machine, rs_strand *engine) {
    rsb_strand *strand = rs_strand_user(engine);
    RS_CHECK(!strand->done);
    strand->done = true;
    if (RS_UNLIKELY(strand->tells_end)) RSB_EACH_PART(strand_ends, machine, strand);
    strand->fiber = strand->home = strand->scope_fibers = strand->body = strand->raises = strand->messages = Qnil;
    VALUE scope = strand->supervisor;
    rs_finish(machine->engine);
    if (!NIL_P(scope)) rsb_supervision.child_ended(machine, scope, strand);
}

/* The running strand ends without having run, or cannot go on. */
void rsb_strand_fail(rsb_machine *machine, rs_strand *engine, VALUE error) {
    rsb_strand *strand = rs_strand_user(engine);
    strand->tells_end = true; /* of what is left on a stack that does not go on */
    if (rs_strand_batch(engine)) rsb_without_block.fail(machine, engine, error);
    else if (!strand->started && NIL_P(strand->body)) strand->error = error; /* read where it was begun */
    else end_with_error(machine, strand, engine, error);
    finish(machine, engine);
}

static VALUE call_body(VALUE data) {
    rsb_strand *strand = (rsb_strand *)data;
    if (!NIL_P(strand->storage)) rsb_fiber_set_storage(strand->storage);
    return rb_proc_call_with_block(strand->body, 0, NULL, Qnil);
}

/* True if it was cancelled or interrupted before its first turn: the block never runs. */
RSB_APART static bool refused(rsb_machine *machine, rsb_strand *strand) {
    rs_wake_kind kind = strand->certain ? RS_WAKE_VALUE : rs_refusal(machine->engine, 0);
    if (kind == RS_WAKE_VALUE) return false;
    if (kind == RS_WAKE_CANCEL) strand->cancelled = true;
    else strand->error = rb_ary_shift(strand->raises);
    return true;
}

bool rsb_end_killed(rsb_strand *strand) {
    strand->cancelled = true;
    strand->used_fiber = true;
    if (rb_errinfo() != RSB_FIBER_KILLED) return true;
    rb_set_errinfo(Qnil);
    return false;
}

/* Keeps the handle of a strand that has ended for a later strand: the program has never seen it. */
static void use_again(rsb_machine *machine, rsb_strand *strand) {
    VALUE self = strand->self;
    RS_CHECK(strand->done && !strand->shown);
    memset(strand, 0, rsb_strand_bytes);
    set_up(strand, self, machine);
    machine->spare[machine->spare_len++] = self;
}

bool rsb_strand_run(rsb_machine *machine, rs_strand *engine, VALUE fiber) {
    rsb_strand *strand = rs_strand_user(engine);
    VALUE self = strand->self;
    int state = 0;
    bool thread_killed = false;
    RS_CHECK(rs_running(machine->engine) == engine && !strand->started && !strand->done);
    strand->started = true;
    rs_strand_began(engine);
    strand->fiber = strand->home = fiber;
    rsb_note_fiber(machine, strand, fiber);
    if (NIL_P(strand->body)) {
        thread_killed = rsb_without_block.run(machine, strand, &state);
    } else if (!refused(machine, strand)) {
        VALUE value = rb_protect(call_body, (VALUE)strand, &state);
        rsb_notice_fork(machine);
        if (!state) {
            strand->value = value;
        } else if (rsb_is_exception(rb_errinfo())) {
            VALUE error = rb_errinfo();
            rb_set_errinfo(Qnil);
            end_with_error(machine, strand, engine, error);
        } else {
            thread_killed = rsb_end_killed(strand);
        }
    } else if (!NIL_P(strand->error)) {
        end_with_error(machine, strand, engine, strand->error);
    }
    if (RS_UNLIKELY(strand->kill_pending) && !thread_killed) thread_killed = rsb_kill_is_left(machine, strand, &state);
    finish(machine, engine);
    if (RS_UNLIKELY(thread_killed)) rb_jump_tag(state);
    bool reusable = rsb_fiber_reset(machine, fiber, !strand->used_fiber && !strand->own_fiber);
    if (!reusable) rsb_runners_let_go(&machine->runners);
    if (!strand->shown && machine->spare_len < RSB_SPARE_MAX) use_again(machine, strand);
    RB_GC_GUARD(self);
    return reusable;
}

/* --- what a program asks of one --- */

bool rsb_is_strand(VALUE object) { return rb_typeddata_is_kind_of(object, &strand_type); }

/* NULL: it has ended, or runs in the parent process. */
static rs_strand *engine_of(rsb_strand *strand) {
    if (strand->done) return NULL;
    rsb_machine *machine = rsb_machine_any_thread(strand->machine);
    if (rsb_is_gone(machine)) return NULL;
    rsb_notice_fork(machine);
    if (machine->fork_count != rsb_forks) return NULL;
    return rs_strand_find(rs_strands_of(machine->engine), strand->id);
}

bool rsb_is_alive(rsb_strand *strand) { return engine_of(strand) != NULL; }

/* @return [Boolean] true until the strand has ended
 * @since 0.1.0 */
static VALUE strand_alive_p(VALUE self) { return rsb_is_alive(rsb_strand_get(self)) ? Qtrue : Qfalse; }

/* @return [Machine] the machine that runs the strand
 * @since 0.1.0 */
static VALUE strand_machine(VALUE self) { return rsb_strand_get(self)->machine; }

/* What the strand is doing: :new, :ready, :running, :parked or :done.
 *
 * @return [Symbol]
 * @since 0.1.0 */
static VALUE strand_state(VALUE self) {
    static const char *const names[] = {"done", "new", "ready", "running", "parked"};
    rs_strand *engine = engine_of(rsb_strand_get(self));
    return ID2SYM(rb_intern(names[engine ? rs_strand_state_now(engine) : 0]));
}

VALUE rsb_request_in_words(const rs_request *request) {
    const char *name = rs_op_kinds[request->kind].name;
    return request->fd < 0 ? rb_str_new_cstr(name) : rb_sprintf("%s on descriptor %d", name, request->fd);
}

bool rsb_is_hidden(VALUE object) { return !RB_SPECIAL_CONST_P(object) && RBASIC_CLASS(object) == 0; }

bool rsb_is_thread(VALUE object) { return !rsb_is_hidden(object) && rb_obj_is_kind_of(object, rb_cThread); }

/* CRuby passes the lock, the queue or the thread to the hook `block`. For Mutex#sleep it does not say which Mutex
 * (rb_mutex_sleep in thread_sync.c). */
static VALUE blocker_name(VALUE blocker) {
    if (NIL_P(blocker)) return rb_str_new_cstr("a ConditionVariable, or a time to pass");
    if (rsb_is_hidden(blocker)) return rb_str_new_cstr("a file that another strand or thread loads");
    if (rsb_is_thread(blocker)) return rb_sprintf("the end of %" PRIsVALUE, rsb_inspect(blocker));
    if (RB_SYMBOL_P(blocker) || RB_TYPE_P(blocker, T_STRING)) return rb_obj_as_string(blocker);
    return rb_sprintf("a %" PRIsVALUE, rb_obj_class(blocker));
}

static const char *scope_name(rs_strand *engine) {
    const rs_scope *scope = (const rs_scope *)((const char *)rs_strand_list(engine) - offsetof(rs_scope, waiters));
    if (scope == rs_strand_own(engine)) return "what it has scheduled to end";
    return scope->run ? "the strands of a run to end" : rs_wait_name(RS_WAIT_SCOPE);
}

static const char *said_by_a_part(const rsb_strand *strand, const rs_strand *engine) {
    const char *words = NULL;
    for (const rsb_part *part = rsb_parts; part && !words; part = part->next) {
        if (part->strand_waits_for) words = part->strand_waits_for(strand, engine);
    }
    return words;
}

/* What the strand waits for, in words.
 *
 * @return [String, nil] nil when it does not wait
 * @since 0.1.0 */
static VALUE strand_waits_for(VALUE self) {
    rsb_strand *strand = rsb_strand_get(self);
    rs_machine *machine = rsb_machine_any_thread(strand->machine)->engine;
    rs_strand *engine = engine_of(strand);
    if (!engine || !rs_strand_is(engine, RS_STRAND_PARKED)) return Qnil;
    const char *said = said_by_a_part(strand, engine);
    if (said) return rb_utf8_str_new_cstr(said);
    const rsb_list_kind *kind = rsb_list_kind_of(engine);
    if (kind) return kind->in_words ? kind->in_words(rs_strand_list(engine)) : rb_str_new_cstr(kind->what);
    if (rs_strand_wait(engine) == RS_WAIT_BLOCK) return blocker_name(strand->blocker);
    if (rs_strand_wait(engine) == RS_WAIT_SCOPE && rs_strand_list(engine)) return rb_str_new_cstr(scope_name(engine));
    if (rs_strand_wait(engine) != RS_WAIT_OP) return rb_str_new_cstr(rs_wait_name(rs_strand_wait(engine)));
    return rsb_request_in_words(rs_request_of_wait(machine, engine));
}

/* Where the strand was spun.
 *
 * @return [Thread::Backtrace::Location, nil] nil unless {Machine#locate=} was true then
 * @since 0.1.0 */
static VALUE strand_spawned_at(VALUE self) { return rsb_strand_get(self)->spawned_at; }

/* A handle lies in a slot of 320 bytes, with at most 40 of CRuby's own; the next size is 640 (BASE_SLOT_SIZE in gc.c, or
 * gc/default/default.c): see docs/decisions/30. */
#define HANDLE_MAX 280

void rsb_check_strand_size(void) { RS_CHECK(rsb_strand_bytes <= HANDLE_MAX); }

void rsb_init_strand(void) {
    rsb_cStrand = rb_define_class_under(rsb_mRingspun, "Strand", rb_cObject);
    rb_undef_alloc_func(rsb_cStrand);
    loaded_features = rb_gv_get("$LOADED_FEATURES"); /* always the same Array */
    rb_global_variable(&loaded_features);
    mIsolation = rb_define_module_under(rsb_mRingspun, "Isolation");
    rb_define_method(rsb_cStrand, "alive?", strand_alive_p, 0);
    rb_define_method(rsb_cStrand, "machine", strand_machine, 0);
    rb_define_method(rsb_cStrand, "state", strand_state, 0);
    rb_define_method(rsb_cStrand, "waits_for", strand_waits_for, 0);
    rb_define_method(rsb_cStrand, "spawned_at", strand_spawned_at, 0);
}
