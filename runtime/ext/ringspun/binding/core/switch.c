/* switch: the only place that changes fibers.
 *
 * There is no loop fiber. Whoever parks runs the loop on its own stack (rsb_park) and transfers straight to the next
 * strand. Park is a loop because a fiber can be switched in without its turn: by Fiber#raise, #kill, #resume from
 * somewhere else, or by CRuby when another fiber ends. Every transfer is protected, because CRuby checks interrupts at
 * a switch: what arrives then is meant for the thread and goes to the root strand, and the strand that was switched in
 * keeps its own wake.
 */
#include "inner.h"

#include <errno.h>
#include <string.h>

static ID id_transfer;
static VALUE fiber_error;

/* --- runners: fibers that run strands, one after the other --- */

static VALUE transfer(VALUE fiber) { return rb_fiber_transfer(fiber, 0, NULL); }

/* What they run, as rsb_fiber_new takes it. */
static VALUE runner_body, maker_body, own_body;

static VALUE stackless_error(VALUE cause) {
    return rb_exc_new_str(rsb_eLimit, rb_sprintf("no stack for one more strand (%" PRIsVALUE "); %" PRIsVALUE ", or bound how many "
                          "strands wait at once, for example with a Ringspun::Semaphore", cause, rsb_stack_limit()));
}

/* When the process is out of stacks, CRuby takes tens of milliseconds to find out: not for every strand in the queue. */
#define STACKLESS_FOR_NS 100000000

/* CRuby makes a fiber's stack at the first switch to it, so that is where the lack of one shows. */
static void fail_stackless(rsb_machine *machine, rs_strand *strand) {
    int state = 0;
    VALUE error = rb_protect(stackless_error, rb_errinfo(), &state);
    if (state) error = rb_errinfo();
    rb_set_errinfo(Qnil);
    machine->stackless_error = error;
    machine->stackless_until_ns = rs_clock_ns() + STACKLESS_FOR_NS;
    rsb_strand_fail(machine, strand, error);
}

/* Making a fiber takes a deeper stack than most waits, and whoever waits keeps the pages that its stack has ever had. So that is
 * done by a fiber of its own. Qundef: there can be none. */
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

/* A fiber for a strand that has none yet; Qundef when there can be none, and the strand has failed. */
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
        fail_stackless(machine, strand);
    } else {
        rsb_strand_fail(machine, strand, error);
    }
    return Qundef;
}

/* CRuby gives the stack of a fiber that was transferred to and has ended back when it collects it, and does not collect for
 * want of stacks. False: that was tried for this strand already. */
static bool try_again_after_gc(rsb_machine *machine, rs_strand *strand) {
    if (machine->collected_for == rs_strand_id(strand)) return false;
    machine->collected_for = rs_strand_id(strand);
    rb_set_errinfo(Qnil);
    rs_displaced(&machine->engine);
    rsb_runners_collect();
    return true;
}

/* The switch to that strand failed: it did not take place, or came back because its fiber is dead. (Its own: the inner fiber
 * that was switched to may well have ended, and then the strand has switched to us.) */
static bool cannot_run(rsb_machine *machine, rs_strand *strand) {
    if (machine->engine.running != strand->index) return false;
    rsb_strand *target = strand->user;
    VALUE error = rb_errinfo();
    if (!target->started && rb_obj_is_kind_of(error, fiber_error)) {
        if (!try_again_after_gc(machine, strand)) fail_stackless(machine, strand);
        return true;
    }
    if (!target->started || NIL_P(target->home) || RTEST(rb_fiber_alive_p(target->home))) return false;
    rb_set_errinfo(Qnil);
    rsb_strand_fail(machine, strand, error);
    return true;
}

/* Somebody's code switched to us, and the strand that ran it is left in the middle of that call. */
static void note_displaced(rsb_machine *machine) {
    if (RS_LIKELY(machine->engine.running == RS_NO_INDEX)) return;
    ((rsb_strand *)rs_running(&machine->engine)->user)->displaced = true;
}

static VALUE transfer_checked(VALUE fiber) { return rb_funcallv(fiber, id_transfer, 0, NULL); }

/* Which fiber it was that made the call nobody tells: the one that waited last, or the strand's own. Of a fiber that cannot
 * have been it, because it has ended, yielded or resumed another, Fiber#transfer says so, unlike the call of the C API. */
