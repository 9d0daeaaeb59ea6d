/* machine: Ringspun::Machine, one per thread: its memory, whose it is, what a fork makes of it, and its numbers. */
#include "inner.h"

#include <ruby/st.h>
#include <string.h>

VALUE rsb_cMachine;
__thread rsb_machine *rsb_thread_machine;
uint32_t rsb_forks;
static rb_internal_thread_specific_key_t machine_key;
ID rsb_id_machine;

rs_driver rsb_driver = {.stack = rsb_stack, .outer_stack = rsb_outer_stack};

/* --- memory --- */

static void mark_strands(rsb_machine *machine) {
    RS_EACH_STRAND(rs_strands_of(machine->engine), strand) {
        if (rs_strand_user(strand)) rb_gc_mark(((rsb_strand *)rs_strand_user(strand))->self);
        if (rs_strand_hand(strand)) rb_gc_mark((VALUE)rs_strand_hand(strand));
    }
}

/* False of an object whose `initialize` has raised or was never called. */
static bool was_opened(const rsb_machine *machine) { return machine->engine && rs_machine_was_opened(machine->engine); }

static void mark_ops(rsb_machine *machine) {
    if (!was_opened(machine)) return;
    RS_EACH_OP(rs_ops_of(machine->engine), op) {
        if (rs_op_kept(op)) rb_gc_mark((VALUE)rs_op_kept(op));
    }
}

static void mark_message(const rs_message *message) {
    if (message->kind == RS_MESSAGE_USER) rb_gc_mark((VALUE)message->payload);
}

static void machine_mark(void *data) {
    rsb_machine *machine = data;
    rb_gc_mark(machine->thread);
    rb_gc_mark(machine->stackless_error);
    rb_gc_mark(machine->root_error);
    rb_gc_mark(machine->child_error);
    rb_gc_mark(machine->root_fiber);
    rb_gc_mark(machine->maker);
    rsb_runners_mark(&machine->runners);
    for (uint32_t i = 0; i < machine->spare_len; i++) rb_gc_mark(machine->spare[i]);
    RSB_EACH_PART(mark, machine);
    mark_ops(machine); /* of a closed machine as well: there may be some in doubt */
    if (!machine->open) return;
    mark_strands(machine);
    rs_messages_each(machine->engine, mark_message);
}

bool rsb_close_to_wakers(rsb_machine *machine) {
    pthread_mutex_lock(&machine->wake_lock);
    machine->wakeable = false;
    bool last = !machine->engine || rs_wakers(machine->engine) == 0;
    pthread_mutex_unlock(&machine->wake_lock);
    return last;
}

/* The memory is leaked if it may still be used: by a worker inside a system call, by a waker that has not fired, or, in a forked
 * child, by threads of the parent. */
static void machine_free(void *data) {
    rsb_machine *machine = data;
    rsb_unpin(machine);
    if (machine->open && (rs_work_outside(machine->engine) > 0 || machine->fork_count != rsb_forks)) return;
    if (was_opened(machine) && rs_ops_use_memory(machine->engine)) return; /* the program ends */
    rsb_close_to_wakers(machine);
    if (machine->open) rs_machine_close(machine->engine); /* takes the wakes that have arrived */
    free(machine->scratch);
    rsb_runners_free(&machine->runners);
    rsb_fibers_forget(machine);
    RSB_EACH_PART(free, machine);
    if (!rsb_close_to_wakers(machine)) return;
    rs_machine_free(machine->engine);
    xfree(machine);
}

static size_t machine_size(const void *data) {
    const rsb_machine *machine = data;
    return rsb_machine_bytes + machine->runners.capacity * sizeof(VALUE) + (machine->engine ? rs_machine_bytes(machine->engine) : 0);
}

/* While it is open its thread pins it. */
static void machine_compact(void *data) {
    rsb_machine *machine = data;
    machine->self = rb_gc_location(machine->self);
}

static const rb_data_type_t machine_type = {
    .wrap_struct_name = "Ringspun::Machine",
    .function = {.dmark = machine_mark, .dfree = machine_free, .dsize = machine_size, .dcompact = machine_compact},
};

/* --- whose it is --- */

