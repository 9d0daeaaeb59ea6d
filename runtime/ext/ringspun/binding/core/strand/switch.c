/* switch: the only file that switches fibers.
 *
 * There is no fiber for the loop. A strand that parks runs the loop on its own stack (`park`) and transfers directly to the next
 * strand. `park` is itself a loop, because a fiber can be switched to out of turn: by Fiber#raise, #kill or #resume of others, or
 * by CRuby when another fiber ends. Every transfer is protected, because CRuby checks interrupts at a switch (fiber_switch in
 * cont.c): those are for the thread and are raised in the root strand, and the strand that was switched to keeps its own wake.
 */
#include "inner.h"

#include <errno.h>
#include <string.h>

static ID id_transfer;
static VALUE fiber_error;

/* --- runners: fibers that run strands, one after the other --- */

static VALUE transfer(VALUE fiber) { return rb_fiber_transfer(fiber, 0, NULL); }

/* What the three kinds of fibers run, for rsb_fiber_new. */
static VALUE runner_body, maker_body, own_body;

static VALUE stackless_error(VALUE cause) {
    return rb_exc_new_str(rsb_eLimit, rb_sprintf("no stack for one more strand (%" PRIsVALUE "); %" PRIsVALUE ", or bound how many "
                          "strands wait at once, for example with a Ringspun::Semaphore", cause, rsb_stack_limit()));
}

/* Without stacks CRuby takes tens of milliseconds to fail (fiber_pool_allocate_memory in cont.c tries again and again). So for
 * this long the next strands fail without a try. */
#define STACKLESS_FOR_NS 100000000

/* CRuby makes a fiber's stack at the first switch to it (fiber_prepare_stack in cont.c), so the lack of one shows there. */
static void fail_stackless(rsb_machine *machine, rs_strand *strand) {
    int state = 0;
    VALUE cause = rsb_is_exception(rb_errinfo()) ? rb_errinfo() : Qnil, error = rb_protect(stackless_error, cause, &state);
    if (state) error = rb_errinfo();
    rb_set_errinfo(Qnil);
    machine->stackless_error = error;
    machine->stackless_until_ns = rs_clock_ns() + STACKLESS_FOR_NS;
    rsb_strand_fail(machine, strand, error);
}

/* There is no fiber for the strand: for lack of a stack, of memory, or because a TracePoint has raised there. It never begins. */
static void fail_unmade(rsb_machine *machine, rs_strand *strand) {
    VALUE error = rb_errinfo();
    if (!rsb_is_exception(error) || rb_obj_is_kind_of(error, fiber_error)) {
        fail_stackless(machine, strand);
        return;
    }
    rb_set_errinfo(Qnil);
    rsb_strand_fail(machine, strand, error);
}

/* Making a fiber takes a deeper stack than most waits, and a parked strand keeps all pages that its stack has ever touched. So a
 * fiber of its own, the maker, makes the fibers. Qundef: there can be none. */
static VALUE maker_of(rsb_machine *machine) {
    if (RS_LIKELY(!NIL_P(machine->maker) && RTEST(rb_fiber_alive_p(machine->maker)))) return machine->maker;
    int state = 0;
    VALUE maker = rb_protect(rsb_fiber_new, maker_body, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        return Qundef;
    }
    rsb_stacks_lock(machine);
    return machine->maker = maker;
}

/* A fiber for a strand that has none yet: an idle runner, the maker, which will make one, or a new runner. Qundef: there can be
 * none, and the strand has failed. */
static VALUE take_runner(rsb_machine *machine, rs_strand *strand, VALUE here) {
    if (machine->runners.len > 0) return machine->idle_taken = rsb_runners_take(&machine->runners);
    if (here != machine->maker) {
        VALUE maker = maker_of(machine);
        if (RS_LIKELY(maker != Qundef)) return maker;
    }
    VALUE error = machine->stackless_error;
    if (RS_LIKELY(NIL_P(error) || rs_clock_ns() > machine->stackless_until_ns)) {
        int state = 0;
        VALUE fiber = rb_protect(rsb_fiber_new, runner_body, &state);
        if (RS_LIKELY(!state)) {
            rsb_stacks_lock(machine);
            return fiber;
        }
        fail_unmade(machine, strand);
    } else {
        rsb_strand_fail(machine, strand, error);
    }
    return Qundef;
}