static int return_to_displaced(rsb_machine *machine, rs_strand *strand, VALUE here) {
    rsb_strand *target = strand->user;
    VALUE fibers[2] = {target->fiber, target->home};
    target->displaced = false;
    for (int i = 0; i < 2; i++) {
        if (NIL_P(fibers[i]) || !RTEST(rb_fiber_alive_p(fibers[i]))) continue;
        if (fibers[i] == here) return 0;
        int state = 0;
        rb_protect(transfer_checked, fibers[i], &state);
        bool refused = state && machine->engine.running == strand->index && rb_obj_is_kind_of(rb_errinfo(), fiber_error);
        if (!refused) return state;
        rb_set_errinfo(Qnil);
    }
    rsb_strand_fail(machine, strand, rb_exc_new_cstr(rsb_eUsage, "this strand has switched to another strand's fiber, from "
                    "inside a fiber of its own that is not known here, and cannot be found again; use Machine#schedule"));
    return 0;
}

static VALUE first_fiber(rsb_machine *machine, rs_strand *strand, VALUE here) {
    rsb_strand *target = strand->user;
    if (RS_LIKELY(!target->own_fiber)) return take_runner(machine, strand, here);
    rsb_stacks_lock(machine);
    return target->fiber;
}

/* Gives the thread to that strand; returns when this fiber is switched in again, for whatever reason. Non-zero: the state
 * of rb_protect. */
static inline int switch_to(rsb_machine *machine, rs_strand *strand, VALUE here) {
    rsb_strand *target = strand->user;
    if (RS_UNLIKELY(target->displaced)) return return_to_displaced(machine, strand, here);
    VALUE fiber = target->started ? target->fiber : first_fiber(machine, strand, here);
    if (fiber == Qundef || fiber == here) return 0;
    int state = 0;
    rb_protect(transfer, fiber, &state);
    if (RS_LIKELY(!state)) return 0;
    rsb_stacks_unlock(machine); /* it did not even begin */
    return cannot_run(machine, strand) ? 0 : state;
}

/* One turn of the loop for a fiber that has nothing to run: the strand to run, or NULL to look again. */
static inline rs_strand *turn(rsb_machine *machine, rs_strand *here) {
    rs_decision decision = rs_next(&machine->engine);
    if (RS_LIKELY(decision.verdict == RS_RUN)) return decision.strand;
    rsb_without_strand(machine, here, decision);
    return NULL;
}

/* As a rule it was taken out of the list in order to run. */
static void leave_idle(rsb_machine *machine, VALUE fiber) {
    VALUE taken = machine->idle_taken;
    machine->idle_taken = 0;
    if (RS_UNLIKELY(taken != fiber)) rsb_runners_remove(&machine->runners, fiber);
}

/* The runner has nothing of its own: waits in the idle list for a strand. False: it was killed meanwhile, which CRuby repeats
 * at every switch to it, so it must not be used again. It waits outside of the list then, until it is collected. */
RSB_APART static bool idle(rsb_machine *machine, rs_strand *next, VALUE here, bool usable) {
    if (RS_LIKELY(usable)) rsb_runners_put(&machine->runners, here);
    int state = switch_to(machine, next, here);
    leave_idle(machine, here);
    bool by_others = machine->engine.running != RS_NO_INDEX && ((rsb_strand *)rs_running(&machine->engine)->user)->started;
    if (RS_LIKELY(!by_others)) {
        if (state) rsb_caught_in_loop(machine, NULL, state);
        return usable;
    }
    /* What was raised here was meant for a strand that has ended. */
    note_displaced(machine);
    bool killed = state && rb_errinfo() == RSB_FIBER_KILLED;
    rb_set_errinfo(Qnil);
    return usable && !killed;
}

/* CRuby goes on with the root's fiber when a runner ends. That is right while its park loop takes over there, and not while it
 * is in the middle of a transfer to some other fiber. Nor with several ractors: CRuby 3.4 gives the stack back at once then. */
RSB_APART static bool may_end(rsb_machine *machine) {
    if (RS_UNLIKELY(rsb_stacks_are_shared())) return false;
    rs_strand *root = rs_root(&machine->engine);
    if (!root) return false; /* a forked child, whose root has ended: here is where its end is noticed (rsb_without_strand) */
    bool parked = root->state == RS_STRAND_PARKED || root->state == RS_STRAND_READY;
    rsb_strand *handle = root->user;
    return parked && !handle->displaced && handle->fiber == machine->root_fiber;
}

