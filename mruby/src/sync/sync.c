/* sync: Ringspun::Mutex, Semaphore, Condition and Barrier. Their rules are the engine's (flow/mutex.h and the like). */
#include "sync.h"

#include <mruby/error.h>

/* The data of any of them. */
typedef struct {
    rsm_machine *machine;
    union {
        rs_mutex mutex;
        rs_semaphore semaphore;
        rs_barrier barrier;
        rs_list waiters; /* of a condition; the others begin with theirs */
    };
} rsm_sync;

static void semaphore_free(mrb_state *mrb, void *data) {
    if (data) rs_semaphore_drop(&((rsm_sync *)data)->semaphore);
    mrb_free(mrb, data);
}

typedef struct mrb_data_type data_type;
static const data_type mutex_type = {"Ringspun::Mutex", mrb_free}, semaphore_type = {"Ringspun::Semaphore", semaphore_free},
                       condition_type = {"Ringspun::Condition", mrb_free}, barrier_type = {"Ringspun::Barrier", mrb_free};

static int64_t timeout_argument(mrb_state *mrb, rsm_machine *machine) {
    bool non_block;
    return rsm_wait_arguments(mrb, machine, 0, 0, &non_block);
}

/* Of the current machine from now on. */
static rsm_sync *get(mrb_state *mrb, mrb_value self, const data_type *type) {
    rsm_sync *sync = mrb_data_get_ptr(mrb, self, type);
    if (RS_LIKELY(!rsm_bind(mrb, self, &sync->machine))) return sync;
    if (type == &mutex_type) rs_mutex_forget(&sync->mutex);
    else if (type == &semaphore_type) rs_semaphore_forget(&sync->semaphore);
    else rs_list_forget(&sync->waiters);
    return sync;
}

/* What the method that has waited was called on. */
static rsm_sync *waited(mrb_state *mrb) { return DATA_PTR(mrb->c->ci->stack[0]); }

static rsm_sync *make(mrb_state *mrb, mrb_value self, const data_type *type) {
    rsm_refuse_again(mrb, self);
    rsm_sync *sync = mrb_calloc(mrb, 1, sizeof(*sync));
    mrb_data_init(self, sync, type);
    return sync;
}

static mrb_value waiting(mrb_state *mrb, mrb_value self) {
    return rsm_integer(mrb, get(mrb, self, DATA_TYPE(self))->waiters.len);
}

/* The second epilogue is that of a strand on its way out (rs_patience_begin). */
static mrb_value wait_for_lock(mrb_state *mrb, rsm_sync *sync, rs_wait_kind wait, int64_t deadline_ns, rsm_epilogue usual,
                               rsm_epilogue on_the_way_out) {
    int64_t end_ns = rs_patience_begin(sync->machine->engine);
    if (RS_LIKELY(end_ns == 0)) return rsm_wait_in(mrb, sync->machine, &sync->waiters, wait, 0, deadline_ns, usual);
    if (deadline_ns < end_ns) end_ns = deadline_ns;
    return rsm_wait_in(mrb, sync->machine, &sync->waiters, wait, RS_PARK_SHIELDED, end_ns, on_the_way_out);
}

static rs_wake_kind end_patience(rsm_machine *machine, rs_wake_kind kind) {
    rs_patience_end(machine->engine);
    return kind == RS_WAKE_TIMEOUT ? RS_WAKE_CANCEL : kind;
}

/* --- Mutex --- */

static mrb_value mutex_initialize(mrb_state *mrb, mrb_value self) {
    make(mrb, self, &mutex_type);
    return self;
}

static mrb_value after_lock(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    if (!rs_mutex_waited(machine->engine, &waited(mrb)->mutex, kind)) rsm_raise_wake(mrb, machine, kind);
    return mrb->c->ci->stack[0];
}

static mrb_value after_patience_for_lock(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind,
                                         int64_t result) {
    return after_lock(mrb, machine, strand, end_patience(machine, kind), result);
}