/* When a fiber ends that was transferred to, CRuby keeps its stack until the fiber is collected (fiber_switch in cont.c frees it
 * only after a resume), and no lack of stacks makes it collect. False: this was tried for this strand already. */
static bool try_again_after_gc(rsb_machine *machine, rs_strand *strand) {
    if (machine->collected_for == rs_strand_id(strand)) return false;
    machine->collected_for = rs_strand_id(strand);
    rb_set_errinfo(Qnil);
    rs_displaced(machine->engine);
    rsb_runners_collect();
    return true;
}

/* The switch to that strand has failed. True if the strand cannot run: its fiber got no stack, or has ended. Only its home fiber
 * counts: if another fiber of it has ended, the strand itself has switched to us. */
static bool cannot_run(rsb_machine *machine, rs_strand *strand) {
    if (!rs_is_running(machine->engine, strand)) return false;
    rsb_strand *target = rs_strand_user(strand);
    VALUE error = rb_errinfo();
    if (!target->started) {
        bool stackless = rsb_is_exception(error) && rb_obj_is_kind_of(error, fiber_error);
        if (!stackless || !try_again_after_gc(machine, strand)) fail_unmade(machine, strand);
        return true;
    }
    if (NIL_P(target->home) || RTEST(rb_fiber_alive_p(target->home))) return false;
    rb_set_errinfo(Qnil);
    rsb_strand_fail(machine, strand, error);
    return true;
}

/* The program has switched to us, by Fiber#raise or the like, and the strand that ran is suspended in the middle of that call. If it
 * has not begun, its fiber has ended before that, by what a TracePoint has raised there; CRuby raises the same here. */
static void note_displaced(rsb_machine *machine) {
    if (RS_LIKELY(rs_none_runs(machine->engine))) return;
    rs_strand *strand = rs_running(machine->engine);
    rsb_strand *target = rs_strand_user(strand);
    target->displaced = target->started;
    if (target->started) return;
    rsb_strand_fail(machine, strand, rsb_error(rsb_eError, "the fiber of this strand has ended before the strand began, by what a "
                                               "TracePoint has raised there"));
}

static VALUE transfer_checked(VALUE fiber) { return rb_funcallv(fiber, id_transfer, 0, NULL); }

/* Nothing says which fiber of the strand made that call: the one that waited last, or its home. Fiber#transfer raises for a fiber
 * that cannot have made it, because it has ended, yielded or resumed another; rb_fiber_transfer would not. */
static int return_to_displaced(rsb_machine *machine, rs_strand *strand, VALUE here) {
    rsb_strand *target = rs_strand_user(strand);
    VALUE fibers[2] = {target->fiber, target->home};
    target->displaced = false;
    for (int i = 0; i < 2; i++) {
        if (NIL_P(fibers[i]) || !RTEST(rb_fiber_alive_p(fibers[i]))) continue;
        if (fibers[i] == here) return 0;
        int state = 0;
        rb_protect(transfer_checked, fibers[i], &state);
        bool refused = state && rs_is_running(machine->engine, strand) && rb_obj_is_kind_of(rb_errinfo(), fiber_error);
        if (!refused) return state;
        rb_set_errinfo(Qnil);
    }
    rsb_strand_fail(machine, strand, rb_exc_new_cstr(rsb_eUsage, "this strand has switched to another strand's fiber, from "
                    "inside a fiber of its own that is not known here, and cannot be found again; use Machine#schedule"));
    return 0;
}

static VALUE first_fiber(rsb_machine *machine, rs_strand *strand, VALUE here) {
    rsb_strand *target = rs_strand_user(strand);
    if (RS_LIKELY(!target->own_fiber)) return take_runner(machine, strand, here);
    rsb_stacks_lock(machine);
    return target->fiber;
}

/* Switches to that strand; returns when this fiber is switched to again, for whatever reason. Non-zero: the state of
 * rb_protect. */
static inline int switch_to(rsb_machine *machine, rs_strand *strand, VALUE here) {
    rsb_strand *target = rs_strand_user(strand);
    if (RS_UNLIKELY(target->displaced)) return return_to_displaced(machine, strand, here);
    VALUE fiber = target->started ? target->fiber : first_fiber(machine, strand, here);
    if (fiber == Qundef || fiber == here) return 0;
    int state = 0;
    rb_protect(transfer, fiber, &state);
    if (RS_LIKELY(!state)) return 0;
    rsb_stacks_unlock(machine); /* a fiber that did not begin has not done so */
    return cannot_run(machine, strand) ? 0 : state;
}