/* Ends when its fiber cannot be used again, or there is no memory to keep it. */
static VALUE runner_main(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused)) {
    rsb_machine *machine = rsb_existing();
    rsb_stacks_unlock(machine);
    VALUE here = rb_fiber_current();
    bool usable = true;
    for (;;) {
        rs_machine *engine = &machine->engine;
        rs_strand *strand = engine->running == RS_NO_INDEX ? turn(machine, NULL) : rs_running(engine);
        if (!strand) continue;
        rsb_strand *target = strand->user;
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

/* Runs no strand, and gives way to those that need a fiber with one that it has made. */
static VALUE maker_main(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused)) {
    rsb_machine *machine = rsb_existing();
    rsb_stacks_unlock(machine);
    VALUE here = rb_fiber_current();
    for (;;) {
        rs_machine *engine = &machine->engine;
        rs_strand *strand = engine->running == RS_NO_INDEX ? turn(machine, NULL) : rs_running(engine);
        if (strand) idle(machine, strand, here, false);
    }
    return Qnil;
}

/* --- parking --- */

/* CRuby raises it again by itself where the hook has done its work by now: a second one would meet a later wait. */
static bool is_end_of_hook(rsb_machine *machine) {
    return machine->engine.running != RS_NO_INDEX && rsb_running(machine)->ends_hook;
}

/* Switched in: with our turn, or by somebody who does not know of turns (then what was raised here is meant for us). */
static void after_switch(rsb_machine *machine, rs_strand *me, int state) {
    if (RS_LIKELY(!state)) return;
    VALUE exception = rb_errinfo();
    if (machine->engine.running == me->index && exception != RSB_FIBER_KILLED) {
        rsb_caught_in_loop(machine, me, state);
        return;
    }
    if (rsb_is_exception(exception)) {
        rb_set_errinfo(Qnil);
        if (is_end_of_hook(machine)) rsb_interrupt_hook(machine, me->user, exception);
        else rsb_deliver(machine, me->user, exception);
    } else {
        rsb_deliver_kill(machine, me->user, exception, state);
    }
}

/* Where the loop goes on: `next` runs, or whoever is found. */
static inline rs_wake_kind park_behind(rsb_machine *machine, rs_strand *me, rs_strand *next, int64_t *result) {
    rs_machine *engine = &machine->engine;
    VALUE here = rb_fiber_current();
    rsb_strand *self = me->user;
    self->fiber = here;
    for (;;) {
        if (!next) {
            rs_displaced(engine);
            next = turn(machine, me);
            if (next == me) break;
            if (!next) continue;
        }
        int state = switch_to(machine, next, here);
        next = NULL;
        after_switch(machine, me, state);
        if (engine->running == me->index) break;
        note_displaced(machine);
    }
    return rs_park_end(engine, result);
}

static inline rs_wake_kind park(rsb_machine *machine, rs_strand *me, int64_t *result) {
    rsb_strand *self = me->user;
    if (RS_UNLIKELY(self->batch != NULL)) self->work->hand_over(machine, self);
    return park_behind(machine, me, NULL, result);
}

static VALUE own_fiber_main(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused)) {
    rsb_machine *machine = rsb_existing();
    rsb_stacks_unlock(machine);
    VALUE here = rb_fiber_current();
    if (machine->engine.running != RS_NO_INDEX && !rsb_running(machine)->started) {
        rsb_strand_run(machine, rs_running(&machine->engine), here);
    }
    while (!may_end(machine)) {
        rs_strand *strand = machine->engine.running == RS_NO_INDEX ? turn(machine, NULL) : rs_running(&machine->engine);
        if (strand) idle(machine, strand, here, false);
    }
    rs_displaced(&machine->engine);
    return Qnil;
}

NORETURN(static void too_deep(void));
static void too_deep(void) { rb_raise(rb_eSysStackError, "stack level too deep to wait"); }

VALUE rsb_own_fiber(rsb_machine *machine) {
    if (RS_UNLIKELY(ruby_stack_check())) too_deep();
    return rsb_fiber_new(own_body);
}

void rsb_run_first(rsb_machine *machine, rs_strand *caller, rs_strand *first) {
    RS_ASSERT(rs_running(&machine->engine) == first);
    rs_turn turn = rs_turn_pause(&machine->engine);
    park_behind(machine, caller, first, NULL);
    rs_turn_go_on(&machine->engine, &turn);
}

void rsb_raise_refusal(rsb_machine *machine) {
    if (RS_UNLIKELY(ruby_stack_check())) too_deep();
    rsb_raise_wake(machine, rs_refusal(&machine->engine, 0));
}

void rsb_raise_pending(rsb_machine *machine) {
    rs_strand *me = rs_running(&machine->engine);
    rsb_strand *strand = me->user;
    if (RS_LIKELY(!strand->urgent) || me->shield_depth > 0) return;
    strand->urgent = false;
    if (me->interrupts > 0) rsb_raise_wake(machine, RS_WAKE_INTERRUPT);
}

