/* idle: what the loop does while no strand is ready: it sleeps, takes interrupts of the thread, and ends a deadlock. */
#include "inner.h"
#include "pending.h"

#include <ruby/ractor.h>
#include <stdatomic.h>

ID rsb_id_only_looks;
static ID id_list;

/* True from when a machine of the main ractor has taken the GVL after a sleep, until some machine goes to sleep. A hint: a machine
 * that gives the GVL away otherwise leaves it true. */
static _Atomic bool gvl_taken;

void rsb_share_gvl(rsb_machine *machine) { rs_share_lock(machine->engine, &gvl_taken); }

typedef struct {
    rsb_machine *machine;
    int64_t deadline_ns;
} sleep_request;

static void *sleep_without_gvl(void *argument) {
    sleep_request *request = argument;
    if (rs_shares_lock(request->machine->engine)) atomic_store(&gvl_taken, false);
    rs_sleep(request->machine->engine, request->deadline_ns);
    return NULL;
}

static void wake_sleeper(void *machine) { rs_wake_up(((rsb_machine *)machine)->engine); }

static VALUE check_interrupts(VALUE unused) {
    rb_thread_check_ints();
    return Qnil;
}

/* Runs signal handlers and takes what is raised for the thread; true if something was. */
static bool take_interrupts(rsb_machine *machine, rs_strand *here) {
    int state = 0;
    rb_protect(check_interrupts, Qnil, &state);
    if (state) rsb_caught_in_loop(machine, here, state);
    return state;
}

NORETURN(static void end_of_child(rsb_machine *machine));
static void end_of_child(rsb_machine *machine) {
    RSB_EACH_PART(child_ends, machine);
    rb_bug("ringspun: a forked child goes on without a strand");
}

/* A signal handler has forked while the machine slept. Only the strand on whose stack the loop ran exists in the child, and what
 * it waited for stayed in the parent. */
static void forked_in_loop(rsb_machine *machine, rs_strand *here) {
    if (!here) end_of_child(machine);
    rsb_strand *strand = rs_strand_user(here);
    rs_survive_fork(machine->engine, here);
    rsb_after_fork(machine);
    if (NIL_P(strand->raises)) strand->raises = rb_ary_new();
    rb_ary_push(strand->raises, rb_exc_new_cstr(rsb_eClosed, "forked by a signal handler: what this strand waited for stayed in "
                                                "the parent process"));
    rs_end_wait_of_survivor(machine->engine);
}

static bool wake_by_real_things(rsb_machine *machine) {
    bool woken = false;
    for (const rsb_part *part = rsb_parts; part; part = part->next) {
        if (part->wakes_by_real_things && part->wakes_by_real_things(machine)) woken = true;
    }
    return woken;
}

static bool one_waits_for_real_things(const rsb_machine *machine) {
    for (const rsb_part *part = rsb_parts; part; part = part->next) {
        if (part->waits_for_real_things && part->waits_for_real_things(machine)) return true;
    }
    return false;
}

static void sleep_interruptible(rsb_machine *machine, rs_strand *here, int64_t deadline_ns) {
    sleep_request request = {machine, deadline_ns};
    /* Thread.handle_interrupt(... => :on_blocking) keeps interrupts until the thread blocks, which it does here. */
    if (take_interrupts(machine, here) || rsb_forks != machine->fork_count) return;
    /* A signal handler that raised nothing may have woken or cancelled a strand, after the decision to sleep until then. */
    if (rs_has_work(machine->engine, deadline_ns)) return;
    if (rs_is_simulated(machine->engine)) {
        if (!wake_by_real_things(machine)) rs_sleep(machine->engine, deadline_ns);
    } else {
        rb_nogvl(sleep_without_gvl, &request, wake_sleeper, machine, RB_NOGVL_INTR_FAIL | RB_NOGVL_UBF_ASYNC_SAFE);
        if (rs_shares_lock(machine->engine)) atomic_store(&gvl_taken, true);
    }
    take_interrupts(machine, here);
    if (RS_UNLIKELY(rsb_forks != machine->fork_count)) forked_in_loop(machine, here);
}

static VALUE list_threads(VALUE unused) { return rb_funcall(rb_cThread, id_list, 0); }

