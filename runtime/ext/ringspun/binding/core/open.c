/* open: how a machine is opened and closed, by its thread or because that ends, and how a forked child ends. */
#include "core.h"
#include "scope/inner.h"

#include <ruby/ractor.h>
#include <string.h>

static bool threads_move;

/* --- opening --- */

static bool in_main_ractor(void) {
    return rb_funcall(rb_cRactor, rb_intern("current"), 0) == rb_funcall(rb_cRactor, rb_intern("main"), 0);
}

/* Runs on the native thread of the Ruby thread that ends. It may run another Ruby thread next. */
static void thread_exits(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused) {
    rsb_machine *machine = rsb_machine_of_thread(data->thread);
    if (machine) {
        machine->thread_ended = true;
        machine->runners.len = machine->runners.unneeded = 0;
        if (machine->open && machine->fork_count == rsb_forks) {
            rsb_close_to_wakers(machine);
            rs_machine_leave(machine->engine);
            rsb_pin_if_used(machine);
        }
    }
    rsb_thread_machine = NULL;
}

/* With a hook, of any kind, CRuby takes a lock whenever any thread lets the GVL go or gets it (rb_thread_execute_hooks in
 * thread_pthread.c). So there is none as long as only the main thread has a machine, for its end is that of the process; so is the
 * end of a thread that a fork has made the main one. Once it is there it stays: a thread that ends may not take it away. */
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
 * @param stream_io [Symbol, nil] for pipes and sockets on :uring: :inline makes a system call for each read and write first, :ring
 *   hands those of all strands that are ready to the kernel by one, :auto does so where a call costs more than that saves, and
 *   many are ready; nil takes what RINGSPUN_STREAM_IO names, else :auto
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
    rsb_machine *machine = rsb_machine_any_thread(self);
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
    rsb_unread_open(machine);
    machine->fork_count = rsb_forks;
    rsb_open_engine(machine, options);
    machine->open = machine->wakeable = true;
    rs_strand *root = rs_running(machine->engine);
    rs_scope_begin_outermost_run(machine->engine, &machine->outside);
    machine->outermost = &machine->outside;
    machine->root_fiber = threads_move || !main_ractor || rsb_on_thread_stack() ? rb_fiber_current() : Qnil;
    VALUE root_self = rsb_strand_root(machine, root);
    rs_machine_drive(machine->engine, &rsb_driver, machine, rsb_strand_data(root_self));
    RB_GC_GUARD(root_self);
    if (main_ractor) rsb_share_gvl(machine);
    rsb_set_existing(machine, machine->thread);
    rb_ivar_set(machine->thread, rsb_id_machine, self);
    return self;
}

/* --- closing --- */

static VALUE machine_check_closable(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    rs_strand *strand = rs_running(machine->engine);
    if (!rs_is_root(machine->engine, strand)) {
        rb_raise(rsb_eUsage, "a machine is closed by the strand that made it, not by one that it runs");
    }
    if (rs_strand_stacked(strand) > 0) rs_scope_follow(machine->engine);
    RSB_EACH_PART(check_closable, machine, rs_strand_user(strand));
    if (rs_strand_scope(strand) != rs_strand_own(strand)) {
        rb_raise(rsb_eUsage, "a machine is not closed inside one of its scopes or timeouts; close it after them");
    }
    return Qnil;
}

static VALUE end_engine(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    rsb_strand *root = rs_strand_user(rs_running(machine->engine));
    VALUE raises = root->raises;
    root->done = true;
    RSB_EACH_PART(strand_ends, machine, root);
    rsb_close_to_wakers(machine);
    rs_scope_close_all(machine->engine, rs_running(machine->engine));
    rs_machine_close(machine->engine);
    rsb_pin_if_used(machine);
    machine->open = false;
    machine->runners.len = machine->runners.unneeded = 0;
    machine->maker = Qnil;
    rsb_set_existing(NULL, machine->thread);
    rb_ivar_set(machine->thread, rsb_id_machine, Qnil);
    /* What was to be raised at the root's next wait is raised now: there will be no wait. */
    if (!NIL_P(raises) && RARRAY_LEN(raises) > 0) rb_exc_raise(RARRAY_AREF(raises, 0));
    return Qnil;
}

static VALUE machine_close_engine(VALUE self) {
    rsb_machine *machine = rsb_machine_of(self);
    machine_check_closable(self);
    uint32_t live = rs_strands_live(rs_strands_of(machine->engine));
    if (live > 1) rb_raise(rsb_eUsage, "%u strands are still alive; join or terminate them first", live - 1);
    RSB_EACH_PART(ends, machine);
    RS_ASSERT(rs_ops_are_over(machine->engine));
    /* What an `on_error:` raises or throws, as by exit, goes on when the machine is closed. */
    return rb_ensure(rsb_report_unread, self, end_engine, self);
}

/* --- the end of a forked child --- */

static VALUE end_child(VALUE self) {
    rsb_machine *machine = rsb_machine_any_thread(self);
    VALUE failed = rsb_has_unread(machine) ? Qtrue : Qfalse;
    int state = 0;
    rb_protect(rsb_report_unread, self, &state);
    if (state && rsb_is_exception(rb_errinfo())) machine->child_error = rb_errinfo();
    return rb_funcall(self, rb_intern("end_child"), 2, machine->child_error, failed);
}

/* In a forked child all strands have ended. The root was a strand of the parent, so there is no code to return to. */
static void end_of_child(rsb_machine *machine) {
    int state = 0;
    rb_protect(end_child, machine->self, &state);
    rb_funcall(rb_mProcess, rb_intern("exit!"), 1, Qfalse);
    rb_bug("ringspun: exit! returned");
}

static rsb_part part = {.child_ends = end_of_child};

void rsb_init_open(void) {
    const char *move = getenv("RUBY_MN_THREADS");
    threads_move = move && strcmp(move, "0") != 0;
    rsb_register_part(&part);
    rb_define_method(rsb_cMachine, "initialize", machine_initialize, -1);
    rb_define_private_method(rsb_cMachine, "check_closable", machine_check_closable, 0);
    rb_define_private_method(rsb_cMachine, "close_engine", machine_close_engine, 0);
}
