/* core: machines, strands and scopes as objects; switching, waiting, sleeping, raising; checks of arguments. This is what other
 * rooms may use of it. What only its own files share is in inner.h.
 *
 * Each of its files calls only those before it here:
 *   a machine   errors memory values seconds limits part faults options pinned pending fibers runners machine
 *   a strand    raise strand idle switch outside scheduled
 *   a scope     open_scope time run unread join several scope spin
 *   the whole   mailbox open simulation inspector
 * What one of them needs of a later one, that one registers: as a part (part.h), for the engine (rsb_driver), or for strands that
 * end (rsb_supervision). */
#ifndef RINGSPUN_BINDING_CORE_H
#define RINGSPUN_BINDING_CORE_H

#include "binding/cruby/cruby.h"
#include "errors.h"
#include "fibers.h"
#include "list_kind.h"
#include "machine.h"
#include "outside.h"
#include "part.h"
#include "raise.h"
#include "scheduled.h"
#include "switch.h"
#include "time.h"

extern VALUE rsb_cMachine, rsb_cStrand, rsb_cScope;

/* What strands without a block do. A room above puts it in when the extension is loaded. */
typedef struct rsb_work {
    /* True: it was killed, and `state` is that of rb_protect. */
    bool (*run)(rsb_machine *machine, rsb_strand *strand, int *state);
    /* No stack could be made for the strand: its work ends with that error. */
    void (*fail)(rsb_machine *machine, rs_strand *strand, VALUE error);
    /* The strand is about to wait and has a batch: another strand takes the rest of the batch. */
    void (*hand_over)(rsb_machine *machine, rs_strand *strand);
} rsb_work;

extern rsb_work rsb_without_block;

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
/* When all parts are registered: a handle with more would take twice the memory. */
void rsb_check_strand_size(void);
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
