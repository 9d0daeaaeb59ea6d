/* calls: the hooks process_wait, io_close, address_resolve and blocking_operation_wait, and what Ringspun::Offload and
 * AsyncBridge call. */
#include "scheduler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static ID id_wait, id_lend, id_call, id_blocking_operation_wait;
static VALUE process_status;

/* --- child processes --- */

typedef struct {
    rsb_machine *machine;
    int pid;
} child_wait;

static VALUE wait_in_machine(VALUE argument) {
    child_wait *wait = (child_wait *)argument;
    return rsb_wait_for_child(wait->machine, wait->pid);
}

/* The status stands for the error, which CRuby raises. */
static VALUE failed_status(VALUE pid, VALUE error) {
    return rb_funcall(process_status, id_wait, 2, pid, INT2FIX(WNOHANG));
}

static VALUE status_of(VALUE arguments) { return rb_funcallv(process_status, id_wait, 2, RARRAY_CONST_PTR(arguments)); }

static VALUE wait_in_thread(RB_BLOCK_CALL_FUNC_ARGLIST(unused, arguments)) { return status_of(arguments); }

static rsb_outside_wait wait_for_change(int pid, int options) {
    rsb_outside_wait wait = {.type = pid > 0 ? P_PID : pid == -1 ? P_ALL : P_PGID, .options = options};
    if (pid != -1) wait.id = (id_t)(pid == 0 ? getpgrp() : abs(pid));
    return wait;
}

/* A simulation waits for real children: other strands go on meanwhile. */
static VALUE wait_outside(rsb_machine *machine, VALUE pid, int options) {
    rsb_outside_wait wait = wait_for_change(NUM2INT(pid), options);
    VALUE arguments = rb_assoc_new(pid, INT2FIX(options | WNOHANG)), status;
    while (NIL_P(status = status_of(arguments))) rsb_wait_outside(machine, &wait);
    rsb_leave_hook(machine);
    return status;
}

/* For Scheduler#process_wait: waits for a child process and reaps it. */
static VALUE scheduler_wait_for_child(VALUE self, VALUE pid, VALUE flags) {
    int number = (int)rsb_integer(pid, INT32_MIN, INT32_MAX, "process_wait: the pid");
    int64_t options = rsb_integer(flags, 0, INT32_MAX, "process_wait: the flags");
    rsb_machine *machine = rsb_hook_machine(self);
    VALUE arguments = rb_assoc_new(pid, flags);
    if (!machine) return rsb_blocking(wait_in_thread, arguments);
    if (options & WNOHANG) return status_of(arguments);
    if (RS_UNLIKELY(rs_is_simulated(machine->engine))) return wait_outside(machine, pid, (int)options);
    rsb_closed(machine);
    if (options != 0) return rsb_wait_for_change(machine, pid, (int)options);
    child_wait wait = {machine, number};
    return rb_rescue2(wait_in_machine, (VALUE)&wait, failed_status, pid, rb_path2class("Errno::ECHILD"), (VALUE)0);
}

/* --- closing --- */

/* Called by IO#close of newer Rubies, when the IO has lost its descriptor already: closes the descriptor. Strands that wait for
 * it get an error first.
 *
 * May switch strands.
 *
 * @param fd [Integer] a descriptor
 * @return [Boolean] false: CRuby closes it, because it is not open, or this strand is closing it already, or nothing may park now
 * @raise [SystemCallError] the descriptor is closed all the same
 * @since 0.1.0
 */
static VALUE scheduler_io_close(VALUE self, VALUE fd) {
    int number = (int)rsb_integer(fd, 0, INT32_MAX, "io_close: the descriptor");
    rsb_machine *machine = rsb_hook_machine(self);
    bool serves = machine && !rs_is_simulated(machine->engine);
    return serves && rsb_close_for_ruby(machine, number) ? Qtrue : Qfalse;
}

/* --- names --- */

static void *resolve_outside(void *request) {
    rs_resolve(request);
    return NULL;
}

static VALUE addresses_of(const rs_lookup *lookup) {
    if (lookup->count == 0) return Qnil;
    VALUE addresses = rb_ary_new_capa((long)lookup->count);
    for (uint32_t i = 0; i < lookup->count; i++) rb_ary_push(addresses, rb_str_new_cstr(lookup->addresses[i]));
    return addresses;
}