static bool joins_thread(const rs_strand *strand) {
    if (!rs_strand_is(strand, RS_STRAND_PARKED) || rs_strand_wait(strand) != RS_WAIT_BLOCK) return false;
    return rsb_is_thread(((rsb_strand *)rs_strand_user(strand))->blocker);
}

static bool one_joins_thread(const rs_strands *strands) {
    RS_EACH_STRAND(strands, strand) {
        if (joins_thread(strand)) return true;
    }
    return false;
}

static bool one_may_wake_us(VALUE threads) {
    VALUE here = rb_thread_current();
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        VALUE thread = RARRAY_AREF(threads, i);
        if (thread != here && !RTEST(rb_attr_get(thread, rsb_id_only_looks))) return true;
    }
    return false;
}

/* Only the values of a channel can come from another ractor. */
static bool one_waits_for_ractors(rs_machine *engine) {
    if (rs_somebody_waits(engine, RS_WAIT_CHANNEL)) return true;
    RS_EACH_STRAND(rs_strands_of(engine), strand) {
        const rsb_list_kind *kind = rsb_list_kind_of(strand);
        if (kind && kind->for_ractors) return true;
    }
    return false;
}

static VALUE count_ractors(VALUE unused) { return rb_funcall(rb_cRactor, rb_intern("count"), 0); }

static bool ractor_may_wake_us(rs_machine *engine) {
    if (!one_waits_for_ractors(engine)) return false;
    int state = 0;
    VALUE count = rb_protect(count_ractors, Qnil, &state);
    if (state) rb_set_errinfo(Qnil);
    return state || count != INT2FIX(1);
}

/* A signal may have been sent that has not had its effect yet. When none is under way any more, the machine sleeps once more, for
 * only then it takes interrupts: what the last signal has asked for is done before this counts as a deadlock. */
static bool signal_may_come(rsb_machine *machine) {
    if (rs_is_simulated(machine->engine) || machine->look == RSB_LOOK_LAST) return false;
    if (machine->look != RSB_LOOK_FOR_SIGNALS) rsb_pending_begin(&machine->pending);
    machine->look = rsb_signal_is_pending(&machine->pending) ? RSB_LOOK_FOR_SIGNALS : RSB_LOOK_LAST;
    return true;
}

/* What a strand waits for most often comes soon. So when one has run since the last look, the machine sleeps for SOON_NS before it
 * asks who is there that could wake any. */
static bool may_come_soon(rsb_machine *machine) {
    uint64_t resumes = rs_turn_number(machine->engine);
    if (machine->looked_after_resumes == resumes || rs_is_simulated(machine->engine)) return false;
    machine->looked_after_resumes = resumes;
    machine->look = RSB_LOOK_SOON;
    return true;
}

/* Whether something outside of the machine may wake a strand. In a simulation only the end of a real thread and an outside wait
 * are that. A strand that sleeps without a limit waits for a signal handler, as in Kernel#sleep. */
static bool somebody_may_wake(rsb_machine *machine) {
    if (one_waits_for_real_things(machine)) return true;
    if (rs_is_simulated(machine->engine) && !one_joins_thread(rs_strands_of(machine->engine))) return false;
    if (rs_somebody_waits(machine->engine, RS_WAIT_SLEEP)) return true;
    int state = 0;
    VALUE threads = rb_protect(list_threads, Qnil, &state);
    bool others = state || one_may_wake_us(threads) || ractor_may_wake_us(machine->engine);
    if (state) rb_set_errinfo(Qnil);
    return others;
}

static bool others_may_wake(rs_machine *engine) {
    rsb_machine *machine = rs_user_of(engine);
    if (may_come_soon(machine)) return true;
    if (!somebody_may_wake(machine)) return signal_may_come(machine);
    machine->look = RSB_LOOK_FOR_OTHERS;
    return true;
}

static VALUE deadlock_error(VALUE self) {
    VALUE report = rb_funcall(self, rb_intern("deadlock_report"), 0);
    return rb_exc_new_str(rsb_eDeadlock, report);
}

