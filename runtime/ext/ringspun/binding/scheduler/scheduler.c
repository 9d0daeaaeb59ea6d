/* scheduler: Ringspun::Scheduler, the fiber scheduler, by whose hooks plain Ruby code waits in strands. Here: the hooks for
 * locks, time and fibers.
 *
 * CRuby calls `unblock` with a fiber; block_waits says which strand waits in that fiber. By then CRuby has removed the waiter
 * from the list of the lock, the queue or the thread (sync_wakeup in thread_sync.c, rb_threadptr_join_list_wakeup in thread.c),
 * so an unblock must neither be lost nor end another wait. From the same thread it takes effect at once. Another thread sends a
 * message with the ticket of the wait, which it reads with the GVL held.
 */
#include "scheduler.h"

#include <ruby/st.h>

VALUE rsb_cScheduler;
static ID id_blocking, id_alive_p, id_owner, id_block, id_kernel_sleep;
VALUE rsb_fiber_class;
static VALUE queue_class, mutex_class, timeout_message;

/* Waits of a machine in the hooks `block` and `kernel_sleep`. */
typedef struct {
    st_table *blocked;          /* fiber => id of the strand that waits in it; NULL: none so far */
    struct rsb_plain_wait *plain_waits; /* of signal handlers and finalizers that run between strands, the last one first */
    VALUE unblocked_fiber;      /* the fiber last unblocked between strands, after `unblocked_at` resumes; not kept alive */
    uint64_t unblocked_at;
} block_waits;

static rsb_part part;

static block_waits *waits_of(const rsb_machine *machine) { return rsb_part_data(machine, &part); }

static void forget_blocked(rsb_machine *machine, rsb_strand *survivor) {
    if (waits_of(machine)->blocked) st_clear(waits_of(machine)->blocked);
}

static void free_blocked(rsb_machine *machine) {
    if (waits_of(machine)->blocked) st_free_table(waits_of(machine)->blocked);
    waits_of(machine)->blocked = NULL;
}

/* Whether the permit of the engine's strand, if it has one, comes from a Thread::Queue. */
static bool *permit_by_queue_of(const rsb_strand *strand) { return rsb_strand_part(strand, &part); }

static rsb_part part = {.data_size = sizeof(block_waits), .strand_size = sizeof(bool), .forked = forget_blocked, .free = free_blocked};

static void scheduler_mark(void *data) { rb_gc_mark(((rsb_scheduler *)data)->machine); }