/* One iteration of the loop: returns the strand to run, or NULL to try again. */
static inline rs_strand *next_to_run(rsb_machine *machine, rs_strand *here) {
    rs_decision decision = rs_next(machine->engine);
    if (RS_LIKELY(decision.verdict == RS_RUN)) return decision.strand;
    rsb_without_strand(machine, here, decision);
    return NULL;
}

/* Most often take_runner has taken the fiber out of the pool, so that there is nothing to remove. */
static void leave_idle(rsb_machine *machine, VALUE fiber) {
    VALUE taken = machine->idle_taken;
    machine->idle_taken = 0;
    if (RS_UNLIKELY(taken != fiber)) rsb_runners_remove(&machine->runners, fiber);
}

/* A runner without a strand switches to the next strand, and waits in the pool for one of its own. False: it was killed
 * meanwhile. CRuby repeats that at every switch to it (fiber_check_killed in cont.c), so it runs no strand any more and stays out
 * of the pool. */
RSB_APART static bool idle(rsb_machine *machine, rs_strand *next, VALUE here, bool usable) {
    if (RS_LIKELY(usable)) rsb_runners_put(&machine->runners, here);
    int state = switch_to(machine, next, here);
    leave_idle(machine, here);
    bool by_others = !rs_none_runs(machine->engine) && ((rsb_strand *)rs_strand_user(rs_running(machine->engine)))->started;
    if (RS_LIKELY(!by_others)) {
        if (state) rsb_caught_in_loop(machine, NULL, state);
        return usable;
    }
    /* The program has raised in a fiber whose strand has ended. */
    note_displaced(machine);
    bool killed = state && rb_errinfo() == RSB_FIBER_KILLED;
    rb_set_errinfo(Qnil);
    return usable && !killed;
}

/* Whether this fiber may end. CRuby switches to the thread's root fiber then, and to the innermost fiber that it has resumed
 * (return_fiber in cont.c). That is right if the root strand is parked on that fiber, because its park loop goes on there, and
 * wrong if the root was displaced or is parked elsewhere. With several ractors no fiber ends: CRuby 3.4 gives its stack back at
 * once then. */
RSB_APART static bool may_end(rsb_machine *machine) {
    if (RS_UNLIKELY(rsb_stacks_are_shared())) return false;
    rs_strand *root = rs_root(machine->engine);
    if (!root) return false; /* in a forked child the root has ended: this fiber must end the child (rsb_without_strand) */
    bool parked = rs_strand_is(root, RS_STRAND_PARKED) || rs_strand_is(root, RS_STRAND_READY);
    rsb_strand *handle = rs_strand_user(root);
    return parked && !handle->displaced && handle->fiber == machine->root_fiber;
}

/* The body of runners. Returns if the fiber cannot be used again, or there is no memory to keep it in the pool. */
static VALUE runner_main(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused)) {
    rsb_machine *machine = rsb_existing();
    rsb_stacks_unlock(machine);
    VALUE here = rb_fiber_current();
    bool usable = true;
    for (;;) {
        rs_machine *engine = machine->engine;
        rs_strand *strand = rs_none_runs(engine) ? next_to_run(machine, NULL) : rs_running(engine);
        if (!strand) continue;
        rsb_strand *target = rs_strand_user(strand);
        if (usable && !target->started) {
            usable = rsb_strand_run(machine, strand, here);
            if (!usable && may_end(machine)) return Qnil;
            continue;
        }
        bool has_room = rsb_runners_has_room(&machine->runners);
        if (RS_UNLIKELY(!has_room) && may_end(machine)) {
            rs_displaced(engine);
            return Qnil;
        }
        usable = idle(machine, strand, here, usable && has_room);
    }
}

/* The body of the maker. It runs no strand: it makes a fiber for each strand that needs one, and switches to it. */
static VALUE maker_main(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused)) {
    rsb_machine *machine = rsb_existing();
    rsb_stacks_unlock(machine);
    VALUE here = rb_fiber_current();
    for (;;) {
        rs_machine *engine = machine->engine;
        rs_strand *strand = rs_none_runs(engine) ? next_to_run(machine, NULL) : rs_running(engine);
        if (strand) idle(machine, strand, here, false);
    }
    return Qnil;
}

