/* raise: what a wait raises that ended without its value, or an op without its result, and in which strand interrupts of the
 * thread are raised. */
#include "inner.h"

#include <errno.h>

rsb_strand *rsb_root_of(rsb_machine *machine) {
    rs_strand *root = rs_root(machine->engine);
    return root ? rs_strand_user(root) : NULL;
}

static bool is_thread_kill(VALUE info) { return RB_FIXNUM_P(info) && info != RSB_FIBER_KILLED; }

/* A rescue has overwritten the errinfo by which CRuby unwinds a Thread#kill. So an error in the root ends the thread instead. */
static void raise_kill_in_root(rsb_machine *machine, rsb_strand *strand) {
    rsb_strand *root = rsb_root_of(machine);
    if (root && root != strand) rsb_deliver(machine, root, rb_exc_new_cstr(rsb_eCancelled, "the thread was killed"));
}

/* CRuby unwinds a kill by a number in errinfo (internal/thread.h). Each fiber has an errinfo of its own, and the C API cannot set
 * it to a number. If it was overwritten, Fiber#kill of the running fiber has the same effect. A throw out of a signal handler is
 * raised here too, but only once. */
NORETURN(static void raise_kill(rsb_machine *machine, rsb_strand *strand));
static void raise_kill(rsb_machine *machine, rsb_strand *strand) {
    VALUE info = strand->kill;
    strand->kill_pending = false;
    if (!RB_FIXNUM_P(info)) strand->kill = 0;
    if (rb_errinfo() == info) rb_jump_tag(strand->kill_state);
    if (is_thread_kill(info)) raise_kill_in_root(machine, strand);
    /* Not the first fiber of a thread: Thread#join aborts the process for a thread that ended by Fiber#kill (rb_bug in
     * thread_join, thread.c). */
    if (rb_fiber_current() != machine->root_fiber && !rsb_on_thread_stack()) rb_funcall(rb_fiber_current(), rb_intern("kill"), 0);
    rb_raise(rsb_eCancelled, "killed"); /* the fiber was killed before and runs an ensure block */
}

/* The outermost cancelled scope around the running strand cancels it. If that scope raises an error of its own, once, this raises
 * it and takes the cancellation back. */
static void raise_once(rsb_machine *machine) {
    rs_strand *me = rs_running(machine->engine);
    rs_scope *cancelling = NULL;
    for (rs_scope *scope = rs_strand_scope(me); scope; scope = scope->shield ? NULL : scope->parent) {
        if (scope->cause != RS_NOT_CANCELLED) cancelling = scope;
    }
    if (!cancelling || !cancelling->once || cancelling->owner != rs_id_index(rs_strand_id(me))) return;
    rs_scope_forgive(machine->engine, cancelling);
    rb_exc_raise(rb_make_exception(2, ((rsb_once *)cancelling)->raises));
}

static VALUE next_exception(rsb_strand *strand) {
    VALUE exception = rb_ary_shift(strand->raises);
    if (exception == strand->hook_error) strand->hook_error = 0;
    return exception;
}

void rsb_raise_wake(rsb_machine *machine, rs_wake_kind kind) {
    if (RS_LIKELY(kind == RS_WAKE_VALUE)) return;
    rsb_strand *strand = rsb_running(machine);
    if (kind == RS_WAKE_INTERRUPT) {
        rs_strand *engine = rs_running(machine->engine);
        rs_take_interrupt(engine);
        if (rs_strand_interrupts(engine) == 0) strand->urgent = false;
        VALUE exception = strand->kill_pending ? Qnil : next_exception(strand);
        rsb_leave_hook(machine);
        if (strand->kill_pending) raise_kill(machine, strand);
        rb_exc_raise(exception);
    }
    rsb_leave_hook(machine);
    if (kind == RS_WAKE_CANCEL) {
        raise_once(machine);
        rs_cancellation_met(machine->engine);
        rb_raise(rsb_eCancelled, "cancelled: its scope was cancelled or its deadline passed");
    }
    if (kind == RS_WAKE_TIMEOUT) rb_raise(rsb_eTimeout, "timed out");
    if (kind == RS_WAKE_NO_MEMORY) rsb_fail_memory();
}

static rs_strand *add_exception(rsb_machine *machine, rsb_strand *strand, VALUE exception) {
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), strand->id);
    if (!engine) return NULL;
    if (NIL_P(strand->raises)) strand->raises = rb_ary_new();
    rb_ary_push(strand->raises, exception);
    return engine;
}

void rsb_deliver(rsb_machine *machine, rsb_strand *strand, VALUE exception) {
    rs_strand *engine = add_exception(machine, strand, exception);
    if (engine) rs_interrupt(machine->engine, engine);
}

void rsb_deliver_first(rsb_machine *machine, rsb_strand *strand, VALUE exception) {
    rs_strand *engine = add_exception(machine, strand, exception);
    if (engine) rs_interrupt_first(machine->engine, engine);
}

