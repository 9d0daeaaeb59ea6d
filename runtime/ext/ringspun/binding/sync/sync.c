/* sync: Ringspun::Mutex, Semaphore, Condition and Barrier.
 *
 * Hand-over: a strand that frees a lock or a permit gives it to the first waiter in the same step that wakes it. A waiter that
 * was cancelled or timed out is not in the list any more, so nothing is given to a strand that does not wait. A waiter keeps what
 * it was given, even if it is cancelled before it runs.
 */
#include "select.h"

#include <limits.h>

/* The data of a Mutex, Semaphore, Condition or Barrier. Not RUBY_TYPED_EMBEDDABLE: waiting strands point to the list. It belongs
 * to the machine that used it first, until that machine is closed. */
typedef struct {
    VALUE machine;
    rs_list waiters;
    rs_id owner;                /* mutex */
    rs_source for_permits;      /* semaphore: selectors that wait for a permit */
    long count;                 /* semaphore: free permits */
    long limit;                 /* semaphore: all permits; barrier: parties */
} rsb_sync;

static VALUE mutex_class, semaphore_class;

static const rsb_list_kind for_mutex = {.what = "a Mutex"}, for_semaphore = {.what = "a Semaphore"},
                           for_condition = {.what = "a Condition"}, for_barrier = {.what = "a Barrier"};

/* --- all four --- */

static void sync_mark(void *data) { rb_gc_mark(((rsb_sync *)data)->machine); }

static void sync_free(void *data) {
    rs_source_drop(&((rsb_sync *)data)->for_permits);
    xfree(data);
}