/* --- parking --- */

/* True if the strand that ends hooks (begin_raise in mailbox.c) has raised this. If the hook has returned meanwhile, CRuby raises
 * it again by itself, and a second one would end a later wait. */
static bool is_end_of_hook(rsb_machine *machine) {
    return !rs_none_runs(machine->engine) && rsb_running(machine)->ends_hook;
}

/* This fiber was switched to: in our turn, or out of turn by Fiber#raise and the like; then the exception is for this strand. */
static void after_switch(rsb_machine *machine, rs_strand *me, int state) {
    if (RS_LIKELY(!state)) return;
    VALUE exception = rb_errinfo();
    if (rs_is_running(machine->engine, me)) {
        if (exception != RSB_FIBER_KILLED) rsb_caught_in_loop(machine, me, state);
        else rsb_kill_repeated(rs_strand_user(me), state);
        return;
    }
    if (rsb_is_exception(exception)) {
        rb_set_errinfo(Qnil);
        if (is_end_of_hook(machine)) rsb_interrupt_hook(machine, rs_strand_user(me), exception);
        else rsb_deliver(machine, rs_strand_user(me), exception);
    } else {
        rsb_deliver_kill(machine, rs_strand_user(me), exception, state);
    }
}

/* Parks the running strand: `next` runs; NULL: the strand that the loop finds. */
static inline rs_wake_kind park_behind(rsb_machine *machine, rs_strand *me, rs_strand *next, int64_t *result) {
    rs_machine *engine = machine->engine;
    VALUE here = rb_fiber_current();
    rsb_strand *self = rs_strand_user(me);
    if (RS_UNLIKELY(self->fiber != here)) {
        self->fiber = here;
        rsb_note_fiber(machine, self, here);
    }
    for (;;) {
        if (!next) {
            rs_displaced(engine);
            next = next_to_run(machine, me);
            if (next == me) break;
            if (!next) continue;
        }
        int state = switch_to(machine, next, here);
        next = NULL;
        after_switch(machine, me, state);
        if (rs_is_running(engine, me)) break;
        note_displaced(machine);
    }
    return rs_park_end(engine, result);
}

static inline rs_wake_kind park(rsb_machine *machine, rs_strand *me, int64_t *result) {
    if (RS_UNLIKELY(rs_strand_batch(me) != NULL)) rsb_without_block.hand_over(machine, me);
    return park_behind(machine, me, NULL, result);
}

static VALUE own_fiber_main(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused)) {
    rsb_machine *machine = rsb_existing();
    rsb_stacks_unlock(machine);
    VALUE here = rb_fiber_current();
    if (!rs_none_runs(machine->engine) && !rsb_running(machine)->started) {
        rsb_strand_run(machine, rs_running(machine->engine), here);
    }
    while (!may_end(machine)) {
        rs_strand *strand = rs_none_runs(machine->engine) ? next_to_run(machine, NULL) : rs_running(machine->engine);
        if (strand) idle(machine, strand, here, false);
    }
    rs_displaced(machine->engine);
    return Qnil;
}

NORETURN(static void too_deep(void));
static void too_deep(void) { rb_raise(rb_eSysStackError, "stack level too deep to wait"); }

VALUE rsb_own_fiber(rsb_machine *machine) {
    if (RS_UNLIKELY(ruby_stack_check())) too_deep();
    return rsb_fiber_new(own_body);
}

void rsb_run_first(rsb_machine *machine, rs_strand *caller, rs_strand *first) {
    RS_CHECK(rs_running(machine->engine) == first);
    rs_turn turn = rs_turn_pause(machine->engine);
    park_behind(machine, caller, first, NULL);
    rs_turn_go_on(machine->engine, &turn);
}

void rsb_raise_refusal(rsb_machine *machine) {
    if (RS_UNLIKELY(ruby_stack_check())) too_deep();
    rsb_raise_wake(machine, rs_refusal(machine->engine, 0));
}

static bool has_pending(const rs_strand *me) {
    return RS_UNLIKELY(((rsb_strand *)rs_strand_user(me))->urgent) && rs_strand_shields(me) == 0 && rs_strand_interrupts(me) > 0;
}