void rsb_set_existing(rsb_machine *machine, VALUE thread) {
    rb_internal_thread_specific_set(thread, machine_key, machine);
    rsb_thread_machine = machine && !machine->thread_moves ? machine : NULL;
}

static VALUE machine_allocate(VALUE class) {
    VALUE self = rb_data_typed_object_zalloc(class, rsb_machine_bytes, &machine_type);
    rsb_machine *machine = RTYPEDDATA_GET_DATA(self);
    machine->self = self;
    pthread_mutex_init(&machine->wake_lock, NULL);
    machine->thread = machine->stackless_error = machine->root_error = machine->child_error = Qnil;
    machine->root_fiber = machine->maker = Qnil;
    machine->engine = rs_machine_new();
    if (!machine->engine) rsb_fail_memory();
    return self;
}

static VALUE machine_refuse_copy(VALUE self, VALUE original) {
    rb_raise(rsb_eUsage, "a machine cannot be copied; a thread has one: Machine.current");
}

rsb_machine *rsb_machine_any_thread(VALUE self) {
    rsb_machine *machine;
    TypedData_Get_Struct(self, rsb_machine, &machine_type, machine);
    return machine;
}

rsb_machine *rsb_machine_of_thread(VALUE thread) { return rb_internal_thread_specific_get(thread, machine_key); }

rsb_machine *rsb_existing_of_moving_thread(void) { return rsb_machine_of_thread(rb_thread_current()); }

static void check(rsb_machine *machine) {
    if (RS_UNLIKELY(rsb_existing() != machine)) {
        if (!machine->open) rb_raise(rsb_eClosed, "this machine is closed; Machine.current makes a new one");
        rb_raise(rsb_eWrongThread, "this machine belongs to another thread; only #schedule and #terminate may be called from "
                 "here. Use Machine.current for this thread's");
    }
    if (RS_UNLIKELY(rsb_forks != machine->fork_count)) rsb_after_fork(machine);
    if (RS_UNLIKELY(rsb_between_strands(machine))) {
        rb_raise(rsb_eUsage, "a machine cannot be used from a signal handler or finalizer that runs while it switches; set a "
                 "flag or use #schedule there");
    }
}

rsb_machine *rsb_machine_of(VALUE self) {
    rsb_machine *machine = RTYPEDDATA_GET_DATA(self);
    check(machine);
    return machine;
}

rsb_machine *rsb_current(void) {
    rsb_machine *machine = rsb_existing();
    if (RS_UNLIKELY(!machine)) {
        rb_funcall(rsb_cMachine, rb_intern("new"), 0); /* not rb_class_new_instance: it passes on the caller's block */
        machine = rsb_existing();
    }
    check(machine);
    return machine;
}

bool rsb_bind(VALUE self, VALUE *owner, rsb_machine *machine) {
    if (RS_LIKELY(*owner == machine->self)) return false;
    if (NIL_P(*owner) || rsb_is_gone(rsb_machine_any_thread(*owner))) {
        *owner = machine->self;
        return true;
    }
    rb_raise(rsb_eWrongThread, "this %" PRIsVALUE " is used by the machine of another thread; between threads use "
             "a Ringspun::Channel, Thread::Queue or Thread::Mutex", rb_obj_class(self));
}

VALUE rsb_refuse_copy(VALUE self, VALUE original) {
    rb_raise(rsb_eUsage, "a %" PRIsVALUE " cannot be copied: strands wait in the original", rb_obj_class(self));
}

/* The machine of this thread, made on first use.
 *
 * @return [Machine]
 * @since 0.1.0 */
static VALUE machine_current(VALUE class) {
    rsb_machine *machine = rsb_existing();
    if (RS_UNLIKELY(!machine)) return rsb_current()->self;
    rsb_notice_fork(machine); /* and not check(): a signal handler calls this to use #schedule */
    return machine->self;
}

/* @return [Boolean] true when this thread has an open machine
 * @since 0.1.0 */
static VALUE machine_current_p(VALUE class) { return rsb_existing() ? Qtrue : Qfalse; }

