/* machine: Ringspun::Machine, one per thread: how it is made, marked, forked and closed, and its numbers. */
#include "inner.h"

#include <ruby/ractor.h>
#include <ruby/st.h>
#include <string.h>

VALUE rsb_cMachine;
__thread rsb_machine *rsb_thread_machine;
uint32_t rsb_forks;
bool rsb_whole_ticks;
static bool threads_move;
static rb_internal_thread_specific_key_t machine_key;
static ID id_machine;

rs_driver rsb_driver = {
    .on_message = rsb_on_message, .on_reminder = rsb_unread_due, .others_may_wake = rsb_others_may_wake,
    .on_deadlock = rsb_on_deadlock, .stack = rsb_stack, .outer_stack = rsb_outer_stack};

/* --- memory --- */

static void mark_strands(rsb_machine *machine) {
    RS_EACH_STRAND(&machine->engine.strands, strand) {
        if (strand->user) rb_gc_mark(((rsb_strand *)strand->user)->self);
        if (strand->hand) rb_gc_mark((VALUE)strand->hand);
    }
}

/* False of an object whose `initialize` has raised or was never called: there is no engine in it. */
static bool was_opened(const rsb_machine *machine) { return machine->engine.ops != NULL; }

static void mark_ops(rsb_machine *machine) {
    if (!was_opened(machine)) return;
    RS_EACH_OP(machine->engine.ops, op) {
        if (op->keep) rb_gc_mark((VALUE)op->keep);
    }
}

static void mark_messages(const rs_message *message) {
    for (; message; message = message->next) {
        if (message->kind == RS_MESSAGE_USER) rb_gc_mark((VALUE)message->payload);
    }
}

static void machine_mark(void *data) {
    rsb_machine *machine = data;
    rb_gc_mark(machine->thread);
    rb_gc_mark(machine->unread);
    rb_gc_mark(machine->due);
    rb_gc_mark(machine->reporter);
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
    mark_messages(atomic_load(&machine->engine.inbox.head));
    mark_messages(machine->engine.taken);
}

/* No other thread may wake the machine from now on. True if none is about to do so. */
static bool close_to_wakers(rsb_machine *machine) {
    pthread_mutex_lock(&machine->wake_lock);
    machine->wakeable = false;
    bool last = machine->engine.wakers == 0;
    pthread_mutex_unlock(&machine->wake_lock);
    return last;
}

/* The memory is leaked if it may still be used: by a worker inside a system call, by a waker that has not fired, or, in a forked
 * child, by threads of the parent. */
static void machine_free(void *data) {
    rsb_machine *machine = data;
    rsb_unpin(machine);
    if (machine->open && (machine->engine.outside > 0 || machine->fork_count != rsb_forks)) return;
    if (was_opened(machine) && rs_ops_use_memory(&machine->engine)) return; /* the program ends */
    close_to_wakers(machine);
    if (machine->open) rs_machine_close(&machine->engine); /* takes the wakes that have arrived */
    free(machine->scratch);
    rsb_runners_free(&machine->runners);
    rsb_fibers_forget(machine);
    RSB_EACH_PART(free, machine);
    if (close_to_wakers(machine)) xfree(machine);
}