void rsb_raise_pending(rsb_machine *machine) {
    if (RS_UNLIKELY(has_pending(rs_running(machine->engine)))) rsb_raise_wake(machine, RS_WAKE_INTERRUPT);
}

/* Waits that end without a thing that only their caller would have. */
static bool has_nothing_to_lose(rs_wait_kind wait) {
    return wait == RS_WAIT_SLEEP || wait == RS_WAIT_JOIN || wait == RS_WAIT_SCOPE;
}

static inline rs_wake_kind wait_until(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                                      const rsb_list_kind *kind, int64_t *result) {
    rs_machine *engine = machine->engine;
    rs_strand *me = rs_running(engine);
    if (rs_park_begin(engine, wait, flags, deadline_ns) == 0) return rs_refused(engine);
    RS_CHECK((wait == RS_WAIT_LIST || wait == RS_WAIT_MUTEX) == (kind != NULL));
    if (list) rs_list_append(engine, list, me, (uintptr_t)kind);
    rs_wake_kind wake = park(machine, me, result);
    /* A kill of the thread ended the strands that it waited for, so the kill is raised and not their outcome. */
    bool for_strands = wait == RS_WAIT_JOIN || wait == RS_WAIT_SCOPE;
    bool killed = for_strands && ((rsb_strand *)rs_strand_user(me))->kill_pending;
    bool late = has_pending(me) && has_nothing_to_lose(wait) && !(flags & RS_PARK_SHIELDED);
    return RS_UNLIKELY(killed || late) ? RS_WAKE_INTERRUPT : wake;
}

rs_wake_kind rsb_wait(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                      const rsb_list_kind *kind, int64_t *result) {
    if (RS_UNLIKELY(!(flags & RS_PARK_SHIELDED) && ruby_stack_check())) too_deep();
    return wait_until(machine, wait, flags, deadline_ns, list, kind, result);
}

rs_wake_kind rsb_await(rsb_machine *machine, int64_t deadline_ns, rs_list *list) {
    rsb_check_stack();
    rs_strand *me = rs_running(machine->engine);
    return rs_await_begin(machine->engine, list, deadline_ns) == 0 ? rs_refused(machine->engine) : park(machine, me, NULL);
}

void rsb_check_stack(void) {
    if (RS_UNLIKELY(ruby_stack_check())) too_deep();
}

rs_wake_kind rsb_wait_checked(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                              const rsb_list_kind *kind, int64_t *result) {
    return wait_until(machine, wait, flags, deadline_ns, list, kind, result);
}

rs_wake_kind rsb_wait_on_the_way_out(rsb_machine *machine, rs_wait_kind wait, int64_t deadline_ns, rs_list *list,
                                     const rsb_list_kind *kind) {
    int64_t end_ns = rs_patience_begin(machine->engine);
    if (end_ns == 0) return RS_WAKE_CANCEL;
    rs_wake_kind woken = wait_until(machine, wait, RS_PARK_SHIELDED, deadline_ns < end_ns ? deadline_ns : end_ns, list, kind, NULL);
    rs_patience_end(machine->engine);
    return woken == RS_WAKE_TIMEOUT ? RS_WAKE_CANCEL : woken;
}

static inline void run_others(rsb_machine *machine, rs_strand *me) {
    rs_yield(machine->engine);
    park(machine, me, NULL);
}

static void raise_for_itself(rsb_machine *machine, const rs_strand *me) {
    if (RS_LIKELY(rs_strand_interrupts(me) == 0) || rs_refusal(machine->engine, 0) != RS_WAKE_INTERRUPT) return;
    rsb_raise_wake(machine, RS_WAKE_INTERRUPT);
}

static inline void yield(rsb_machine *machine, bool resumable) {
    rs_machine *engine = machine->engine;
    rs_wake_kind kind = rs_refusal(engine, 0);
    if (RS_UNLIKELY(kind != RS_WAKE_VALUE)) rsb_raise_wake(machine, kind);
    rs_strand *me = rs_running(engine);
    if (resumable) rs_make_resumable(me, rs_next_ticket(engine));
    run_others(machine, me);
    /* What came during the yield is raised here, and not only at the next wait: a yield has no result that would be lost. */
    bool raises = rs_strand_interrupts(me) > 0 || rs_strand_scope(me)->effective;
    if (RS_UNLIKELY(raises)) rsb_raise_wake(machine, rs_refusal(engine, 0));
}