typedef struct {
    rsb_machine *machine;       /* NULL: by a plain call of this thread */
    rs_lookup *answer;
} look_up;

static VALUE resolve(VALUE argument) {
    look_up *call = (look_up *)argument;
    rs_lookup *lookup = call->answer;
    rs_request request = {.kind = RS_OP_RESOLVE, .fd = -1, .resolve.lookup = lookup};
    if (call->machine) {
        request.resolve.lookup = request.owned = memcpy(rsb_alloc(sizeof(*lookup)), lookup, sizeof(*lookup));
        rsb_perform(call->machine, &request, &(rsb_op_wait){.answer = lookup, .answer_size = sizeof(*lookup)});
    } else {
        rb_nogvl(resolve_outside, &request, RUBY_UBF_IO, NULL, 0);
    }
    return addresses_of(lookup);
}

static VALUE free_lookup(VALUE lookup) {
    free((void *)lookup);
    return Qnil;
}

/* Called when Socket and the like look up a name: calls getaddrinfo(3) on a worker thread. The addresses are in the order of the
 * resolver, and are not cached.
 *
 * May switch strands.
 *
 * @param hostname [String]
 * @return [Array<String>, nil] addresses; nil when there are none
 * @since 0.1.0
 */
static VALUE scheduler_address_resolve(VALUE self, VALUE hostname) {
    rsb_machine *machine = rsb_hook_machine(self);
    if (machine && rs_is_simulated(machine->engine)) machine = NULL;
    if (machine) rsb_after_inline(machine);
    /* After the yield, because other strands may have changed the String. */
    const char *host = StringValueCStr(hostname);
    if (strlen(host) >= RS_HOST_SIZE) return Qnil;
    look_up call = {machine, rsb_alloc(sizeof(rs_lookup))};
    strcpy(call.answer->host, host);
    return rb_ensure(resolve, (VALUE)&call, free_lookup, (VALUE)call.answer);
}

/* --- work that blocks --- */

static VALUE call_work(RB_BLOCK_CALL_FUNC_ARGLIST(unused, work)) { return rb_funcall(work, id_call, 0); }

/* Called for blocking work that may run on another thread (RB_NOGVL_OFFLOAD_SAFE in ruby/thread.h), of C extensions such as Zlib
 * and of CRuby itself. A worker thread of Ringspun does the work. If the strand is cancelled meanwhile, that thread is
 * interrupted, and the work counts as far as it was done. The work of a strand that was cancelled before, and unwinds, is done
 * all the same, as without this hook, except for a system call that waits.
 *
 * May switch strands.
 *
 * @param work [#call]
 * @return [nil]
 * @since 0.1.0
 */
static VALUE blocking_operation_wait(VALUE self, VALUE work) {
    rsb_machine *machine = rsb_hook_machine(self);
    if (!machine || rs_is_simulated(machine->engine)) {
        rsb_blocking(call_work, work); /* otherwise the work would call this hook again */
    } else if (!RTEST(rb_funcall(rsb_mRingspun, id_lend, 2, work, rsb_called_for_system_call() ? Qtrue : Qfalse))) {
        rsb_raise_refusal(machine);
        rb_raise(rsb_eCancelled, "cancelled: what it waited for was interrupted");
    }
    if (machine) rsb_leave_hook(machine);
    return Qnil;
}

/* CRuby asks by respond_to? whether there is the hook blocking_operation_wait, each time, and can do without. If there were a
 * method of that name it would call it always.
 *
 * Not for the close(2) of IO#close, which hardly ever blocks. Another thread would add many times what it takes. And the number would
 * be free before this strand knows: a strand that gets the same number could find it marked as closing. */
static VALUE scheduler_respond_to_missing(VALUE self, VALUE name, VALUE all) {
    if (name != ID2SYM(id_blocking_operation_wait)) return rb_call_super(2, (VALUE[]){name, all});
    return rsb_called_from_copy() || rsb_called_from_io_close() ? Qfalse : Qtrue;
}

static VALUE scheduler_method_missing(int argc, VALUE *argv, VALUE self) {
    if (argc == 0 || argv[0] != ID2SYM(id_blocking_operation_wait)) return rb_call_super(argc, argv);
    rb_check_arity(argc - 1, 1, 1);
    return blocking_operation_wait(self, argv[1]);
}