static size_t machine_size(const void *data) {
    const rsb_machine *machine = data;
    const rs_machine *engine = &machine->engine;
    if (!was_opened(machine)) return rsb_machine_bytes;
    return rsb_machine_bytes + machine->runners.capacity * sizeof(VALUE) + rs_slab_bytes(&engine->strands.slab) +
           rs_slab_bytes(&engine->ops->slab);
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

/* --- making one --- */

static void set_existing(rsb_machine *machine, VALUE thread) {
    rb_internal_thread_specific_set(thread, machine_key, machine);
    rsb_thread_machine = machine && !machine->thread_moves ? machine : NULL;
}

static bool in_main_ractor(void) {
    return rb_funcall(rb_cRactor, rb_intern("current"), 0) == rb_funcall(rb_cRactor, rb_intern("main"), 0);
}

static VALUE machine_allocate(VALUE class) {
    VALUE self = rb_data_typed_object_zalloc(class, rsb_machine_bytes, &machine_type);
    rsb_machine *machine = RTYPEDDATA_GET_DATA(self);
    machine->self = self;
    pthread_mutex_init(&machine->wake_lock, NULL);
    machine->thread = machine->unread = machine->due = machine->reporter = Qnil;
    machine->stackless_error = machine->root_error = machine->child_error = machine->root_fiber = machine->maker = Qnil;
    return self;
}

/* Runs on the native thread of the Ruby thread that ends. It may run another Ruby thread next. */
static void thread_exits(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused) {
    rsb_machine *machine = rb_internal_thread_specific_get(data->thread, machine_key);
    if (machine) {
        machine->thread_ended = true;
        machine->runners.len = machine->runners.unneeded = 0;
        if (machine->open && machine->fork_count == rsb_forks) {
            close_to_wakers(machine);
            rs_machine_leave(&machine->engine);
            rsb_pin_if_used(machine);
        }
    }
    rsb_thread_machine = NULL;
}

/* With a hook, of any kind, CRuby takes a lock whenever any thread lets the GVL go or gets it. So there is none as long as only the
 * main thread has a machine, for its end is that of the process; so is the end of a thread that a fork has made the main one. Once
 * it is there it stays: a thread that ends may not take it away. */
static void add_exit_hook(void) { rb_internal_thread_add_event_hook(thread_exits, RUBY_INTERNAL_THREAD_EVENT_EXITED, NULL); }

/* Makes this thread's machine. Most programs use {Machine.current}, which makes one with the defaults.
 *
 * @param backend [Symbol, nil] :uring, :epoll or :sim; nil takes what RINGSPUN_BACKEND names, else :uring
 *   where the host has io_uring, else :epoll; {#backend} says which, and why
 * @param entries [Integer] :uring only: the size of the submission queue, 1 to 32768 operations
 * @param sqpoll [Boolean, Numeric, Hash] :uring only: a kernel thread polls the submission queue (IORING_SETUP_SQPOLL of
 *   io_uring_setup(2)). Submitting then costs no system call, but the thread occupies a processor while it polls. A number, or
 *   `idle:`, is the seconds without work after which it sleeps; `cpu:` is the processor that it is pinned to
 * @param busy_poll [Numeric, false, nil] seconds, at most 0.01, for which the machine polls before it sleeps, if events
 *   have lately come that soon; false or 0: never; nil: 50 microseconds, and never if there is only one processor
 * @param file_io [Symbol] :inline tries small file operations at once, :offload gives all to worker threads
 * @param workers_max [Integer] worker threads for what cannot be polled: ours, and as many of the kernel's for files on io_uring
 * @param strands_max [Integer] how many strands may live at once
 * @param seed [Integer] :sim only: the seed of all random draws
 * @param faults [Boolean, Hash{Symbol => Float}] :sim only: see {Simulation.run}
 * @param trace [Boolean] keep a trace and its hash
 * @param on_error [#call, nil] called with the error and its strand for errors that nobody joins, unless the run has an
 *   `on_error:` of its own; see {Ringspun.run}; nil: a warning
 * @raise [UsageError] when the thread has an open machine, or for an unknown option
 * @raise [UnsupportedError] when :uring was asked for and this host forbids io_uring or has none
 * @since 0.1.0
 */
static VALUE machine_initialize(int argc, VALUE *argv, VALUE self) {
    VALUE options;
    rb_scan_args(argc, argv, "0:", &options);
    if (NIL_P(options)) options = rb_hash_new();
    rb_funcall(self, rb_intern("take_options"), 1, options);
    rsb_machine *machine;
    TypedData_Get_Struct(self, rsb_machine, &machine_type, machine);
    if (machine->open) rb_raise(rsb_eUsage, "this machine is open already");
    if (rsb_existing()) rb_raise(rsb_eUsage, "this thread has a machine: use Machine.current, or close that one first");
    rsb_report_all_unread(false);
    bool main_ractor = in_main_ractor();
    if (!main_ractor) rsb_share_stacks();
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!main_ractor || rb_thread_current() != rb_thread_main()) pthread_once(&once, add_exit_hook);
    /* A fiber that is resumed on another native thread may see thread-local variables of CRuby's on the old one
     * (ruby/ruby#17802). And the kernel cancels the io_uring requests of a thread that ends (io_uring_files_cancel in do_exit,
     * kernel/exit.c). */
    machine->thread_moves = (threads_move || !main_ractor) && !rsb_lock_native_thread();
    machine->thread = rb_thread_current();
    machine->unread = rb_hash_new();
    machine->due = rb_ary_new();
    machine->fork_count = rsb_forks;
    rsb_open_engine(machine, options);
    machine->open = machine->wakeable = true;
    rs_strand *root = rs_running(&machine->engine);
    rs_scope_begin_outermost_run(&machine->engine, &machine->outside);
    machine->outermost = &machine->outside;
    machine->root_fiber = threads_move || !main_ractor || rsb_on_thread_stack() ? rb_fiber_current() : Qnil;
    VALUE root_self = rsb_strand_root(machine, root);
    rs_machine_drive(&machine->engine, &rsb_driver, machine, rsb_strand_data(root_self));
    RB_GC_GUARD(root_self);
    if (main_ractor) rsb_share_gvl(machine);
    set_existing(machine, machine->thread);
    rb_ivar_set(machine->thread, id_machine, self);
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

rsb_machine *rsb_existing_of_moving_thread(void) {
    return rb_internal_thread_specific_get(rb_thread_current(), machine_key);
}

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
        VALUE machine = rb_attr_get(RARRAY_AREF(threads, i), id_machine);
        if (!NIL_P(machine)) rs_machine_run_in_whole_ticks(&rsb_machine_any_thread(machine)->engine);
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
    if (machine->engine.running == RS_NO_INDEX) return;
    rs_strand *survivor = rs_running(&machine->engine);
    pthread_mutex_init(&machine->wake_lock, NULL); /* a thread of the parent may have held it at the fork */
    RSB_EACH_PART(forked, machine, survivor->user);
    int error = rs_machine_forked(&machine->engine);
    /* `fork_count` is not set yet, so the next use of the machine tries again. */
    if (error) rsb_fail_to_open(machine, error, "no machine in the forked child");
    machine->fork_count = rsb_forks;
    rs_scope_begin_outermost_run(&machine->engine, &machine->outside);
    machine->outermost = &machine->outside;
    ((rsb_strand *)survivor->user)->supervisor = Qnil;
    rsb_scheduled_forget(survivor->user);
    rsb_unread_forked(machine);
    rsb_several_forked(machine, survivor->user);
    rsb_fibers_forget(machine);
    machine->outside_waits = NULL;
}

