/* sync: Ringspun::Mutex, Semaphore, Condition and Barrier. Their rules are the engine's (flow/mutex.h and the like). */
#include "select.h"

#include <limits.h>

/* The data of a Mutex, Semaphore, Condition or Barrier. Not RUBY_TYPED_EMBEDDABLE: waiting strands point to the list. It belongs
 * to the machine that used it first, until that machine is closed. */
typedef struct {
    VALUE machine;
    union {
        rs_mutex mutex;
        rs_semaphore semaphore;
        rs_barrier barrier;
        rs_list waiters;        /* of a condition; the others begin with theirs */
    };
} rsb_sync;

static VALUE mutex_class, semaphore_class;

static const rsb_list_kind for_mutex = {.what = "a Mutex"}, for_semaphore = {.what = "a Semaphore"},
                           for_condition = {.what = "a Condition"}, for_barrier = {.what = "a Barrier"};

/* --- all four --- */

static void sync_mark(void *data) { rb_gc_mark(((rsb_sync *)data)->machine); }

static const rb_data_type_t sync_type = {
    .wrap_struct_name = "Ringspun synchronisation",
    .function = {.dmark = sync_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static void semaphore_free(void *data) {
    rs_semaphore_drop(&((rsb_sync *)data)->semaphore);
    xfree(data);
}

static const rb_data_type_t semaphore_type = {
    .wrap_struct_name = "Ringspun::Semaphore",
    .function = {.dmark = sync_mark, .dfree = semaphore_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate(VALUE class, const rb_data_type_t *type) {
    rsb_sync *sync;
    VALUE self = TypedData_Make_Struct(class, rsb_sync, type, sync);
    sync->machine = Qnil;
    return self;
}

static VALUE sync_allocate(VALUE class) { return allocate(class, &sync_type); }
static VALUE semaphore_allocate(VALUE class) { return allocate(class, &semaphore_type); }

/* The type is not checked: Ruby binds these methods to these classes only, and they allocate nothing else. */
static inline rs_mutex *get_mutex(VALUE self, rsb_machine **machine) {
    rsb_sync *sync = RTYPEDDATA_GET_DATA(self);
    *machine = rsb_current();
    if (RS_UNLIKELY(rsb_bind(self, &sync->machine, *machine))) rs_mutex_forget(&sync->mutex);
    return &sync->mutex;
}

static inline rs_semaphore *get_semaphore(VALUE self, rsb_machine **machine) {
    rsb_sync *sync = RTYPEDDATA_GET_DATA(self);
    *machine = rsb_current();
    if (RS_UNLIKELY(rsb_bind(self, &sync->machine, *machine))) rs_semaphore_forget(&sync->semaphore);
    return &sync->semaphore;
}

/* A Condition or a Barrier. */
static rsb_sync *get(VALUE self, rsb_machine **machine) {
    rsb_sync *sync = RTYPEDDATA_GET_DATA(self);
    *machine = rsb_current();
    if (RS_UNLIKELY(rsb_bind(self, &sync->machine, *machine))) rs_list_forget(&sync->waiters);
    return sync;
}

/* --- Mutex --- */

static void mutex_take(rsb_machine *machine, rs_mutex *mutex, int64_t deadline_ns) {
    rsb_before_lock(machine);
    if (RS_LIKELY(rs_mutex_take(machine->engine, mutex))) return;
    if (rs_mutex_is_mine(machine->engine, mutex)) {
        rb_raise(rsb_eDeadlock, "this strand holds the mutex already; a Ringspun::Mutex is not reentrant");
    }
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_MUTEX, 0, deadline_ns, &mutex->waiters, &for_mutex, NULL);
    if (RS_UNLIKELY(kind == RS_WAKE_CANCEL)) {
        kind = rsb_wait_on_the_way_out(machine, RS_WAIT_MUTEX, deadline_ns, &mutex->waiters, &for_mutex);
    }
    if (!rs_mutex_waited(machine->engine, mutex, kind)) rsb_raise_wake(machine, kind);
}

static void mutex_give(rsb_machine *machine, rs_mutex *mutex) {
    if (RS_LIKELY(rs_mutex_give(machine->engine, mutex))) return;
    rb_raise(rsb_eUsage, "this strand does not hold the mutex; only the one that locked it may unlock it");
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
    rs_mutex *mutex = get_mutex(self, &machine);
    mutex_take(machine, mutex, rsb_timeout_argument(machine, argc, argv));
    return self;
}

/* Takes the lock if it is free.
 *
 * @return [Boolean] true when this strand has it now
 * @since 0.1.0 */
static VALUE mutex_try_lock(VALUE self) {
    rsb_machine *machine;
    rs_mutex *mutex = get_mutex(self, &machine);
    return rs_mutex_take(machine->engine, mutex) ? Qtrue : Qfalse;
}

/* Gives the lock to the strand that has waited longest.
 *
 * @return [Mutex] self
 * @raise [UsageError] when this strand does not hold it
 * @since 0.1.0 */
static VALUE mutex_unlock(VALUE self) {
    rsb_machine *machine;
    rs_mutex *mutex = get_mutex(self, &machine);
    mutex_give(machine, mutex);
    return self;
}

typedef struct {
    rsb_machine *machine;
    rs_mutex *mutex;
} holding;

static VALUE mutex_release(VALUE argument) {
    holding *held = (holding *)argument;
    rs_mutex_give(held->machine->engine, held->mutex); /* the block may have unlocked it */
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
    rs_mutex *mutex = get_mutex(self, &machine);
    mutex_take(machine, mutex, RS_NEVER);
    holding held = {machine, mutex};
    return rb_ensure(rb_yield, Qundef, mutex_release, (VALUE)&held);
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE mutex_locked_p(VALUE self) {
    rsb_machine *machine;
    rs_mutex *mutex = get_mutex(self, &machine);
    return rs_mutex_is_locked(machine->engine, mutex) ? Qtrue : Qfalse;
}

/* @return [Boolean] true when this strand holds the lock
 * @since 0.1.0 */
static VALUE mutex_owned_p(VALUE self) {
    rsb_machine *machine;
    rs_mutex *mutex = get_mutex(self, &machine);
    return rs_mutex_is_mine(machine->engine, mutex) ? Qtrue : Qfalse;
}

/* @return [Integer] strands that wait
 * @since 0.1.0 */
static VALUE mutex_waiting(VALUE self) {
    rsb_machine *machine;
    return UINT2NUM(get_mutex(self, &machine)->waiters.len);
}

/* --- Semaphore --- */

/* A second initialize raises: strands may hold it or wait in it. */
static void refuse_again(int64_t size) {
    if (size > 0) rb_raise(rsb_eUsage, "it is made already; make a new one for another size");
}

/* @param permits [Integer] how many may be held at once, at least 1
 * @since 0.1.0 */
static VALUE semaphore_initialize(VALUE self, VALUE permits) {
    rs_semaphore *semaphore = &((rsb_sync *)RTYPEDDATA_GET_DATA(self))->semaphore;
    refuse_again(semaphore->permits);
    rs_semaphore_init(semaphore, rsb_integer(permits, 1, LONG_MAX, "a semaphore's permits"));
    return self;
}

static void semaphore_take(rsb_machine *machine, rs_semaphore *semaphore, int64_t deadline_ns) {
    if (RS_LIKELY(rs_semaphore_take(semaphore))) return;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, deadline_ns, &semaphore->waiters, &for_semaphore, NULL);
    if (RS_UNLIKELY(kind == RS_WAKE_CANCEL)) {
        kind = rsb_wait_on_the_way_out(machine, RS_WAIT_LIST, deadline_ns, &semaphore->waiters, &for_semaphore);
    }
    if (!rs_semaphore_waited(semaphore, kind)) rsb_raise_wake(machine, kind);
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
    rs_semaphore *semaphore = get_semaphore(self, &machine);
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
    rs_semaphore *semaphore = get_semaphore(self, &machine);
    if (RS_LIKELY(rs_semaphore_give(machine->engine, semaphore))) return self;
    rb_raise(rsb_eUsage, "released more often than acquired; #hold pairs the two");
}

bool rsb_is_semaphore(VALUE object) { return RTEST(rb_obj_is_kind_of(object, semaphore_class)); }

rs_semaphore *rsb_semaphore_of(VALUE self) {
    rsb_machine *machine;
    return get_semaphore(self, &machine);
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
    rs_semaphore *semaphore = get_semaphore(self, &machine);
    semaphore_take(machine, semaphore, RS_NEVER);
    return rb_ensure(rb_yield, Qundef, semaphore_release, self);
}

/* @return [Integer] free permits
 * @since 0.1.0 */
static VALUE semaphore_available(VALUE self) {
    rsb_machine *machine;
    return LL2NUM(get_semaphore(self, &machine)->free);
}

/* @return [Integer] strands that wait, those in a {Selector} as well
 * @since 0.1.0 */
static VALUE semaphore_waiting(VALUE self) {
    rsb_machine *machine;
    return UINT2NUM(rs_semaphore_waiting(get_semaphore(self, &machine)));
}

/* --- Condition --- */

/* Takes the mutex again in any case, because the caller's ensure block will unlock it. */
static rs_wake_kind condition_relock(rsb_machine *machine, rs_mutex *mutex, rs_wake_kind kind) {
    rs_relock relock = {.kind = kind};
    while (rs_relock_waits(machine->engine, mutex, &relock)) {
        rs_list *waiters = &mutex->waiters;
        rs_relock_waited(&relock, rsb_wait(machine, RS_WAIT_MUTEX, RS_PARK_SHIELDED, RS_NEVER, waiters, &for_mutex, NULL));
    }
    return relock.kind;
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
    rs_mutex *mutex = NIL_P(mutex_object) ? NULL : get_mutex(mutex_object, &machine);
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
    return rs_list_wake_first(machine->engine, &condition->waiters, 0) == RS_NO_ID ? Qfalse : Qtrue;
}

/* Wakes all waiting strands.
 *
 * @return [Integer] how many waited
 * @since 0.1.0 */
static VALUE condition_broadcast(VALUE self) {
    rsb_machine *machine;
    rsb_sync *condition = get(self, &machine);
    return UINT2NUM(rs_list_wake_all(machine->engine, &condition->waiters, 0));
}

/* --- Barrier --- */

/* @param parties [Integer] how many strands must wait, at least 1
 * @since 0.1.0 */
static VALUE barrier_initialize(VALUE self, VALUE parties) {
    rs_barrier *barrier = &((rsb_sync *)RTYPEDDATA_GET_DATA(self))->barrier;
    refuse_again(barrier->parties);
    rs_barrier_init(barrier, rsb_integer(parties, 1, LONG_MAX, "a barrier's parties"));
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
    rs_barrier *barrier = &get(self, &machine)->barrier;
    int64_t deadline_ns = rsb_timeout_argument(machine, argc, argv);
    if (rs_barrier_arrive(machine->engine, barrier)) return Qtrue;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, deadline_ns, &barrier->waiters, &for_barrier, NULL);
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    return Qfalse;
}

/* @return [Integer] strands that wait
 * @since 0.1.0 */
static VALUE list_waiting(VALUE self) {
    rsb_machine *machine;
    return UINT2NUM(get(self, &machine)->waiters.len);
}

static VALUE define(const char *name, VALUE (*allocate)(VALUE class)) {
    VALUE class = rb_define_class_under(rsb_mRingspun, name, rb_cObject);
    rb_define_alloc_func(class, allocate);
    rb_define_method(class, "initialize_copy", rsb_refuse_copy, 1);
    return class;
}

void rsb_init_sync(void) {
    VALUE mutex = define("Mutex", sync_allocate);
    mutex_class = mutex;
    rb_define_method(mutex, "lock", mutex_lock, -1);
    rb_define_method(mutex, "try_lock", mutex_try_lock, 0);
    rb_define_method(mutex, "unlock", mutex_unlock, 0);
    rb_define_method(mutex, "synchronize", mutex_synchronize, 0);
    rb_define_method(mutex, "locked?", mutex_locked_p, 0);
    rb_define_method(mutex, "owned?", mutex_owned_p, 0);
    rb_define_method(mutex, "waiting", mutex_waiting, 0);
    VALUE semaphore = define("Semaphore", semaphore_allocate);
    semaphore_class = semaphore;
    rb_define_method(semaphore, "initialize", semaphore_initialize, 1);
    rb_define_method(semaphore, "acquire", semaphore_acquire, -1);
    rb_define_method(semaphore, "release", semaphore_release, 0);
    rb_define_method(semaphore, "hold", semaphore_hold, 0);
    rb_define_method(semaphore, "available", semaphore_available, 0);
    rb_define_method(semaphore, "waiting", semaphore_waiting, 0);
    VALUE condition = define("Condition", sync_allocate);
    rb_define_method(condition, "wait", condition_wait, -1);
    rb_define_method(condition, "signal", condition_signal, 0);
    rb_define_method(condition, "broadcast", condition_broadcast, 0);
    rb_define_method(condition, "waiting", list_waiting, 0);
    VALUE barrier = define("Barrier", sync_allocate);
    rb_define_method(barrier, "initialize", barrier_initialize, 1);
    rb_define_method(barrier, "wait", barrier_wait, -1);
    rb_define_method(barrier, "waiting", list_waiting, 0);
}