static inline void check_stack(const rs_request *request) {
    if (RS_LIKELY(!ruby_stack_check())) return;
    free(request->owned);
    rsb_check_stack();
}

/* These raise here. Errors of the kernel are for the caller, who might take these two for one of them. */
static bool is_no_answer(int64_t result) { return result == RS_NO_MEMORY || result == RS_LOST; }

/* Thread#raise, or a signal, has interrupted the root when its op had completed. It is raised in this call all the same: the code
 * behind it is not meant any more, for example outside of Timeout.timeout. Nobody gets what the op has made. */
RSB_APART static void raise_after_all(rsb_machine *machine, const rs_request *request, int64_t result) {
    rs_op_makes makes = rs_request_traits(request)->makes;
    RS_CHECK(makes != RS_MAKES_PAIR); /* which never waits */
    if (result >= 0 && makes != RS_MAKES_NOTHING) rs_descriptor_discard(machine->engine, (int)result);
    rsb_raise_pending(machine);
}

int64_t rsb_perform(rsb_machine *machine, rs_request *request, const rsb_op_wait *wait) {
    rs_machine *engine = machine->engine;
    check_stack(request);
    if (RB_TYPE_P(wait->io, T_FILE)) request->options |= RS_REQUEST_OF_OBJECT;
    rs_strand *me = rs_running(engine);
    rs_op *op = rs_op_start(engine, request, wait->flags, wait->deadline_ns ? wait->deadline_ns : RS_NEVER);
    if (!op) {
        free(request->owned);
        rsb_raise_wake(machine, rs_refused(engine));
    }
    rs_op_keep(op, wait->io ? wait->io : wait->keep);
    int64_t result = 0;
    rs_wake_kind kind = park(machine, me, &result);
    if (wait->take) wait->take(op, wait->argument);
    if (wait->answer) memcpy(wait->answer, rs_op_request(op)->owned, wait->answer_size);
    bool fails = is_no_answer(result) || (result == -EBADF && rs_op_was_closed(op) && !wait->answers_close);
    rs_op_end(engine, op);
    bool done = kind == RS_WAKE_VALUE || kind == RS_WAKE_TIMEOUT;
    if (RS_UNLIKELY(done && has_pending(me)) && !(wait->flags & RS_PARK_SHIELDED) && !wait->takes_bytes_first) {
        raise_after_all(machine, request, kind == RS_WAKE_VALUE ? result : -1);
    }
    if (RS_UNLIKELY(kind == RS_WAKE_TIMEOUT)) return RSB_TIME_IS_UP;
    rsb_raise_wake(machine, kind);
    if (RS_UNLIKELY(fails)) rsb_fail(result, rs_op_kinds[request->kind].name, request->fd);
    return result;
}

void rsb_yield(rsb_machine *machine) { yield(machine, false); }

void rsb_give_way(rsb_machine *machine) {
    rs_strand *me = rs_running(machine->engine);
    run_others(machine, me);
    raise_for_itself(machine, me);
}

void rsb_resume_first(rsb_machine *machine, rs_strand *strand) {
    if (!rs_unblock_first(machine->engine, strand)) return;
    rs_strand *me = rs_running(machine->engine);
    rs_yield_to_first(machine->engine);
    park(machine, me, NULL);
    raise_for_itself(machine, me);
}

void rsb_end_turn(rsb_machine *machine) {
    rs_wake_kind kind = rs_turn_refusal(machine->engine);
    if (RS_UNLIKELY(kind != RS_WAKE_VALUE)) rsb_raise_wake(machine, kind);
    rsb_give_way(machine);
}

void rsb_yield_resumable(rsb_machine *machine) { yield(machine, true); }

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

void rsb_init_switch(void) {
    id_transfer = rb_intern("transfer");
    runner_body = rsb_fiber_body(runner_main);
    maker_body = rsb_fiber_body(maker_main);
    own_body = rsb_fiber_body(own_fiber_main);
    fiber_error = rb_path2class("FiberError");
    rb_gc_register_address(&fiber_error);
    rb_define_method(rsb_cMachine, "yield", machine_yield, 0);
}