static VALUE end_child(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    VALUE failed = rsb_has_unread(machine) ? Qtrue : Qfalse;
    int state = 0;
    rb_protect(rsb_report_unread, self, &state);
    if (state && rsb_is_exception(rb_errinfo())) machine->child_error = rb_errinfo();
    return rb_funcall(self, rb_intern("end_child"), 2, machine->child_error, failed);
}

/* In a forked child all strands have ended. The root was a strand of the parent, so there is no code to return to. */
void rsb_end_of_child(rsb_machine *machine) {
    int state = 0;
    rb_protect(end_child, machine->self, &state);
    rb_funcall(rb_mProcess, rb_intern("exit!"), 1, Qfalse);
    rb_bug("ringspun: exit! returned");
}

/* Lets every other strand that is ready run once.
 *
 * May switch strands.
 *
 * @return [nil]
 * @since 0.1.0 */
static VALUE machine_yield(VALUE self) {
    rsb_yield(rsb_machine_of(self));
    return Qnil;
}

/* --- strands --- */

/* Starts a strand: the block runs after the strands that are ready have had their turn. The strand belongs to the innermost
 * Ringspun.run that its caller is in, which waits for it. An error that nobody joins is reported a second after the strand's end, or
 * when the run ends (see {Ringspun.run}). If an error of one strand should cancel the others, use a scope.
 *
 * @return [Strand]
 * @raise [LimitError] when strands_max are alive already
 * @since 0.1.0
 */
static VALUE machine_spin(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    rsb_need_block("spin");
    rs_scope *run = rsb_run_here(machine);
    return rsb_strand_new(machine, run, rsb_supervisor_of_run(machine, run), rb_block_proc());
}

/* For libraries: a strand that serves strands of several runs, and so belongs to the outermost one. */
static VALUE machine_spin_shared(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    rsb_need_block("spin_shared");
    return rsb_strand_new(machine, rsb_outermost_run(machine), Qnil, rb_block_proc());
}

/* @return [Strand] the strand that runs
 * @since 0.1.0 */
static VALUE machine_running(VALUE self) { return rsb_strand_show(rsb_running(rsb_machine_of(self))); }

/* --- end --- */

/* True if nothing can run before an event from outside of the machine. */
static VALUE machine_asleep_p(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    return machine->engine.running == RS_NO_INDEX && machine->engine.strands.run_len == 0 ? Qtrue : Qfalse;
}

static VALUE machine_check_closable(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    rs_strand *strand = rs_running(&machine->engine);
    if (!rs_is_root(&machine->engine, strand)) {
        rb_raise(rsb_eUsage, "a machine is closed by the strand that made it, not by one that it runs");
    }
    if (strand->stacked > 0) rs_scope_follow(&machine->engine);
    RSB_EACH_PART(check_closable, machine, strand->user);
    if (strand->scope != &strand->own) {
        rb_raise(rsb_eUsage, "a machine is not closed inside one of its scopes or timeouts; close it after them");
    }
    return Qnil;
}

