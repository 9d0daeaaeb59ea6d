/* core: machines, strands and scopes as objects; switching, waiting, sleeping, raising; checks of arguments. This is what other
 * rooms may use of it. What only its own files share is in inner.h. */
#ifndef RINGSPUN_BINDING_CORE_H
#define RINGSPUN_BINDING_CORE_H

#include "binding/cruby/cruby.h"
#include "fibers.h"
#include "outside.h"
#include "part.h"
#include "scheduled.h"

extern VALUE rsb_cMachine, rsb_cStrand, rsb_cScope;

/* The functions that the engine calls. Files above machine.c put in theirs when the extension is loaded. */
extern rs_driver rsb_driver;

/* What a strand without a block runs. */
typedef struct rsb_work {
    /* True: it was killed, and `state` is that of rb_protect. */
    bool (*run)(rsb_machine *machine, rsb_strand *strand, int *state);
    /* No stack could be made for the strand: its work ends with that error. */
    void (*fail)(rsb_machine *machine, rs_strand *strand, VALUE error);
    /* The strand is about to wait and has a batch: another strand takes the rest of the batch. */
    void (*hand_over)(rsb_machine *machine, rs_strand *strand);
} rsb_work;

typedef struct rsb_scope {
    rs_scope engine;
    VALUE self;                 /* good while the scope is open: its owner's stack holds it */
    VALUE machine;
    VALUE first_error;
    VALUE suppressed;
    VALUE foreign;              /* the Cancelled that its block ended with although the scope was not cancelled, or nil */
    rs_scope_end end;
    VALUE deadline;             /* seconds, as it was asked for last */
    VALUE on_error;             /* called when a strand of it fails, or nil; of a run: called for errors that nobody joins */
    uint32_t fork_count;        /* as it was when the scope was opened */
    bool open;
    bool returned;              /* the block, normally */
    bool killed;
    bool nested;                /* of a Ringspun.run inside another: it only counts its strands */
} rsb_scope;

/* --- machine.c --- */

rsb_machine *rsb_current(void);                 /* this thread's machine, made on first use; its strand may wait now */
rsb_machine *rsb_machine_of(VALUE self);        /* checked: right thread, open, able to run now */
rsb_machine *rsb_machine_any_thread(VALUE self);

/* Closed, or its thread has ended without closing it: its strands will never run again. */
static inline bool rsb_is_gone(const rsb_machine *machine) { return !machine->open || machine->thread_ended; }

/* NULL when this thread has none. Asked by every call: one load where a Ruby thread keeps its native thread. On Ruby 3.3 it may
 * not in a ractor, nor with RUBY_MN_THREADS (Feature #19842): native threads that are shared never have a machine here. */
extern __thread rsb_machine *rsb_thread_machine __attribute__((tls_model("initial-exec")));
rsb_machine *rsb_machine_of_thread(VALUE thread);
rsb_machine *rsb_existing_of_moving_thread(void);
static inline rsb_machine *rsb_existing(void) {
    return RS_LIKELY(rsb_thread_machine) ? rsb_thread_machine : rsb_existing_of_moving_thread();
}
/* Binds an object to the machine that uses it, or raises. True: it belonged to one that is gone, and who held it or waited
 * in it went with that. */
bool rsb_bind(VALUE self, VALUE *owner, rsb_machine *machine);

/* initialize_copy of what strands wait in. */
NORETURN(VALUE rsb_refuse_copy(VALUE self, VALUE original));
void rsb_after_fork(rsb_machine *machine);

/* True while no strand runs its own code: no strand at all, or one that was switched to and is not back from its wait. */
static inline bool rsb_between_strands(const rsb_machine *machine) {
    return machine->engine.running == RS_NO_INDEX || machine->engine.runs->wait != RS_WAIT_NONE;
}
/* Before a machine is asked for something outside of a wait: in a forked child it first forgets the strands of the parent. */
static inline void rsb_notice_fork(rsb_machine *machine) {
    if (RS_UNLIKELY(rsb_forks != machine->fork_count) && machine->open && rsb_existing() == machine) rsb_after_fork(machine);
}