static const rb_data_type_t scheduler_type = {
    .wrap_struct_name = "Ringspun::Scheduler",
    .function = {.dmark = scheduler_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

int64_t rsb_interval_end(rsb_machine *machine, VALUE seconds) {
    if (NIL_P(seconds) || seconds == Qundef) return RS_NEVER;
    return rsb_deadline_after(machine, rsb_interval_ns(seconds));
}

static VALUE scheduler_allocate(VALUE class) {
    rsb_scheduler *scheduler;
    VALUE self = TypedData_Make_Struct(class, rsb_scheduler, &scheduler_type, scheduler);
    scheduler->machine = Qnil;
    return self;
}

rsb_scheduler *rsb_scheduler_of(VALUE self) {
    rsb_scheduler *scheduler;
    TypedData_Get_Struct(self, rsb_scheduler, &scheduler_type, scheduler);
    return scheduler;
}

/* --- the machine of a hook --- */

NORETURN(static void fail_elsewhere(void));
static void fail_elsewhere(void) {
    rb_raise(rsb_eWrongThread, "this scheduler serves another thread; give every thread a Ringspun::Scheduler of its own");
}

static bool is_bound(const rsb_scheduler *scheduler) {
    return !NIL_P(scheduler->machine) && !rsb_is_gone(rsb_machine_any_thread(scheduler->machine));
}

/* True on a worker thread: from 3.4 on blocking_operation_wait gives it a whole IO.copy_stream, which calls the hooks of the
 * strand's scheduler there. */
static bool is_elsewhere(VALUE self) {
    rsb_machine *here = rsb_existing();
    rsb_scheduler *scheduler = rsb_scheduler_of(self);
    return is_bound(scheduler) && (!here || here->self != scheduler->machine) && rb_fiber_scheduler_get() != self;
}

/* A scheduler whose machine was closed gets another one. */
static void bind(rsb_scheduler *scheduler, rsb_machine *machine, bool made) {
    if (is_bound(scheduler)) fail_elsewhere();
    scheduler->machine = machine->self;
    scheduler->own = made;
}

/* This thread's machine. NULL: the scheduler serves another thread. */
static rsb_machine *machine_of(VALUE self) {
    rsb_scheduler *scheduler = RTYPEDDATA_GET_DATA(self); /* unchecked: Ruby calls the hooks on nothing else */
    rsb_machine *machine = rsb_existing();
    if (RS_UNLIKELY(!machine || scheduler->machine != machine->self)) {
        if (is_elsewhere(self)) return NULL;
        bool made = !machine;
        if (made) machine = rsb_current();
        bind(scheduler, machine, made);
    }
    rsb_notice_fork(machine);
    return machine;
}

void rsb_scheduler_bind(VALUE self) { machine_of(self); }

rsb_machine *rsb_hook_machine(VALUE self) {
    rsb_machine *machine = machine_of(self);
    return RS_UNLIKELY(!machine || rsb_between_strands(machine)) ? NULL : machine;
}

rsb_machine *rsb_parking_machine(VALUE self, const char *what) {
    rsb_machine *machine = rsb_hook_machine(self);
    if (machine) return machine;
    if (is_elsewhere(self)) fail_elsewhere();
    rb_raise(rsb_eUsage, "%s: a signal handler or finalizer that runs while the machine switches cannot wait for others", what);
}

VALUE rsb_blocking(rb_block_call_func_t body, VALUE argument) {
    return rb_block_call(rsb_fiber_class, id_blocking, 0, NULL, body, argument);
}

/* --- locks --- */

static bool is_cut(rs_wake_kind kind) { return kind == RS_WAKE_CANCEL || kind == RS_WAKE_INTERRUPT; }

/* Waits that go on even if the strand is cancelled. IO#close has taken the descriptor from the IO already, and only this strand
 * can close it: it waits until the users of the IO, which CRuby interrupts, have left (rb_notify_fd_close_wait in thread.c of 3.3).
 * Mutex#sleep, which ConditionVariable#wait and Monitor call as well, takes the lock again at its end, also when it raises
 * (rb_mutex_sleep in thread_sync.c): its caller is inside a critical section. */
static bool must_see_its_end(VALUE blocker) {
    return rsb_called_from_io_close() || (!NIL_P(blocker) && rsb_called_by("Thread::Mutex", "sleep"));
}

static bool is_mutex(VALUE object) { return !rsb_is_hidden(object) && rb_obj_is_kind_of(object, mutex_class); }

/* True: unblocked; false: the time is up. */
static bool block_until(rsb_machine *machine, VALUE blocker, int64_t deadline_ns) {
    rsb_strand *strand = rsb_running(machine);
    VALUE fiber = rb_fiber_current();
    rsb_check_stack();
    block_waits *waits = waits_of(machine);
    if (!waits->blocked) waits->blocked = st_init_numtable();
    st_insert(waits->blocked, (st_data_t)fiber, (st_data_t)strand->id);
    strand->blocker = blocker;
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_BLOCK, 0, deadline_ns, NULL, NULL, NULL);
    if (RS_UNLIKELY(is_cut(kind)) && must_see_its_end(blocker)) {
        kind = rsb_wait_checked(machine, RS_WAIT_BLOCK, RS_PARK_SHIELDED, deadline_ns, NULL, NULL, NULL);
    } else if (RS_UNLIKELY(kind == RS_WAKE_CANCEL) && is_mutex(blocker)) {
        kind = rsb_wait_on_the_way_out(machine, RS_WAIT_BLOCK, deadline_ns, NULL, NULL);
    }
    strand->blocker = Qnil;
    st_data_t key = (st_data_t)fiber;
    if (waits->blocked) st_delete(waits->blocked, &key, NULL);
    RB_GC_GUARD(fiber);
    if (RS_UNLIKELY(is_cut(kind))) rsb_raise_wake(machine, kind);
    return kind == RS_WAKE_VALUE;
}

static bool is_live_thread(VALUE blocker) {
    return rsb_is_thread(blocker) && RTEST(rb_funcall(blocker, id_alive_p, 0));
}

static bool has_ended(VALUE blocker) { return rsb_is_thread(blocker) && !is_live_thread(blocker); }

static bool is_simulated(const rsb_machine *machine) { return rs_is_simulated(machine->engine); }
static bool is_queue(VALUE object) { return !rsb_is_hidden(object) && rb_obj_is_kind_of(object, queue_class); }

/* Raises for a wait with a limit that CRuby would measure by the real clock. After this hook returns, CRuby (queue_do_pop in
 * thread_sync.c, thread_join in thread.c) would find that no real time has passed, and wait for the whole limit again and again,
 * while virtual time runs away. */
static void need_virtual_time(rsb_machine *machine, VALUE blocker, int64_t limit_ns) {
    bool waits = limit_ns != RS_NEVER && limit_ns > rs_now(machine->engine);
    if (waits && is_queue(blocker)) {
        rb_raise(rsb_eUnsupported, "a simulation has no time for a %" PRIsVALUE ", which takes it from the real clock; use "
                 "Ringspun::Queue or Ringspun::SizedQueue, or Machine#timeout or Timeout.timeout around the call",
                 rb_obj_class(blocker));
    }
    if (!waits || !rsb_is_thread(blocker)) return;
    rb_raise(rsb_eUnsupported, "a simulation has no time in which a thread could end, because its own is virtual; use a strand, or "
             "join without a limit");
}

/* If `block` returns while the thread is alive, Thread#join takes that for a timeout. A thread unblocks its joiners once, and may
 * still be alive then, if an override of `unblock` waits. So this polls until the thread has ended. */
#define LOOK_NS 10000000

static bool wait_for_thread(rsb_machine *machine, VALUE thread, int64_t limit_ns) {
    while (is_live_thread(thread)) {
        /* In a simulation core/strand/idle.c looks for its end, when no strand can go on: it takes no virtual time. */
        int64_t look_ns = is_simulated(machine) ? RS_NEVER : rsb_deadline_after(machine, LOOK_NS);
        if (!block_until(machine, thread, look_ns < limit_ns ? look_ns : limit_ns) && look_ns >= limit_ns) return false;
    }
    return true;
}

/* --- locks, in a signal handler or finalizer between strands --- */

/* Lies on the stack of the fiber in which the machine sleeps or switches. The strand of that fiber may be blocked too. */
typedef struct rsb_plain_wait {
    rsb_machine *machine;
    struct rsb_plain_wait *outer;
    VALUE fiber;
    VALUE blocker;
    int64_t limit_ns;
    bool unblocked;
} plain_wait;

/* Pauses between two looks, doubled from the first to the last: a short wait is hardly longer for it, and a long one looks 200
 * times a second. */
#define PLAIN_PAUSE_MIN_NS 100000
#define PLAIN_PAUSE_MAX_NS 5000000

static bool goes_on_waiting(const plain_wait *wait) {
    return rsb_is_thread(wait->blocker) ? is_live_thread(wait->blocker) : !wait->unblocked;
}

/* Polls: no strand can run meanwhile anyway. */
static VALUE pause_until(VALUE argument) {
    plain_wait *wait = (plain_wait *)argument;
    for (int64_t pause_ns = PLAIN_PAUSE_MIN_NS; goes_on_waiting(wait);) {
        int64_t left_ns = wait->limit_ns - rs_clock_ns();
        if (left_ns <= 0) return Qfalse;
        if (pause_ns > left_ns) pause_ns = left_ns;
        rb_thread_wait_for((struct timeval){.tv_usec = pause_ns / 1000 + 1});
        if ((pause_ns *= 2) > PLAIN_PAUSE_MAX_NS) pause_ns = PLAIN_PAUSE_MAX_NS;
    }
    return Qtrue;
}

static VALUE end_plain_wait(VALUE argument) {
    plain_wait *wait = (plain_wait *)argument;
    waits_of(wait->machine)->plain_waits = wait->outer;
    return Qnil;
}

/* Another thread may have called `unblock` before CRuby called this hook. */
static bool is_unblocked_already(rsb_machine *machine, VALUE fiber) {
    block_waits *waits = waits_of(machine);
    bool now = waits->unblocked_fiber == fiber && waits->unblocked_at == rs_turn_number(machine->engine);
    waits->unblocked_fiber = 0;
    return now;
}

static VALUE wait_plainly(VALUE self, VALUE blocker, int64_t limit_ns) {
    if (is_elsewhere(self)) fail_elsewhere();
    rsb_machine *machine = rsb_existing();
    VALUE fiber = rb_fiber_current();
    block_waits *waits = waits_of(machine);
    plain_wait wait = {machine, waits->plain_waits, fiber, blocker, limit_ns, is_unblocked_already(machine, fiber)};
    waits->plain_waits = &wait;
    return rb_ensure(pause_until, (VALUE)&wait, end_plain_wait, (VALUE)&wait);
}

/* Unblocks all plain waits in that fiber: CRuby does not say which one is meant, and each checks its lock again. */
static bool end_pauses(rsb_machine *machine, VALUE fiber) {
    bool found = false;
    for (plain_wait *wait = waits_of(machine)->plain_waits; wait; wait = wait->outer) {
        if (wait->fiber == fiber) found = wait->unblocked = true;
    }
    if (found) return true;
    waits_of(machine)->unblocked_fiber = fiber;
    waits_of(machine)->unblocked_at = rs_turn_number(machine->engine);
    return false;
}

/* Called by Thread::Mutex, Thread::Queue, Thread#join and the like: waits for {#unblock}.
 *
 * May switch strands.
 *
 * @param blocker [Object] the lock, queue or thread, for reports
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Boolean] false when the time is up
 * @raise [UnsupportedError] in a simulation, for a queue or a thread with a limit
 * @since 0.1.0
 */
static VALUE scheduler_block(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    rsb_machine *machine = rsb_hook_machine(self);
    VALUE timeout = argc > 1 ? argv[1] : Qnil;
    if (RS_UNLIKELY(!machine)) return wait_plainly(self, argv[0], rsb_deadline_after(NULL, rsb_limit_ns(timeout)));
    int64_t limit_ns = rsb_deadline_after(machine, rsb_limit_ns(timeout));
    if (RS_UNLIKELY(has_ended(argv[0]))) { /* an override of this hook has waited meanwhile */
        rs_forget_permit(machine->engine);
        return Qtrue;
    }
    if (RS_UNLIKELY(is_simulated(machine))) need_virtual_time(machine, argv[0], limit_ns);
    bool unblocked = block_until(machine, argv[0], limit_ns);
    if (RS_UNLIKELY(unblocked && is_live_thread(argv[0]))) unblocked = wait_for_thread(machine, argv[0], limit_ns);
    return unblocked ? Qtrue : Qfalse;
}

rs_strand *rsb_blocked_in(rsb_machine *machine, VALUE fiber) {
    st_data_t found;
    st_table *blocked = waits_of(machine)->blocked;
    if (!blocked || !st_lookup(blocked, (st_data_t)fiber, &found)) return NULL;
    return rs_strand_find(rs_strands_of(machine->engine), (rs_id)found);
}

static bool is_overridden(VALUE self, ID hook) {
    return rb_funcall(rb_obj_method(self, ID2SYM(hook)), id_owner, 0) != rsb_cScheduler;
}

/* The strand that runs in that fiber. A running strand whose first wait is still to come may be in a fiber that its handle does
 * not name: if no strand is known for the fiber, it is the running one. */
static rsb_strand *strand_in(rsb_machine *machine, VALUE fiber) {
    rsb_strand *running = rs_none_runs(machine->engine) ? NULL : rsb_running(machine);
    if (running && (running->home == fiber || running->fiber == fiber)) return running;
    rsb_strand *known = rsb_strand_of_fiber(machine, fiber);
    if (known || !running || !RTEST(rb_fiber_alive_p(fiber))) return known;
    return rsb_existing() != machine || rb_fiber_current() == fiber ? running : NULL;
}

/* An unblock that comes before the hook `block` is called is kept as a permit for that call. A strand that is in another wait can
 * only be on its way to the hook if an override of the hook waits first. Otherwise a later, unrelated wait would take the permit,
 * so none is given. */
static void permit(rsb_machine *machine, VALUE self, VALUE blocker, VALUE fiber) {
    rsb_strand *handle = strand_in(machine, fiber);
    if (!handle) return;
    rs_strand *strand = rs_strand_find(rs_strands_of(machine->engine), handle->id);
    if (rs_strand_wait(strand) != RS_WAIT_NONE && !is_overridden(self, id_block) && !is_overridden(self, id_kernel_sleep)) return;
    bool *by_queue = permit_by_queue_of(handle);
    *by_queue = is_queue(blocker) && (*by_queue || !rs_strand_is_permitted(strand));
    rs_permit(strand);
}

/* Callers of {#block} check again whether they may go on; Mutex#sleep does not. So it must not take a permit that came from a
 * queue, too late for a wait that had timed out. */
static void forget_permit_by_queue(rsb_machine *machine) {
    if (*permit_by_queue_of(rsb_running(machine))) rs_forget_permit(machine->engine);
}

/* Called when the wait of a fiber in {#block} is over. From any thread; never waits and never switches.
 *
 * @param blocker [Object]
 * @param fiber [Fiber]
 * @return [nil]
 * @since 0.1.0
 */
static VALUE scheduler_unblock(VALUE self, VALUE blocker, VALUE fiber) {
    rsb_scheduler *scheduler = rsb_scheduler_of(self);
    if (NIL_P(scheduler->machine)) return Qnil;
    rsb_machine *machine = rsb_machine_any_thread(scheduler->machine);
    if (rsb_is_gone(machine)) return Qnil;
    bool here = rsb_existing() == machine;
    if (here) rsb_notice_fork(machine);
    rs_strand *strand = rsb_blocked_in(machine, fiber);
    bool paused = rsb_between_strands(machine) && end_pauses(machine, fiber);
    if (!strand) {
        if (!paused) permit(machine, self, blocker, fiber);
        return Qnil;
    }
    if (RS_LIKELY(here)) {
        rs_unblock(machine->engine, strand);
        return Qnil;
    }
    rs_send(machine->engine, rs_message_new(RS_MESSAGE_UNBLOCK, rs_strand_id(strand), rs_strand_ticket(strand)));
    return Qnil;
}

/* --- time --- */

/* Kernel#sleep and Mutex#sleep (rb_mutex_sleep in thread_sync.c) call the same hook. ConditionVariable#wait, and IO#close while
 * it waits for the users of the IO, sleep by a Mutex. */
static bool is_sleep_of_mutex(int argc) { return argc > 0 && !rsb_called_by("Kernel", "sleep"); }

static VALUE sleep_outside(VALUE self, VALUE seconds, int64_t delay_ns, bool of_mutex) {
    if (of_mutex) wait_plainly(self, Qnil, delay_ns == RS_NEVER ? RS_NEVER : rs_deadline_after(rs_clock_ns(), delay_ns));
    else if (NIL_P(seconds)) rb_thread_sleep_forever();
    else rb_thread_wait_for(rb_time_interval(seconds));
    return Qtrue;
}

/* Called by Kernel#sleep and Thread::Mutex#sleep; {#unblock} ends the latter.
 *
 * May switch strands.
 *
 * @param duration [Numeric, nil] seconds; nil: no limit
 * @return [true]
 * @raise [ArgumentError, TypeError] as Kernel#sleep does
 * @since 0.1.0
 */
static VALUE scheduler_kernel_sleep(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    VALUE duration = argc > 0 ? argv[0] : Qnil;
    int64_t delay_ns = NIL_P(duration) ? RS_NEVER : rsb_interval_ns(duration);
    rsb_machine *machine = rsb_hook_machine(self);
    if (RS_UNLIKELY(!machine)) return sleep_outside(self, duration, delay_ns, is_sleep_of_mutex(argc));
    if (delay_ns > 0 && is_sleep_of_mutex(argc)) {
        forget_permit_by_queue(machine);
        block_until(machine, Qnil, rsb_deadline_after(machine, delay_ns));
    } else {
        rsb_sleep_for(machine, delay_ns);
    }
    return Qtrue;
}

/* Called by Thread.pass and by long computations of newer Rubies: lets the other strands run once.
 *
 * May switch strands.
 *
 * @return [nil]
 * @since 0.1.0
 */
static VALUE scheduler_yield(VALUE self) {
    rsb_machine *machine = rsb_hook_machine(self);
    if (machine) rsb_yield(machine);
    return Qnil;
}

/* Called by Timeout.timeout: runs the block. When the time is up, raises the exception at the block's present wait, or at its
 * next one; only once, so that its ensure blocks may wait. A block that ends in time makes no system call.
 *
 * May switch strands if the block does.
 *
 * @param duration [Numeric] seconds
 * @param exception [Class, Exception]
 * @param message [String]
 * @yieldparam duration [Numeric]
 * @return [Object] the block's value
 * @raise [UsageError] in a signal handler or finalizer that runs while the machine switches
 * @since 0.1.0
 */
static VALUE scheduler_timeout_after(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 3);
    rsb_need_block("timeout_after");
    /* Where nothing may park, the limit could not be kept, so this raises. */
    rsb_machine *machine = rsb_parking_machine(self, "timeout_after");
    VALUE arguments[2] = {argc > 1 ? argv[1] : rsb_eTimeout, argc > 2 ? argv[2] : timeout_message};
    return rsb_until_raised(machine, rsb_deadline_after(machine, rsb_limit_ns(argv[0])), arguments, rb_yield, argv[0]);
}