/* --- for Ringspun::Offload --- */

/* True if the running strand's next wait would raise. */
static VALUE is_refused(VALUE self) { return rs_refusal(rsb_current()->engine, 0) != RS_WAKE_VALUE ? Qtrue : Qfalse; }

/* After the work, errno is that of its system call. */
static VALUE is_interrupted_call(VALUE self, VALUE work) {
    errno = 0;
    rb_funcall(work, id_call, 0);
    return errno == EINTR ? Qtrue : Qfalse;
}

/* Marks a thread that waits for work: it wakes no strand, so a deadlock does not wait for it. */
static VALUE mark_only_looks(VALUE self, VALUE thread, VALUE so) { return rb_ivar_set(thread, rsb_id_only_looks, so); }

/* --- for Cluster --- */

/* @return [Boolean] whether something is done when the object goes, as a Tempfile removes its file, unless it was told not to */
static VALUE has_finalizer(VALUE self, VALUE object) { return rsb_has_finalizer(object) ? Qtrue : Qfalse; }

/* --- for AsyncBridge --- */

/* Runs the block in a strand of its own, at once, until its first wait. Without `awaited` no run waits for its end. */
static VALUE scheduler_begin(VALUE self, VALUE awaited) {
    rsb_machine *machine = rsb_parking_machine(self, "resume");
    return rsb_strand_begin(machine, RTEST(awaited), rb_block_proc());
}

/* Lets the strands that are ready run once, and raises no cancellation. */
static VALUE scheduler_give_way(VALUE self) {
    rsb_give_way(rsb_parking_machine(self, "resume"));
    return Qnil;
}

/* Ends the wait of that fiber in the hook `block`, and runs it until it waits again: as Fiber#resume would. False: it is in no such
 * wait. */
static VALUE scheduler_resume_first(VALUE self, VALUE fiber) {
    rsb_machine *machine = rsb_parking_machine(self, "resume");
    rs_strand *strand = rsb_blocked_in(machine, fiber);
    if (!strand) return Qfalse;
    rsb_resume_first(machine, strand);
    return Qtrue;
}

/* Raises the exception at the wait of that strand, and lets it run. */
static VALUE scheduler_interrupt(VALUE self, VALUE strand, VALUE exception) {
    rsb_machine *machine = rsb_parking_machine(self, "raise");
    rsb_deliver_first(machine, rsb_strand_get(strand), exception);
    rsb_give_way(machine);
    return Qnil;
}

void rsb_init_scheduler_calls(void) {
    id_wait = rb_intern("wait");
    id_lend = rb_intern("lend");
    id_blocking_operation_wait = rb_intern("blocking_operation_wait");
    id_call = rb_intern("call");
    process_status = rb_path2class("Process::Status");
    rb_gc_register_address(&process_status);
    rb_define_private_method(rsb_cScheduler, "wait_for_child", scheduler_wait_for_child, 2);
    rb_define_method(rsb_cScheduler, "io_close", scheduler_io_close, 1);
    rb_define_method(rsb_cScheduler, "address_resolve", scheduler_address_resolve, 1);
    rb_define_private_method(rsb_cScheduler, "begin_strand", scheduler_begin, 1);
    rb_define_private_method(rsb_cScheduler, "give_way", scheduler_give_way, 0);
    rb_define_private_method(rsb_cScheduler, "resume_first", scheduler_resume_first, 1);
    rb_define_private_method(rsb_cScheduler, "interrupt_strand", scheduler_interrupt, 2);
    VALUE of_module = rb_singleton_class(rsb_mRingspun);
    rb_define_private_method(of_module, "refused?", is_refused, 0);
    rb_define_private_method(of_module, "interrupted_call?", is_interrupted_call, 1);
    rb_define_private_method(of_module, "only_looks", mark_only_looks, 2);
    rb_define_private_method(of_module, "finalizer?", has_finalizer, 1);
    rb_define_private_method(rsb_cScheduler, "respond_to_missing?", scheduler_respond_to_missing, 2);
    rb_define_private_method(rsb_cScheduler, "method_missing", scheduler_method_missing, -1);
}