/* --- run.c --- */

/* The run to which what the running strand spins belongs: the innermost that it is in. Where that cannot be said, because its strand
 * is beside all runs, the outermost one. */
rs_scope *rsb_run_here(rsb_machine *machine);

/* --- seconds.c --- */

/* The one reading of a span of time that a caller passes: a real number, or what Kernel#sleep takes besides, which answers to
 * divmod, as an ActiveSupport::Duration does. Returns a plain number; nil for all else, and for NaN. */
VALUE rsb_number_of_seconds(VALUE seconds);
/* The same for a limit, which has passed when it is negative: that is 0. Raises a UsageError that names `what` for what is no
 * span of time. RS_NEVER where that is more nanoseconds than an int64_t holds. */
int64_t rsb_seconds_to_ns(VALUE seconds, const char *what);
/* The same for a setting: a negative one is refused. */
int64_t rsb_span_to_ns(VALUE seconds, const char *what);
/* As Kernel#sleep and Mutex#sleep take it, with their errors. */
int64_t rsb_interval_ns(VALUE seconds);
/* As Thread#join, Queue#pop and Timeout.timeout take it: a negative number is 0; nil and infinity are no limit. */
int64_t rsb_limit_ns(VALUE seconds);
/* nil: no limit. */
int64_t rsb_timeout_ns(VALUE seconds);

#define RSB_SECOND_NS INT64_C(1000000000)
#define RSB_MILLISECOND_NS INT64_C(1000000)

/* The way back: a Float of seconds, a struct timespec, and milliseconds as poll(2) takes them: rounded up, RS_NEVER is -1. */
VALUE rsb_seconds(int64_t ns);
static inline struct timespec rsb_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = ns / RSB_SECOND_NS, .tv_nsec = ns % RSB_SECOND_NS};
}
int rsb_milliseconds(int64_t ns);

/* --- time.c --- */

/* The deadline after that delay from now; `machine` is NULL on a thread that has none. */
static inline int64_t rsb_deadline_after(rsb_machine *machine, int64_t delay_ns) {
    if (delay_ns == RS_NEVER) return RS_NEVER;
    return rs_deadline_after(machine ? rs_now(&machine->engine) : rs_clock_ns(), delay_ns);
}
/* nil: never. */
int64_t rsb_deadline(rsb_machine *machine, VALUE seconds, const char *what);
/* The deadline of the option `timeout:`, of an options Hash; and of the arguments of a method that takes no other option. */
int64_t rsb_timeout_deadline(rsb_machine *machine, VALUE options);
int64_t rsb_timeout_given(rsb_machine *machine, int argc, VALUE *argv);
static inline int64_t rsb_timeout_argument(rsb_machine *machine, int argc, VALUE *argv) {
    return RS_LIKELY(argc == 0) ? RS_NEVER : rsb_timeout_given(machine, argc, argv);
}

/* Answers how the sleep ended. The second raises what has ended it other than the time (RS_WAKE_TIMEOUT). */
rs_wake_kind rsb_sleep(rsb_machine *machine, int64_t deadline_ns);
void rsb_slept(rsb_machine *machine, rs_wake_kind kind);
/* rsb_sleep and rsb_slept in one. */
static inline void rsb_sleep_until(rsb_machine *machine, int64_t deadline_ns) {
    rsb_slept(machine, rsb_sleep(machine, deadline_ns));
}
/* The same for that long; 0 is a yield. */
void rsb_sleep_for(rsb_machine *machine, int64_t delay_ns);

/* Runs the body. `late`: the deadline has cancelled it, and the caller is to raise a TimeoutError. */
VALUE rsb_until(rsb_machine *machine, int64_t deadline_ns, VALUE (*body)(VALUE), VALUE argument, bool *late);
/* The same, where the deadline raises that (class or exception, message) once, at a wait inside. */
VALUE rsb_until_raised(rsb_machine *machine, int64_t deadline_ns, const VALUE *raises, VALUE (*body)(VALUE), VALUE argument);