static const rb_data_type_t sync_type = {
    .wrap_struct_name = "Ringspun synchronisation",
    .function = {.dmark = sync_mark, .dfree = sync_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE sync_allocate(VALUE class) {
    rsb_sync *sync;
    VALUE self = TypedData_Make_Struct(class, rsb_sync, &sync_type, sync);
    sync->machine = Qnil;
    return self;
}

/* The type is not checked: Ruby binds these methods to these classes only, and they allocate nothing else. */
static inline rsb_sync *get(VALUE self, rsb_machine **machine) {
    rsb_sync *sync = RTYPEDDATA_GET_DATA(self);
    *machine = rsb_current();
    if (RS_UNLIKELY(rsb_bind(self, &sync->machine, *machine))) {
        sync->owner = RS_NO_ID;
        rs_list_forget(&sync->waiters);
        rs_source_drop(&sync->for_permits);
        sync->count = sync->limit;
    }
    return sync;
}

/* --- Mutex --- */

static rs_id running_id(rsb_machine *machine) { return rs_strand_id(rs_running(&machine->engine)); }

/* The lock of a strand that has ended is free. */
static bool is_locked(rsb_machine *machine, const rsb_sync *mutex) {
    return mutex->owner != RS_NO_ID && rs_strand_find(&machine->engine.strands, mutex->owner) != NULL;
}

static void mutex_own(rsb_machine *machine, rsb_sync *mutex, rs_id me) {
    mutex->owner = me;
    rs_lock_taken(rs_running(&machine->engine));
}

static bool mutex_take_now(rsb_machine *machine, rsb_sync *mutex, rs_id me) {
    if (is_locked(machine, mutex)) return false;
    mutex_own(machine, mutex, me);
    return true;
}

/* After the timeout it tries once more: if the machine was late, the timer has fired before the strand ran that has unlocked
 * it. */
static void mutex_take(rsb_machine *machine, rsb_sync *mutex, int64_t deadline_ns) {
    rsb_before_lock(machine);
    rs_id me = running_id(machine);
    if (RS_LIKELY(mutex_take_now(machine, mutex, me))) return;
    if (mutex->owner == me) rb_raise(rsb_eDeadlock, "this strand holds the mutex already; a Ringspun::Mutex is not reentrant");
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, deadline_ns, &mutex->waiters, &for_mutex, NULL);
    if (kind == RS_WAKE_TIMEOUT && mutex_take_now(machine, mutex, me)) return;
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    RS_ASSERT(mutex->owner == me);
    mutex_own(machine, mutex, me);
}

static void mutex_give(rsb_machine *machine, rsb_sync *mutex) {
    if (mutex->owner != running_id(machine)) {
        rb_raise(rsb_eUsage, "this strand does not hold the mutex; only the one that locked it may unlock it");
    }
    rs_lock_given(rs_running(&machine->engine));
    mutex->owner = rs_list_wake_first(&machine->engine, &mutex->waiters, 0);
}

/* The locks of a strand are only counted, because locking must be cheap and ending with a lock is a bug of the program. This
 * finds those with waiters through the waiters. */
static void give_up_locks(rsb_machine *machine, rsb_strand *ended) {
    if (rs_running(&machine->engine)->locks == 0) return;
    rs_id owner = ended->id;
    RS_EACH_STRAND(&machine->engine.strands, strand) {
        if (rsb_list_kind_of(strand) != &for_mutex) continue;
        rs_list *list = strand->waiter.list;
        rsb_sync *mutex = (rsb_sync *)((char *)list - offsetof(rsb_sync, waiters));
        if (mutex->owner == owner) mutex->owner = rs_list_wake_first(&machine->engine, list, 0);
    }
}

/* Takes the lock; first come, first served.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Mutex] self
 * @raise [TimeoutError] when the time is up
 * @raise [DeadlockError] when the strand holds it already
 * @since 0.1.0
 */
static VALUE mutex_lock(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine;
    rsb_sync *mutex = get(self, &machine);
    mutex_take(machine, mutex, rsb_timeout_argument(machine, argc, argv));
    return self;
}

/* Takes the lock if it is free.
 *
 * @return [Boolean] true when this strand has it now
 * @since 0.1.0 */
static VALUE mutex_try_lock(VALUE self) {
    rsb_machine *machine;
    rsb_sync *mutex = get(self, &machine);
    return mutex_take_now(machine, mutex, running_id(machine)) ? Qtrue : Qfalse;
}

/* Gives the lock to the strand that has waited longest.
 *
 * @return [Mutex] self
 * @raise [UsageError] when this strand does not hold it
 * @since 0.1.0 */
static VALUE mutex_unlock(VALUE self) {
    rsb_machine *machine;
    rsb_sync *mutex = get(self, &machine);
    mutex_give(machine, mutex);
    return self;
}

typedef struct {
    rsb_machine *machine;
    rsb_sync *mutex;
} holding;

static VALUE mutex_release(VALUE argument) {
    holding *held = (holding *)argument;
    if (RS_LIKELY(held->mutex->owner == running_id(held->machine))) mutex_give(held->machine, held->mutex);
    return Qnil;
}

/* Runs the block with the lock held.
 *
 * May switch strands.
 *
 * @return [Object] the block's value
 * @raise [DeadlockError] when the strand holds it already
 * @since 0.1.0
 */
static VALUE mutex_synchronize(VALUE self) {
    rsb_need_block("synchronize");
    rsb_machine *machine;
    rsb_sync *mutex = get(self, &machine);
    mutex_take(machine, mutex, RS_NEVER);
    holding held = {machine, mutex};
    return rb_ensure(rb_yield, Qundef, mutex_release, (VALUE)&held);
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE mutex_locked_p(VALUE self) {
    rsb_machine *machine;
    rsb_sync *mutex = get(self, &machine);
    return is_locked(machine, mutex) ? Qtrue : Qfalse;
}

/* @return [Boolean] true when this strand holds the lock
 * @since 0.1.0 */
static VALUE mutex_owned_p(VALUE self) {
    rsb_machine *machine;
    rsb_sync *mutex = get(self, &machine);
    return mutex->owner == running_id(machine) ? Qtrue : Qfalse;
}

/* --- Semaphore --- */

/* A second initialize raises: strands may hold it or wait in it. */
static void refuse_again(const rsb_sync *sync) {
    if (sync->limit > 0) rb_raise(rsb_eUsage, "it is made already; make a new one for another size");
}

/* @param permits [Integer] how many may be held at once, at least 1
 * @since 0.1.0 */
static VALUE semaphore_initialize(VALUE self, VALUE permits) {
    rsb_sync *semaphore = RTYPEDDATA_GET_DATA(self);
    refuse_again(semaphore);
    semaphore->count = semaphore->limit = (long)rsb_integer(permits, 1, LONG_MAX, "a semaphore's permits");
    return self;
}

static bool semaphore_take_now(rsb_sync *semaphore) {
    if (semaphore->count == 0 || semaphore->waiters.len > 0) return false;
    semaphore->count--;
    return true;
}

static void semaphore_take(rsb_machine *machine, rsb_sync *semaphore, int64_t deadline_ns) {
    if (RS_LIKELY(semaphore_take_now(semaphore))) return;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, deadline_ns, &semaphore->waiters, &for_semaphore, NULL);
    if (kind == RS_WAKE_TIMEOUT && semaphore_take_now(semaphore)) return; /* as with a mutex */
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
}

/* Takes one permit; first come, first served.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Semaphore] self
 * @raise [TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE semaphore_acquire(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine;
    rsb_sync *semaphore = get(self, &machine);
    semaphore_take(machine, semaphore, rsb_timeout_argument(machine, argc, argv));
    return self;
}

/* Gives a permit back; the strand that has waited longest gets it.
 *
 * @return [Semaphore] self
 * @raise [UsageError] when all permits are back already
 * @since 0.1.0 */
static VALUE semaphore_release(VALUE self) {
    rsb_machine *machine;
    rsb_sync *semaphore = get(self, &machine);
    rs_strand *waiter = rs_list_first(&machine->engine, &semaphore->waiters);
    bool watched = RS_UNLIKELY(rs_source_is_watched(&semaphore->for_permits));
    rs_watch *watch = watched ? rs_source_waiting(&semaphore->for_permits, waiter) : NULL;
    if (watch) {
        rs_watch_serve(watch);
        return self;
    }
    if (rs_list_wake_first(&machine->engine, &semaphore->waiters, 0) != RS_NO_ID) return self;
    if (semaphore->count == semaphore->limit) rb_raise(rsb_eUsage, "released more often than acquired; #hold pairs the two");
    semaphore->count++;
    if (watched) rs_source_ready(&semaphore->for_permits);
    return self;
}

bool rsb_is_semaphore(VALUE object) { return RTEST(rb_obj_is_kind_of(object, semaphore_class)); }

rs_source *rsb_semaphore_source(VALUE self) {
    rsb_machine *machine;
    return &get(self, &machine)->for_permits;
}

bool rsb_semaphore_take(VALUE self) {
    rsb_machine *machine;
    rsb_sync *semaphore = get(self, &machine);
    if (semaphore->count == 0) return false;
    semaphore->count--;
    return true;
}

/* Runs the block with one permit held.
 *
 * May switch strands.
 *
 * @return [Object] the block's value
 * @since 0.1.0 */
static VALUE semaphore_hold(VALUE self) {
    rsb_need_block("hold");
    rsb_machine *machine;
    rsb_sync *semaphore = get(self, &machine);
    semaphore_take(machine, semaphore, RS_NEVER);
    return rb_ensure(rb_yield, Qundef, semaphore_release, self);
}

/* @return [Integer] free permits
 * @since 0.1.0 */
static VALUE semaphore_available(VALUE self) {
    rsb_machine *machine;
    return LONG2NUM(get(self, &machine)->count);
}

/* --- Condition --- */

/* Takes the mutex again in any case, because the caller's ensure block will unlock it. Only the end of a deadlock interrupts this
 * shielded wait. The first time it cancels all strands, so the one that holds the mutex unwinds and unlocks it. The second time
 * the others wait for this strand, so it goes on without the mutex. */
static rs_wake_kind condition_relock(rsb_machine *machine, rsb_sync *mutex, rs_wake_kind kind) {
    rs_id me = running_id(machine);
    for (int interrupts = 0; is_locked(machine, mutex) && mutex->owner != me; interrupts++) {
        if (interrupts == 2) return RS_WAKE_CANCEL;
        rs_wake_kind end = rsb_wait(machine, RS_WAIT_LIST, RS_PARK_SHIELDED, RS_NEVER, &mutex->waiters, &for_mutex, NULL);
        if (end != RS_WAKE_VALUE) kind = end;
    }
    mutex_own(machine, mutex, me);
    return kind;
}

/* Waits for a {#signal} or {#broadcast}. With a mutex, which the strand must hold: unlocks it during the wait and locks it again
 * afterwards, however the wait ends.
 *
 * May switch strands.
 *
 * @param mutex [Mutex, nil]
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Condition] self
 * @raise [TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE condition_wait(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine;
    rsb_sync *condition = get(self, &machine);
    VALUE mutex_object = Qnil, options = Qnil;
    rb_scan_args(argc, argv, "01:", &mutex_object, &options);
    int64_t deadline_ns = rsb_timeout_deadline(machine, options);
    if (!NIL_P(mutex_object) && !rb_obj_is_kind_of(mutex_object, mutex_class)) {
        rb_raise(rsb_eUsage, "expected a Ringspun::Mutex, got %" PRIsVALUE, rb_obj_class(mutex_object));
    }
    rsb_sync *mutex = NIL_P(mutex_object) ? NULL : get(mutex_object, &machine);
    rsb_check_stack();
    if (mutex) mutex_give(machine, mutex); /* from here on nothing may raise until the mutex is locked again */
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_LIST, 0, deadline_ns, &condition->waiters, &for_condition, NULL);
    if (mutex) kind = condition_relock(machine, mutex, kind);
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    return self;
}