static mrb_value mutex_lock(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &mutex_type);
    int64_t deadline_ns = timeout_argument(mrb, sync->machine);
    if (RS_LIKELY(rs_mutex_take(sync->machine->engine, &sync->mutex))) return self;
    if (rs_mutex_is_mine(sync->machine->engine, &sync->mutex)) {
        mrb_raise(mrb, rsm_class(mrb, "DeadlockError"), "this strand holds the mutex already; a Ringspun::Mutex is not reentrant");
    }
    return wait_for_lock(mrb, sync, RS_WAIT_MUTEX, deadline_ns, after_lock, after_patience_for_lock);
}

static mrb_value mutex_try_lock(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &mutex_type);
    return mrb_bool_value(rs_mutex_take(sync->machine->engine, &sync->mutex));
}

static mrb_value mutex_unlock(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &mutex_type);
    if (RS_LIKELY(rs_mutex_give(sync->machine->engine, &sync->mutex))) return self;
    mrb_raise(mrb, rsm_class(mrb, "UsageError"), "this strand does not hold the mutex; only the one that locked it may unlock it");
}

static mrb_value mutex_locked_p(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &mutex_type);
    return mrb_bool_value(rs_mutex_is_locked(sync->machine->engine, &sync->mutex));
}

static mrb_value mutex_owned_p(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &mutex_type);
    return mrb_bool_value(rs_mutex_is_mine(sync->machine->engine, &sync->mutex));
}

/* --- Semaphore --- */

static mrb_value semaphore_initialize(mrb_state *mrb, mrb_value self) {
    int64_t permits = rsm_int_arg(mrb, rsm_only_arg(mrb), 1, MRB_INT_MAX, "a semaphore's permits");
    rs_semaphore_init(&make(mrb, self, &semaphore_type)->semaphore, permits);
    return self;
}

static mrb_value after_acquire(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    if (!rs_semaphore_waited(&waited(mrb)->semaphore, kind)) rsm_raise_wake(mrb, machine, kind);
    return mrb->c->ci->stack[0];
}

static mrb_value after_patience_for_permit(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind,
                                           int64_t result) {
    return after_acquire(mrb, machine, strand, end_patience(machine, kind), result);
}

static mrb_value semaphore_acquire(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &semaphore_type);
    int64_t deadline_ns = timeout_argument(mrb, sync->machine);
    if (RS_LIKELY(rs_semaphore_take(&sync->semaphore))) return self;
    return wait_for_lock(mrb, sync, RS_WAIT_LIST, deadline_ns, after_acquire, after_patience_for_permit);
}

static mrb_value semaphore_release(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &semaphore_type);
    if (RS_LIKELY(rs_semaphore_give(sync->machine->engine, &sync->semaphore))) return self;
    mrb_raise(mrb, rsm_class(mrb, "UsageError"), "released more often than acquired; #hold pairs the two");
}

static mrb_value semaphore_available(mrb_state *mrb, mrb_value self) {
    return rsm_integer(mrb, (uint64_t)get(mrb, self, &semaphore_type)->semaphore.free);
}

/* --- Condition --- */

static mrb_value condition_initialize(mrb_state *mrb, mrb_value self) {
    make(mrb, self, &condition_type);
    return self;
}

static mrb_value after_signal(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    return rsm_wake_error(mrb, machine, kind);
}

/* Gives up that mutex, unless it is nil. Returns the error that has ended the wait, or nil. */
static mrb_value condition_wait(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    mrb_value mutex = arguments[0], seconds = arguments[1];
    rsm_sync *condition = get(mrb, self, &condition_type);
    int64_t deadline_ns = rsm_deadline(mrb, condition->machine, seconds, "timeout");
    rsm_check_boundary(mrb);
    if (!mrb_nil_p(mutex)) mutex_unlock(mrb, mutex);
    return rsm_wait_in(mrb, condition->machine, &condition->waiters, RS_WAIT_LIST, 0, deadline_ns, after_signal);
}

static mrb_value after_relock(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rs_mutex_waited(machine->engine, &waited(mrb)->mutex, kind);
    return rsm_wake_error(mrb, machine, kind);
}