/* --- switch.c --- */

/* A kind of list in which strands wait (RS_WAIT_LIST, RS_WAIT_MUTEX). Each room has those of its own lists. */
typedef struct rsb_list_kind {
    const char *what;           /* a strand in it waits for, in words */
    VALUE (*in_words)(const rs_list *list); /* the same where it depends on the list; else NULL */
    bool for_ractors;           /* another ractor may have what it waits for */
} rsb_list_kind;

/* The kind of the list in which the strand waits; NULL: it waits in none of a kind. */
static inline const rsb_list_kind *rsb_list_kind_of(const rs_strand *strand) {
    if (strand->state != RS_STRAND_PARKED || strand->waiter.list == NULL) return NULL;
    return (const rsb_list_kind *)(uintptr_t)strand->waiter.tag;
}

rs_wake_kind rsb_wait(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                      const rsb_list_kind *kind, int64_t *result);
/* The same in two steps, for a caller that must clean up after the wait: only rsb_check_stack raises. */
void rsb_check_stack(void);
rs_wake_kind rsb_wait_checked(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                              const rsb_list_kind *kind, int64_t *result);
/* The wait of rs_await_begin, after which rs_await_end says what to do. */
rs_wake_kind rsb_await(rsb_machine *machine, int64_t deadline_ns, rs_list *list);
void rsb_yield(rsb_machine *machine);
/* The same where a turn ends (engine/core/turn.h), which is no wait: a strand that has met its cancellation goes on afterwards. */
void rsb_end_turn(rsb_machine *machine);
/* The same as a wait that Evaluation#resume! may end; the strand runs no sooner for that. */
void rsb_yield_resumable(rsb_machine *machine);
/* A yield that a cancelled scope does not refuse. It raises no cancellation, only what was raised for the strand itself, after
 * the others have had their turn. */
void rsb_give_way(rsb_machine *machine);
/* Ends that strand's wait by an unblock and runs it at once; when it waits again the caller goes on, ahead of all others. Raises as
 * rsb_give_way does. If the unblock ends no wait, nothing else happens. */
void rsb_resume_first(rsb_machine *machine, rs_strand *strand);

/* After rs_spawn_first: runs that strand until it waits. */
void rsb_run_first(rsb_machine *machine, rs_strand *caller, rs_strand *first);

/* No errno, for a connection may have timed out by itself (ETIMEDOUT). */
#define RSB_TIME_IS_UP INT64_MIN

/* How a strand waits for its op. Zeroed: without a deadline, and it keeps no object alive. */
typedef struct {
    VALUE keep;                 /* what the kernel may touch */
    VALUE io;                   /* instead of `keep`: the object whose descriptor it is. An op on a stock IO goes to the kernel
                                 * at the next look, and ends with -EBADF if the IO was closed before that */
    uint32_t flags;             /* RS_PARK_ */
    bool takes_bytes_first;     /* its caller takes what was read before it raises what came as well (rsb_raise_pending) */
    bool answers_close;         /* the answer is -EBADF when the descriptor is closed meanwhile; else that raises */
    int64_t deadline_ns;        /* the answer is RSB_TIME_IS_UP when it passes */
    void (*take)(const rs_op *op, void *argument); /* sees the completed op before its memory is freed; must not raise */
    void *argument;
    void *answer;               /* gets a copy of the first `answer_size` bytes of what the op owns */
    size_t answer_size;
} rsb_op_wait;