/* --- fibers --- */

/* Called by Fiber.schedule: runs the block in a strand of its own, at once, until its first wait; then the caller goes on. The
 * strand belongs to the surrounding Ringspun.run, or else to the scheduler. Its errors are reported as those of {Machine#spin}.
 *
 * May switch strands.
 *
 * @return [Fiber]
 * @raise [LimitError] when strands_max are alive, or there is no stack for one more
 * @since 0.1.0
 */
static VALUE scheduler_fiber(VALUE self) {
    rsb_need_block("fiber");
    rsb_machine *machine = rsb_parking_machine(self, "fiber");
    return rsb_strand_schedule(machine, rb_block_proc());
}

/* Called to raise an exception in a fiber that is in a hook, as IO#close of newer Rubies does for one that reads the IO. It is
 * raised at the present or next wait in that hook. If the fiber leaves the hook before that, it is not raised at all. From any
 * thread. From 4.1 on the target is not the fiber, but an object that stands for that call of the hook (ruby/ruby#18793).
 *
 * @param target [Fiber, #alive?, #raise]
 * @param exception [Exception, Class]
 * @return [Boolean] false when no strand waits in that fiber
 * @since 0.1.0
 */
static VALUE scheduler_fiber_interrupt(VALUE self, VALUE target, VALUE exception) {
    rsb_scheduler *scheduler = rsb_scheduler_of(self);
    if (NIL_P(scheduler->machine)) return Qfalse;
    rsb_machine *machine = rsb_machine_any_thread(scheduler->machine);
    if (rsb_is_gone(machine)) return Qfalse;
    if (!RTEST(rb_obj_is_fiber(target))) {
        rsb_notice_fork(machine);
        rsb_send_call_interrupt(machine, target, exception);
        return Qtrue;
    }
    rsb_strand *strand = strand_in(machine, target);
    if (!strand || !rsb_is_alive(strand)) return Qfalse;
    rsb_send_hook_interrupt(machine, strand, rb_make_exception(1, &exception));
    return Qtrue;
}