/* Wakes the strand that has waited longest.
 *
 * @return [Boolean] false when no strand waited
 * @since 0.1.0 */
static VALUE condition_signal(VALUE self) {
    rsb_machine *machine;
    rsb_sync *condition = get(self, &machine);
    return rs_list_wake_first(&machine->engine, &condition->waiters, 0) == RS_NO_ID ? Qfalse : Qtrue;
}

/* Wakes all waiting strands.
 *
 * @return [Integer] how many waited
 * @since 0.1.0 */
static VALUE condition_broadcast(VALUE self) {
    rsb_machine *machine;
    rsb_sync *condition = get(self, &machine);
    return UINT2NUM(rs_list_wake_all(&machine->engine, &condition->waiters, 0));
}

/* --- Barrier --- */

/* @param parties [Integer] how many strands must wait, at least 1
 * @since 0.1.0 */
static VALUE barrier_initialize(VALUE self, VALUE parties) {
    rsb_sync *barrier = RTYPEDDATA_GET_DATA(self);
    refuse_again(barrier);
    barrier->limit = (long)rsb_integer(parties, 1, LONG_MAX, "a barrier's parties");
    return self;
}

/* Waits until as many strands wait as the barrier has parties. Then all go on, and the barrier can be used again. A strand whose
 * wait is cancelled or times out does not count any more.
 *
 * May switch strands.
 *
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Boolean] true for the strand that came last
 * @raise [TimeoutError] when the time is up
 * @since 0.1.0
 */