/* Parks until the request has been done, after a try in vain (rs_try). Raises what cancels or interrupts the strand. */
int64_t rsb_perform(rsb_machine *machine, rs_request *request, const rsb_op_wait *wait);
/* Counts one more op of this turn; the others run if the turn ends with it (engine/core/turn.h). */
static inline void rsb_after_inline(rsb_machine *machine) {
    if (RS_UNLIKELY(rs_turn_ends(&machine->engine))) rsb_end_turn(machine);
}
static inline void rsb_before_look(rsb_machine *machine) {
    if (RS_UNLIKELY(rs_turn_ends_at_look(&machine->engine))) rsb_end_turn(machine);
}
static inline void rsb_before_lock(rsb_machine *machine) {
    if (RS_UNLIKELY(rs_turn_ends_at_lock(&machine->engine))) rsb_end_turn(machine);
}

/* --- raise.c --- */

void rsb_raise_wake(rsb_machine *machine, rs_wake_kind kind);
/* Raises what would refuse a wait of the running strand (rs_refusal), if anything does. */
void rsb_raise_refusal(rsb_machine *machine);
/* In the root: raises what was raised for the thread while a shield or a run kept it from being raised here, or its wait had ended
 * already. */
void rsb_raise_pending(rsb_machine *machine);
/* Leaves the hook: what was meant to end it is forgotten (`hook_error`). */
void rsb_leave_hook(rsb_machine *machine);
/* As `rsb_deliver`; a strand whose wait that ends runs before others that are ready. */
void rsb_deliver_first(rsb_machine *machine, rsb_strand *strand, VALUE exception);

void rsb_raise_in_root(rsb_machine *machine, VALUE error);

/* Raises the error by which another strand or evaluation has ended. In place of a TerminatedError a strand that is cancelled itself
 * gets Cancelled, so that it does not matter which of the two ends first. */
NORETURN(void rsb_raise_result(VALUE error));
/* Raises a result that is an exception. */
static inline VALUE rsb_raise_or_return(VALUE result) {
    if (RS_UNLIKELY(!RB_SPECIAL_CONST_P(result) && rb_obj_is_kind_of(result, rb_eException))) rsb_raise_result(result);
    return result;
}

/* --- mailbox.c --- */

/* From any thread: rsb_interrupt_hook for the scheduler hook that the strand is in now. Nothing happens if it has left that hook
 * when the message comes. */
void rsb_send_hook_interrupt(rsb_machine *machine, rsb_strand *strand, VALUE exception);
/* The same for an object that stands for the call of a hook; it has `alive?` and `raise`. */
void rsb_send_call_interrupt(rsb_machine *machine, VALUE call, VALUE exception);

/* --- strand.c --- */

/* Before a strand is spun: since the last one the program may have loaded a gem that must know of strands. */
void rsb_notice_features(rsb_machine *machine);
rsb_strand *rsb_strand_get(VALUE object);
/* The same for an object that is known to be a Strand. */
static inline rsb_strand *rsb_strand_data(VALUE object) { return RTYPEDDATA_GET_DATA(object); }
/* A Strand object that no program has seen, for a strand that begins runs of concurrent procs. */
VALUE rsb_strand_handle(rsb_machine *machine);
NORETURN(void rsb_fail_strand_limit(rsb_machine *machine));
/* A kill has ended the strand. True for a Thread#kill: the fiber must end too. */
bool rsb_end_killed(rsb_strand *strand);

bool rsb_is_alive(rsb_strand *strand);
bool rsb_is_strand(VALUE object);

/* For the object that a strand waits for in the hook `block`, which may have no class: the locks of `require` have none. */
bool rsb_is_hidden(VALUE object);
bool rsb_is_thread(VALUE object);
/* What a strand waits for that has made the request. */
VALUE rsb_request_in_words(const rs_request *request);
static inline rsb_strand *rsb_running(rsb_machine *machine) { return rs_running(&machine->engine)->user; }

/* --- join.c --- */

/* The value of a strand that has ended; raises its error. */
VALUE rsb_strand_result(rsb_machine *machine, rsb_strand *strand);

/* --- spin.c --- */