static inline rs_wake_kind wait_until(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                                      uint64_t tag, int64_t *result) {
    rs_machine *engine = &machine->engine;
    rs_strand *me = rs_running(engine);
    if (rs_park_begin(engine, wait, flags, deadline_ns) == 0) return engine->refusal;
    if (list) rs_list_append(engine, list, me, tag);
    rs_wake_kind kind = park(machine, me, result);
    /* What it waited for has ended because the thread is being killed: that, and not how it ended, is the news. */
    bool for_strands = wait == RS_WAIT_JOIN || wait == RS_WAIT_SCOPE;
    return RS_UNLIKELY(for_strands && ((rsb_strand *)me->user)->kill_pending) ? RS_WAKE_INTERRUPT : kind;
}

rs_wake_kind rsb_wait(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                      uint64_t tag, int64_t *result) {
    if (RS_UNLIKELY(!(flags & RS_PARK_SHIELDED) && ruby_stack_check())) too_deep();
    return wait_until(machine, wait, flags, deadline_ns, list, tag, result);
}

void rsb_check_stack(void) {
    if (RS_UNLIKELY(ruby_stack_check())) too_deep();
}

rs_wake_kind rsb_wait_checked(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, int64_t *result) {
    return wait_until(machine, wait, flags, deadline_ns, NULL, 0, result);
}

static inline void yield(rsb_machine *machine, bool resumable) {
    rs_machine *engine = &machine->engine;
    rs_wake_kind kind = rs_refusal(engine, 0);
    if (RS_UNLIKELY(kind != RS_WAKE_VALUE)) rsb_raise_wake(machine, kind);
    rs_strand *me = rs_running(engine);
    rs_yield(engine);
    if (resumable) rsb_mark_resumable(me->user, me->ticket);
    park(machine, me, NULL);
    /* Raised at this wait, which takes nothing, and not only at the next one. */
    if (RS_UNLIKELY(me->interrupts > 0 || me->scope->effective)) rsb_raise_wake(machine, rs_refusal(engine, 0));
}

static inline void check_stack(const rs_request *request) {
    if (RS_LIKELY(!ruby_stack_check())) return;
    free(request->owned);
    rsb_check_stack();
}

/* The kernel's errors are the caller's to tell; these it might take for one of those. */
static bool is_no_answer(int64_t result) { return result == RS_NO_MEMORY || result == RS_LOST; }

int64_t rsb_perform(rsb_machine *machine, rs_request *request, const rsb_op_wait *wait) {
    rs_machine *engine = &machine->engine;
    check_stack(request);
    if (RB_TYPE_P(wait->io, T_FILE)) request->options |= RS_REQUEST_OF_OBJECT;
    rs_strand *me = rs_running(engine);
    rs_op *op = rs_op_start(engine, request, wait->flags, wait->deadline_ns ? wait->deadline_ns : RS_NEVER);
    if (!op) {
        free(request->owned);
        rsb_raise_wake(machine, engine->refusal);
    }
    rs_op_keep(op, wait->io ? wait->io : wait->keep);
    int64_t result = 0;
    rs_wake_kind kind = park(machine, me, &result);
    if (wait->take) wait->take(op, wait->argument);
    if (wait->answer) memcpy(wait->answer, op->request.owned, wait->answer_size);
    bool fails = is_no_answer(result) || (op->closing && result == -EBADF && !wait->answers_close);
    rs_op_end(engine, op);
    if (RS_UNLIKELY(kind == RS_WAKE_TIMEOUT)) return RSB_TIME_IS_UP;
    rsb_raise_wake(machine, kind);
    if (RS_UNLIKELY(fails)) rsb_fail(result, rs_op_kinds[request->kind].name, request->fd);
    return result;
}

void rsb_yield(rsb_machine *machine) { yield(machine, false); }

void rsb_give_way(rsb_machine *machine) {
    rs_strand *me = rs_running(&machine->engine);
    rs_yield(&machine->engine);
    park(machine, me, NULL);
    if (RS_UNLIKELY(me->interrupts > 0) && rs_refusal(&machine->engine, 0) == RS_WAKE_INTERRUPT) {
        rsb_raise_wake(machine, RS_WAKE_INTERRUPT);
    }
}

void rsb_yield_resumable(rsb_machine *machine) { yield(machine, true); }

void rsb_init_switch(void) {
    id_transfer = rb_intern("transfer");
    runner_body = rsb_fiber_body(runner_main);
    maker_body = rsb_fiber_body(maker_main);
    own_body = rsb_fiber_body(own_fiber_main);
    fiber_error = rb_path2class("FiberError");
    rb_gc_register_address(&fiber_error);
}