/* For `require "concurrently"`: machines run in whole ticks (rs_machine_run_in_whole_ticks) from now on. */
static VALUE machine_run_in_whole_ticks(VALUE class) {
    rsb_whole_ticks = true;
    VALUE threads = rb_funcall(rb_cThread, rb_intern("list"), 0);
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        VALUE machine = rb_attr_get(RARRAY_AREF(threads, i), rsb_id_machine);
        if (!NIL_P(machine)) rs_machine_run_in_whole_ticks(rsb_machine_any_thread(machine)->engine);
    }
    return Qnil;
}

/* --- fork --- */

static void child_began(void) {
    rsb_machine *machine = rsb_thread_machine;
    rsb_forks++;
    RSB_EACH_PART(child_began, machine && machine->open ? machine : NULL);
}

void rsb_after_fork(rsb_machine *machine) {
    /* A signal handler has forked while the machine slept: the loop deals with it when it goes on (forked_in_loop in idle.c). */
    if (rs_none_runs(machine->engine)) return;
    rs_strand *survivor = rs_running(machine->engine);
    pthread_mutex_init(&machine->wake_lock, NULL); /* a thread of the parent may have held it at the fork */
    RSB_EACH_PART(forked, machine, rs_strand_user(survivor));
    int error = rs_machine_forked(machine->engine);
    /* `fork_count` is not set yet, so the next use of the machine tries again. */
    if (error) rsb_fail_to_open(machine, error, "no machine in the forked child");
    machine->fork_count = rsb_forks;
    rs_scope_begin_outermost_run(machine->engine, &machine->outside);
    machine->outermost = &machine->outside;
    ((rsb_strand *)rs_strand_user(survivor))->supervisor = Qnil;
    rsb_fibers_forget(machine);
}

/* --- what is known of one --- */

/* True if nothing can run before an event from outside of the machine. */
static VALUE machine_asleep_p(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    return rs_is_idle(machine->engine) ? Qtrue : Qfalse;
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE machine_closed_p(VALUE self) { return rsb_machine_any_thread(self)->open ? Qfalse : Qtrue; }

static void put(void *hash, const char *name, uint64_t value) {
    rb_hash_aset((VALUE)hash, ID2SYM(rb_intern(name)), ULL2NUM(value));
}

/* Counters of the machine, since it was made, and present numbers.
 *
 * @return [Hash{Symbol => Integer}]
 * @since 0.1.0 */
static VALUE machine_metrics(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    if (!was_opened(machine)) rb_raise(rsb_eClosed, "this machine was never opened; Machine.current makes one");
    rsb_notice_fork(machine);
    VALUE hash = rb_hash_new();
    rs_metrics_each(machine->engine, put, (void *)hash);
    if (!machine->open) put((void *)hash, "strands_live", 0);
    put((void *)hash, "idle_fibers", machine->runners.len);
    return hash;
}

static VALUE machine_backend_name(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    return machine->open ? ID2SYM(rb_intern(rs_backend_name(rs_backend_of(machine->engine)))) : Qnil;
}

static VALUE machine_backend_reason(VALUE self) {
    return rb_utf8_str_new_cstr(rsb_machine_any_thread(self)->backend_reason);
}

void rsb_init_machine(void) {
    machine_key = rb_internal_thread_specific_key_create();
    pthread_atfork(NULL, NULL, child_began);
    rsb_id_machine = rb_intern("ringspun_machine");
    rsb_cMachine = rb_define_class_under(rsb_mRingspun, "Machine", rb_cObject);
    rb_define_alloc_func(rsb_cMachine, machine_allocate);
    rb_define_singleton_method(rsb_cMachine, "current", machine_current, 0);
    rb_define_singleton_method(rsb_cMachine, "current?", machine_current_p, 0);
    rb_define_private_method(rb_singleton_class(rsb_cMachine), "run_in_whole_ticks", machine_run_in_whole_ticks, 0);
    rb_define_method(rsb_cMachine, "initialize_copy", machine_refuse_copy, 1);
    rb_define_method(rsb_cMachine, "closed?", machine_closed_p, 0);
    rb_define_method(rsb_cMachine, "metrics", machine_metrics, 0);
    rb_define_private_method(rsb_cMachine, "asleep?", machine_asleep_p, 0);
    rb_define_private_method(rsb_cMachine, "backend_name", machine_backend_name, 0);
    rb_define_private_method(rsb_cMachine, "backend_reason", machine_backend_reason, 0);
}