/* For Fiber.schedule: a strand in a fiber of its own, which has run until its first wait. Returns the fiber. */
VALUE rsb_strand_schedule(rsb_machine *machine, VALUE body);
/* The same in a fiber out of the pool, and the block is called even when the strand is cancelled; returns the strand. Not
 * `awaited`: it is in no scope, so no run waits for its end, and the caller must. */
VALUE rsb_strand_begin(rsb_machine *machine, bool awaited, VALUE body);

/* --- unread.c --- */

/* An Array of the errors that nobody has read, for a caller that raises them: nobody will report them. */
VALUE rsb_unread_take_all(rsb_machine *machine);

/* --- open_scope.c --- */

/* The scope, which is open, and its machine; else raises. */
rsb_scope *rsb_scope_get_open(VALUE self, rsb_machine **machine);

/* Keeps a fiber other than the strand's own alive, from when a scope of the strand lies on its stack until that is closed. */
void rsb_keep_fiber(rsb_strand *strand, VALUE fiber);
void rsb_let_fiber_go(rsb_strand *strand, VALUE fiber);

/* --- errors.c --- */

/* An error with that message, whose format is as rb_sprintf takes it. */
PRINTF_ARGS(VALUE rsb_error(VALUE class, const char *format, ...), 2, 3);
NORETURN(void rsb_fail(int64_t result, const char *what, int fd));
/* The others become what Ringspun.suppressed lists for that error. */
void rsb_suppress(VALUE error, VALUE others);
/* For errinfo, where `break`, `throw` and a kill leave what is no object at all: asking that for its class would crash. */
static inline bool rsb_is_exception(VALUE info) {
    return !RB_SPECIAL_CONST_P(info) && RB_BUILTIN_TYPE(info) != RUBY_T_IMEMO && rb_obj_is_kind_of(info, rb_eException);
}

/* --- memory.c --- */

/* Raises NoMemoryError. */
NORETURN(void rsb_fail_memory(void));
/* malloc has refused that many bytes: runs the garbage collector, after which it may have them. */
void rsb_collect_for(size_t size);
/* These raise NoMemoryError where there is no memory. The caller frees it, also when something raises before (rb_ensure). */
void *rsb_alloc(size_t size);
void *rsb_realloc(void *old, size_t size);

/* --- limits.c --- */

unsigned long long rsb_proc_number(const char *path);
/* Whether the process may open another descriptor. */
bool rsb_descriptors_left(void);

/* --- values.c --- */

/* `inspect` for messages: for any object, also one without that method, and cut where it is long. */
VALUE rsb_inspect(VALUE object);

/* Raises a UsageError that names `what` unless it is an Integer from min to max. */
int64_t rsb_integer(VALUE value, int64_t min, int64_t max, const char *what);

/* rb_get_kwargs for options that are all optional; the caller has filled `given` with Qundef. Quicker than that, and quickest for
 * the first of the names. */
void rsb_options(VALUE options, int count, const ID *names, VALUE *given);

/* Raises unless a block was given. Called first, so that nothing has been done by then. */
void rsb_need_block(const char *method);

/* `timeout:` out of an options hash, or nil. */
VALUE rsb_timeout_option(VALUE options);

/* --- idle.c --- */

extern ID rsb_id_only_looks; /* an instance variable of threads that will never wake a strand */

void rsb_init_pinned(void);
void rsb_init_machine(void);
void rsb_init_open(void);
void rsb_init_seconds(void);
void rsb_init_time(void);
void rsb_init_mailbox(void);
void rsb_init_strand(void);
void rsb_init_join(void);
void rsb_init_several(void);
void rsb_init_spin(void);
void rsb_init_unread(void);
void rsb_init_open_scope(void);
void rsb_init_run(void);
void rsb_init_scope(void);
void rsb_init_runners(void);
void rsb_init_switch(void);
void rsb_init_idle(void);
void rsb_init_simulation(void);
void rsb_init_inspector(void);
void rsb_init_errors(void);
void rsb_init_values(void);

#endif