void rsb_fail_closed(void) {
    rsb_machine *machine = rsb_existing();
    if (machine) rsb_leave_hook(machine);
    rb_raise(rb_eIOError, "stream closed in another strand");
}

void rsb_fail_outside_time(const char *hook) {
    rb_raise(rsb_eUnsupported, "%s: a simulation has no time in which an IO of the system could become ready, because its own is "
             "virtual; wait without a limit, or use Machine#pipe or #socketpair", hook);
}

void rsb_init_scheduler(void) {
    rsb_register_part(&part);
    id_blocking = rb_intern("blocking");
    id_alive_p = rb_intern("alive?");
    id_owner = rb_intern("owner");
    id_block = rb_intern("block");
    id_kernel_sleep = rb_intern("kernel_sleep");
    queue_class = rb_path2class("Thread::Queue");
    mutex_class = rb_path2class("Thread::Mutex");
    rb_gc_register_address(&queue_class);
    rb_gc_register_address(&mutex_class);
    rsb_fiber_class = rb_path2class("Fiber");
    rb_gc_register_address(&rsb_fiber_class);
    timeout_message = rb_obj_freeze(rb_str_new_cstr("execution expired"));
    rb_gc_register_address(&timeout_message);
    rsb_cScheduler = rb_define_class_under(rsb_mRingspun, "Scheduler", rb_cObject);
    rb_define_alloc_func(rsb_cScheduler, scheduler_allocate);
    rb_define_method(rsb_cScheduler, "block", scheduler_block, -1);
    rb_define_method(rsb_cScheduler, "unblock", scheduler_unblock, 2);
    rb_define_method(rsb_cScheduler, "kernel_sleep", scheduler_kernel_sleep, -1);
    rb_define_method(rsb_cScheduler, "yield", scheduler_yield, 0);
    rb_define_method(rsb_cScheduler, "timeout_after", scheduler_timeout_after, -1);
    rb_define_method(rsb_cScheduler, "fiber", scheduler_fiber, 0);
    rb_define_method(rsb_cScheduler, "fiber_interrupt", scheduler_fiber_interrupt, 2);
}