static VALUE end_engine(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    rsb_strand *root = rs_running(&machine->engine)->user;
    VALUE raises = root->raises;
    root->done = true;
    RSB_EACH_PART(strand_ends, machine, root);
    close_to_wakers(machine);
    rs_scope_close_all(&machine->engine, rs_running(&machine->engine));
    rs_machine_close(&machine->engine);
    rsb_pin_if_used(machine);
    machine->open = false;
    machine->runners.len = machine->runners.unneeded = 0;
    machine->maker = Qnil;
    set_existing(NULL, machine->thread);
    rb_ivar_set(machine->thread, id_machine, Qnil);
    /* What was to be raised at the root's next wait is raised now: there will be no wait. */
    if (!NIL_P(raises) && RARRAY_LEN(raises) > 0) rb_exc_raise(RARRAY_AREF(raises, 0));
    return Qnil;
}

static VALUE machine_close_engine(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    machine_check_closable(self);
    uint32_t live = rs_strands_live(&machine->engine.strands);
    if (live > 1) rb_raise(rsb_eUsage, "%u strands are still alive; join or terminate them first", live - 1);
    RSB_EACH_PART(ends, machine);
    RS_ASSERT(rs_ops_are_over(&machine->engine));
    /* What an `on_error:` raises or throws, as by exit, goes on when the machine is closed. */
    return rb_ensure(rsb_report_unread, self, end_engine, self);
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE machine_closed_p(VALUE self) { return rsb_machine_any_thread(self)->open ? Qfalse : Qtrue; }

/* @return [Float] seconds on the machine's clock: virtual in a simulation, monotonic otherwise
 * @since 0.1.0 */
static VALUE machine_now(VALUE self) { return rsb_seconds(rs_now(&rsb_machine_of(self)->engine)); }

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
    rs_metrics_each(&machine->engine, put, (void *)hash);
    if (!machine->open) put((void *)hash, "strands_live", 0);
    put((void *)hash, "idle_fibers", machine->runners.len);
    return hash;
}

static VALUE machine_backend_name(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    return machine->open ? ID2SYM(rb_intern(machine->engine.backend->name)) : Qnil;
}

static VALUE machine_backend_reason(VALUE self) {
    return rb_utf8_str_new_cstr(rsb_machine_any_thread(self)->backend_reason);
}

void rsb_init_machine(void) {
    machine_key = rb_internal_thread_specific_key_create();
    pthread_atfork(NULL, NULL, child_began);
    const char *move = getenv("RUBY_MN_THREADS");
    threads_move = move && strcmp(move, "0") != 0;
    id_machine = rb_intern("ringspun_machine");
    rsb_cMachine = rb_define_class_under(rsb_mRingspun, "Machine", rb_cObject);
    rb_define_alloc_func(rsb_cMachine, machine_allocate);
    rb_define_singleton_method(rsb_cMachine, "current", machine_current, 0);
    rb_define_singleton_method(rsb_cMachine, "current?", machine_current_p, 0);
    rb_define_private_method(rb_singleton_class(rsb_cMachine), "run_in_whole_ticks", machine_run_in_whole_ticks, 0);
    rb_define_method(rsb_cMachine, "initialize", machine_initialize, -1);
    rb_define_method(rsb_cMachine, "initialize_copy", machine_refuse_copy, 1);
    rb_define_method(rsb_cMachine, "yield", machine_yield, 0);
    rb_define_method(rsb_cMachine, "spin", machine_spin, 0);
    rb_define_method(rsb_cMachine, "running", machine_running, 0);
    rb_define_method(rsb_cMachine, "closed?", machine_closed_p, 0);
    rb_define_method(rsb_cMachine, "now", machine_now, 0);
    rb_define_method(rsb_cMachine, "metrics", machine_metrics, 0);
    rb_define_private_method(rsb_cMachine, "spin_shared", machine_spin_shared, 0);
    rb_define_private_method(rsb_cMachine, "asleep?", machine_asleep_p, 0);
    rb_define_private_method(rsb_cMachine, "check_closable", machine_check_closable, 0);
    rb_define_private_method(rsb_cMachine, "close_engine", machine_close_engine, 0);
    rb_define_private_method(rsb_cMachine, "backend_name", machine_backend_name, 0);
    rb_define_private_method(rsb_cMachine, "backend_reason", machine_backend_reason, 0);
}