/* Of the mutex, after a wait of a condition; it has been interrupted so many times. Returns the error that has ended this, or nil. */
static mrb_value mutex_relock(mrb_state *mrb, mrb_value self) {
    rs_relock relock = {.kind = RS_WAKE_VALUE, .interrupts = (uint32_t)mrb_fixnum(mrb_get_arg1(mrb))};
    rsm_sync *sync = get(mrb, self, &mutex_type);
    bool waits = rs_relock_waits(sync->machine->engine, &sync->mutex, &relock);
    if (!waits) return rsm_wake_error(mrb, sync->machine, relock.kind);
    return rsm_wait_in(mrb, sync->machine, &sync->waiters, RS_WAIT_MUTEX, RS_PARK_SHIELDED, RS_NEVER, after_relock);
}

static mrb_value condition_signal(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &condition_type);
    return mrb_bool_value(rs_list_wake_first(sync->machine->engine, &sync->waiters, 0) != RS_NO_ID);
}

static mrb_value condition_broadcast(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &condition_type);
    return rsm_integer(mrb, rs_list_wake_all(sync->machine->engine, &sync->waiters, 0));
}

/* --- Barrier --- */

static mrb_value barrier_initialize(mrb_state *mrb, mrb_value self) {
    int64_t parties = rsm_int_arg(mrb, rsm_only_arg(mrb), 1, MRB_INT_MAX, "a barrier's parties");
    rs_barrier_init(&make(mrb, self, &barrier_type)->barrier, parties);
    return self;
}

static mrb_value after_barrier(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return mrb_false_value();
}

static mrb_value barrier_wait(mrb_state *mrb, mrb_value self) {
    rsm_sync *sync = get(mrb, self, &barrier_type);
    int64_t deadline_ns = timeout_argument(mrb, sync->machine);
    if (rs_barrier_arrive(sync->machine->engine, &sync->barrier)) return mrb_true_value();
    return rsm_wait_in(mrb, sync->machine, &sync->waiters, RS_WAIT_LIST, 0, deadline_ns, after_barrier);
}

void rsm_init_sync(mrb_state *mrb, struct RClass *module) {
    struct RClass *mutex = rsm_define_data(mrb, module, "Mutex", mrb->object_class);
    mrb_define_method(mrb, mutex, "initialize", mutex_initialize, MRB_ARGS_NONE());
    mrb_define_method(mrb, mutex, "lock", mutex_lock, MRB_ARGS_KEY(1, 0));
    mrb_define_method(mrb, mutex, "try_lock", mutex_try_lock, MRB_ARGS_NONE());
    mrb_define_method(mrb, mutex, "unlock", mutex_unlock, MRB_ARGS_NONE());
    mrb_define_method(mrb, mutex, "locked?", mutex_locked_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, mutex, "owned?", mutex_owned_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, mutex, "waiting", waiting, MRB_ARGS_NONE());
    mrb_define_method(mrb, mutex, "__relock", mutex_relock, MRB_ARGS_REQ(1));
    struct RClass *semaphore = rsm_define_data(mrb, module, "Semaphore", mrb->object_class);
    mrb_define_method(mrb, semaphore, "initialize", semaphore_initialize, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, semaphore, "acquire", semaphore_acquire, MRB_ARGS_KEY(1, 0));
    mrb_define_method(mrb, semaphore, "release", semaphore_release, MRB_ARGS_NONE());
    mrb_define_method(mrb, semaphore, "available", semaphore_available, MRB_ARGS_NONE());
    mrb_define_method(mrb, semaphore, "waiting", waiting, MRB_ARGS_NONE());
    struct RClass *condition = rsm_define_data(mrb, module, "Condition", mrb->object_class);
    mrb_define_method(mrb, condition, "initialize", condition_initialize, MRB_ARGS_NONE());
    mrb_define_method(mrb, condition, "__wait", condition_wait, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, condition, "signal", condition_signal, MRB_ARGS_NONE());
    mrb_define_method(mrb, condition, "broadcast", condition_broadcast, MRB_ARGS_NONE());
    mrb_define_method(mrb, condition, "waiting", waiting, MRB_ARGS_NONE());
    struct RClass *barrier = rsm_define_data(mrb, module, "Barrier", mrb->object_class);
    mrb_define_method(mrb, barrier, "initialize", barrier_initialize, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, barrier, "wait", barrier_wait, MRB_ARGS_KEY(1, 0));
    mrb_define_method(mrb, barrier, "waiting", waiting, MRB_ARGS_NONE());
}