void rsb_interrupt_hook(rsb_machine *machine, rsb_strand *strand, VALUE exception) {
    if (strand->hook_error) return;
    rsb_deliver(machine, strand, exception);
    strand->hook_error = exception;
}

RSB_APART static void forget_hook_error(rsb_machine *machine, rsb_strand *strand) {
    VALUE error = strand->hook_error;
    strand->hook_error = 0;
    for (long i = RARRAY_LEN(strand->raises) - 1; i >= 0; i--) {
        if (RARRAY_AREF(strand->raises, i) != error) continue;
        rb_ary_delete_at(strand->raises, i);
        rs_take_interrupt(rs_running(machine->engine));
        return;
    }
}

void rsb_leave_hook(rsb_machine *machine) {
    rsb_strand *strand = rsb_running(machine);
    strand->hooks_left++;
    if (RS_UNLIKELY(strand->hook_error)) forget_hook_error(machine, strand);
}

/* CRuby repeats a Fiber#kill at every later switch to that fiber (fiber_check_killed in cont.c). One that is to be raised yet needs what
 * the latest has left. Any other is in an `ensure` block already, or was never the strand's: it ends an inner fiber only. */
void rsb_kill_repeated(rsb_strand *strand, int state) {
    strand->used_fiber = true;
    if (strand->kill_pending) strand->kill_state = state;
    else rb_set_errinfo(Qnil);
}

/* Only once, for it is repeated (rsb_kill_repeated). */
void rsb_deliver_kill(rsb_machine *machine, rsb_strand *strand, VALUE info, int state) {
    if (strand->kill && !strand->kill_pending) {
        rb_set_errinfo(Qnil);
        return;
    }
    bool was_pending = strand->kill_pending;
    strand->kill = info;
    strand->kill_state = state;
    strand->kill_pending = true;
    strand->used_fiber = true;
    if (was_pending) return;
    rs_interrupt(machine->engine, rs_strand_find(rs_strands_of(machine->engine), strand->id));
}

bool rsb_kill_is_left(rsb_machine *machine, rsb_strand *strand, int *state) {
    if (!is_thread_kill(strand->kill)) return false;
    *state = strand->kill_state;
    if (rb_errinfo() == strand->kill) return true;
    raise_kill_in_root(machine, strand);
    return false;
}

/* The loop has caught an interrupt of the thread. An exception, of a signal or Thread#raise, is raised in the root. A Thread#kill
 * can only be raised where it was caught: in `here`, or in the runner (NULL), whose fiber ends with it; CRuby then kills the
 * thread's root fiber (rb_fiber_start in cont.c). */
void rsb_caught_in_loop(rsb_machine *machine, rs_strand *here, int state) {
    rsb_strand *root = rsb_root_of(machine);
    VALUE exception = rb_errinfo();
    if (root && rsb_is_exception(exception)) {
        rb_set_errinfo(Qnil);
        root->urgent = true;
        rsb_deliver(machine, root, exception);
    } else if (root && here) {
        rsb_deliver_kill(machine, rs_strand_user(here), exception, state);
    } else {
        rb_jump_tag(state);
    }
}

/* Once, although each of the strands that await each other ends with it: the second one would hit what the root does after the run. */
void rsb_raise_in_root(rsb_machine *machine, VALUE error) {
    rsb_strand *root = rsb_root_of(machine);
    if (!root || machine->root_error == error) return;
    machine->root_error = error;
    rsb_deliver(machine, root, error);
}

void rsb_raise_result(VALUE error) {
    rsb_machine *machine = rsb_existing();
    bool in_strand = machine && machine->open && !rsb_between_strands(machine);
    if (in_strand && rb_obj_is_kind_of(error, rsb_eTerminated) && rs_refusal(machine->engine, 0) == RS_WAKE_CANCEL) {
        rsb_raise_wake(machine, RS_WAKE_CANCEL);
    }
    rb_exc_raise(error);
}

void rsb_fail(int64_t result, const char *what, int fd) {
    if (result == RS_NO_MEMORY) rsb_fail_memory();
    if (result == RS_LOST) {
        rb_raise(rsb_eUnsupported, "%s: %s, and this machine can wait for no input and no output any more; allow the call, or take "
                 "the other backend (backend:, RINGSPUN_BACKEND)", what, rs_refusal_text(rsb_existing()->engine));
    }
    int error = (int)-result;
    if (error == EBADF) {
        rb_raise(rsb_eClosed, "%s: descriptor %d is not open (any more); pass one that is, and close it through "
                 "Machine#close only when nobody uses it", what, fd);
    }
    if (error == EOPNOTSUPP) {
        rb_raise(rsb_eUnsupported, "%s: not supported on descriptor %d", what, fd);
    }
    rb_syserr_fail(error, what);
}