static void on_deadlock(rs_machine *engine, rs_strand *root) {
    rsb_machine *machine = rs_user_of(engine);
    int state = 0;
    VALUE error = rb_protect(deadlock_error, machine->self, &state);
    if (state) {
        error = rb_errinfo();
        rb_set_errinfo(Qnil);
    }
    rsb_deliver(machine, rs_strand_user(root), error);
}

/* How long the machine sleeps before it looks again. While only another thread can wake it, that is whether this one still exists,
 * and a second is soon enough. What a strand has just begun to wait for mostly comes sooner (may_come_soon), and a signal within
 * some ticks of a processor's clock (pending.h). */
#define OTHERS_NS 1000000000
#define SOON_NS 50000000
#define SIGNALS_NS 2000000

/* Not beyond the engine's reminder: it is due then, although it is nothing that could wake a strand. */
static int64_t next_look_ns(rsb_machine *machine) {
    static const int64_t delays_ns[] = {
        [RSB_LOOK_FOR_OTHERS] = OTHERS_NS, [RSB_LOOK_SOON] = SOON_NS, [RSB_LOOK_FOR_SIGNALS] = SIGNALS_NS, [RSB_LOOK_LAST] = SIGNALS_NS
    };
    int64_t look_ns = rs_now(machine->engine) + delays_ns[machine->look], reminder_ns = rs_next_timer(machine->engine);
    return reminder_ns < look_ns ? reminder_ns : look_ns;
}

/* How long a simulated machine sleeps, in real time, before it looks again for something real (outside.h). */
#define SIMULATED_LOOK_NS 1000000

static void *pause_without_gvl(void *unused) {
    nanosleep(&(struct timespec){.tv_nsec = SIMULATED_LOOK_NS}, NULL);
    return NULL;
}

static VALUE is_alive(VALUE thread) { return rb_funcall(thread, rb_intern("alive?"), 0); }

/* CRuby unblocks the joiners of a thread once (rb_threadptr_join_list_wakeup in thread.c), and the thread may still have been
 * alive when they looked. */
static void wake_joiners(rsb_machine *machine) {
    RS_EACH_STRAND(rs_strands_of(machine->engine), strand) {
        if (!joins_thread(strand)) continue;
        int state = 0;
        VALUE alive = rb_protect(is_alive, ((rsb_strand *)rs_strand_user(strand))->blocker, &state);
        if (state) rb_set_errinfo(Qnil);
        else if (!RTEST(alive)) rs_unblock(machine->engine, strand);
    }
}

/* A thread that a simulated strand joins, and an outside wait, take real time and no virtual time. */
static void let_threads_run(rsb_machine *machine, rs_strand *here) {
    rb_nogvl(pause_without_gvl, NULL, RUBY_UBF_IO, NULL, RB_NOGVL_INTR_FAIL);
    if (take_interrupts(machine, here)) return;
    if (RS_UNLIKELY(rsb_forks != machine->fork_count)) {
        forked_in_loop(machine, here);
        return;
    }
    wake_joiners(machine);
    wake_by_real_things(machine);
}

static void wait_for_others(rsb_machine *machine, rs_strand *here) {
    if (rs_is_simulated(machine->engine)) let_threads_run(machine, here);
    else sleep_interruptible(machine, here, next_look_ns(machine));
}

void rsb_without_strand(rsb_machine *machine, rs_strand *here, rs_decision decision) {
    if (RS_UNLIKELY(rs_strands_live(rs_strands_of(machine->engine)) == 0)) end_of_child(machine);
    if (decision.verdict == RS_SLEEP) {
        machine->look = RSB_LOOK_FOR_OTHERS;
        sleep_interruptible(machine, here, decision.deadline_ns);
    } else if (!rs_break_deadlock(machine->engine)) {
        wait_for_others(machine, here);
    }
}

static bool gvl_is_wanted(rs_machine *engine) { return !rb_thread_alone(); }

void rsb_init_idle(void) {
    rsb_id_only_looks = rb_intern("ringspun_only_looks");
    id_list = rb_intern("list");
    rsb_driver.others_may_wake = others_may_wake;
    rsb_driver.on_deadlock = on_deadlock;
    rsb_driver.lock_is_wanted = gvl_is_wanted;
}