static VALUE barrier_wait(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine;
    rsb_sync *barrier = get(self, &machine);
    int64_t deadline_ns = rsb_timeout_argument(machine, argc, argv);
    if ((long)barrier->waiters.len + 1 >= barrier->limit) {
        rs_list_wake_all(&machine->engine, &barrier->waiters, 0);
        return Qtrue;
    }
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, deadline_ns, &barrier->waiters, &for_barrier, NULL);
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    return Qfalse;
}

/* @return [Integer] strands that wait; for a semaphore also those in a {Selector}
 * @since 0.1.0 */
static VALUE sync_waiting(VALUE self) {
    rsb_machine *machine;
    rsb_sync *sync = get(self, &machine);
    return UINT2NUM(sync->waiters.len + rs_source_waiting_len(&sync->for_permits));
}

static VALUE define(const char *name) {
    VALUE class = rb_define_class_under(rsb_mRingspun, name, rb_cObject);
    rb_define_alloc_func(class, sync_allocate);
    rb_define_method(class, "initialize_copy", rsb_refuse_copy, 1);
    rb_define_method(class, "waiting", sync_waiting, 0);
    return class;
}

static rsb_part part = {.strand_ends = give_up_locks};

void rsb_init_sync(void) {
    rsb_register_part(&part);
    VALUE mutex = define("Mutex");
    mutex_class = mutex;
    rb_define_method(mutex, "lock", mutex_lock, -1);
    rb_define_method(mutex, "try_lock", mutex_try_lock, 0);
    rb_define_method(mutex, "unlock", mutex_unlock, 0);
    rb_define_method(mutex, "synchronize", mutex_synchronize, 0);
    rb_define_method(mutex, "locked?", mutex_locked_p, 0);
    rb_define_method(mutex, "owned?", mutex_owned_p, 0);
    VALUE semaphore = define("Semaphore");
    semaphore_class = semaphore;
    rb_define_method(semaphore, "initialize", semaphore_initialize, 1);
    rb_define_method(semaphore, "acquire", semaphore_acquire, -1);
    rb_define_method(semaphore, "release", semaphore_release, 0);
    rb_define_method(semaphore, "hold", semaphore_hold, 0);
    rb_define_method(semaphore, "available", semaphore_available, 0);
    VALUE condition = define("Condition");
    rb_define_method(condition, "wait", condition_wait, -1);
    rb_define_method(condition, "signal", condition_signal, 0);
    rb_define_method(condition, "broadcast", condition_broadcast, 0);
    VALUE barrier = define("Barrier");
    rb_define_method(barrier, "initialize", barrier_initialize, 1);
    rb_define_method(barrier, "wait", barrier_wait, -1);
}
