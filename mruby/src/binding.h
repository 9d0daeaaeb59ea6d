/* binding: what the files of mruby's binding share.
 *
 * A machine belongs to one mrb_state, and opens at its first use. A strand runs on a worker fiber, whose body is bytecode (WORKER in
 * mrblib), and is switched to by straight transfer (switch.c).
 *
 * A method that waits is a C function whose last act is rsm_park or rsm_next: what comes after the wait is the strand's epilogue,
 * which whoever switches to the strand calls when mrb->c is the strand's already. So an epilogue may raise.
 */
#ifndef RINGSPUN_MRUBY_BINDING_H
#define RINGSPUN_MRUBY_BINDING_H

#include "engine/engine.h"

#include <pthread.h>

#include <mruby.h>

/* Before what needs these. */
#ifdef MRB_NO_FLOAT
#error "mruby-ringspun needs floats: times are seconds with a fraction"
#endif
#ifdef MRB_USE_FLOAT32
#error "mruby-ringspun needs floats of 64 bits: in those of 32 the seconds of a clock have no fraction"
#endif
#ifdef MRB_NO_BOXING
#error "mruby-ringspun keeps values in one word: build mruby with word boxing or NaN boxing"
#endif

#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/internal.h>
#include <mruby/proc.h>
#include <mruby/variable.h>

#include "values.h"

typedef struct rsm_machine rsm_machine;
typedef struct rsm_strand rsm_strand;
typedef struct rsm_scope rsm_scope;
typedef struct rsm_evaluation rsm_evaluation;

/* What a wait returns in the strand that has waited, or raises there. */
typedef mrb_value (*rsm_epilogue)(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result);

/* What a request that has succeeded with that result returns. May raise. */
typedef mrb_value (*rsm_answer)(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result);

typedef enum { RSM_LIVES, RSM_DONE, RSM_FAILED, RSM_CANCELLED } rsm_outcome;

/* What the handle of a strand points to. The engine's strand points to it too, until the strand ends. */
struct rsm_strand {
    struct mrb_context *context; /* where it waits; NULL: it has not begun */
    rsm_epilogue epilogue;
    union {                     /* what it waits for */
        struct {
            rs_op *op;
            rsm_answer answer;  /* of that */
        };
        rsm_strand *joins;
        struct {
            rsm_strand *callee; /* whose first wait or end it is (call_nonblock); NULL: that has ended */
            rs_turn turn;       /* its own, meanwhile */
        };
        rsm_strand *spare;      /* of a strand that has ended: the next whose memory is for runs of procs */
    };
    union {
        rsm_scope *scope;       /* whose block has spun it; NULL: it belongs to a run */
        rsm_strand *caller;     /* runs_proc: whose `callee` it is */
    };
    mrb_value *kept;            /* RSM_KEPT of them, in the machine's row */
    mrb_value raises;           /* Array, registered with the collector: to be raised where it waits; nil: nothing */
    rs_id id;
    uint8_t outcome;
    bool turn_ended;            /* and no op has begun since */
    bool runs_proc;             /* a concurrent proc: nobody has its handle, and its memory goes when it ends */
    bool has_batch;             /* of runs that have not begun */
    bool never_ran;             /* that proc, for its evaluation was concluded before, or it was cancelled */
};

/* What Ringspun::Scope points to. Its method in mrblib opens, settles and closes it. */
struct rsm_scope {
    rs_scope engine;            /* first: a rs_scope of the engine that has an object is one of these */
    struct RData *object;
    rsm_machine *machine;       /* NULL: it was never opened, or all is over */
    uint32_t children;          /* strands that point to it */
    bool cut_children;          /* one was cancelled before it had a value */
};

/* A method of bytecode that calls a concurrent proc on its caller's own stack. */
typedef struct {
    struct RProc *method;
    int local;                  /* its local variable with the evaluation */
} rsm_call;

typedef struct rsm_period rsm_period;

/* Fibers without a strand. */
typedef struct {
    mrb_value fibers;           /* Array */
    mrb_int unneeded;           /* during this period, at least */
    rsm_period *period;         /* NULL: none has begun, or it is over */
} rsm_workers;

struct rsm_machine {
    rs_machine engine;
    rs_rooms rooms;
    mrb_state *mrb;
    rsm_strand root;
    bool open;
    pthread_t thread;           /* that has opened it */
    const struct mrb_context *root_context; /* where its root began */
    const struct mrb_context *outer_context; /* of a simulation: where the strand of the machine before was, */
    ptrdiff_t outer_depth;      /* and how deep */
    uint64_t number;            /* no other has it, and none will */
    uint32_t scopes;            /* objects that point to it */
    mrb_value self;
    rsm_values kept;            /* by the index of a strand, several for each (rsm_kept) */
    rsm_workers workers;
    rs_links streams;           /* those that have a descriptor */
    rsm_strand *spare_runs;     /* memory for runs of procs, linked by `spare` */
    struct RClass *strand_class, *cancelled_class, *terminated_class, *stream_class, *evaluation_class;
    rsm_call plain_call, call_with_arguments;
    struct RProc *await_with_options, *readable_with_options, *writable_with_options;
    /* To look one up takes longer than a wait. */
    mrb_sym block_name, evaluation_class_name, proc_name, result_name, ahead_name, fileno_name;
};

/* Whether the running method was given nothing. Callers that hand on what they were given may say so with empty ones. */
static inline bool rsm_is_plain(mrb_state *mrb) { return mrb_get_argc(mrb) == 0 && mrb->c->ci->nk == 0; }

/* The machine of that state, which is open. */
rsm_machine *rsm_machine_of(mrb_state *mrb);

/* The machine that has ops on descriptors of the system: in a simulation the one outside. NULL: none is open, or it is another
 * thread's. Opens none. */
rsm_machine *rsm_machine_of_system(mrb_state *mrb);

/* Another machine of that state, for as long as it is the current one. */
rsm_machine *rsm_machine_new(mrb_state *mrb);
void rsm_machine_open(mrb_state *mrb, rsm_machine *machine, const rs_backend *backend, const rs_options *options);
void rsm_machine_make_current(mrb_state *mrb, rsm_machine *machine);
void rsm_machine_close(rsm_machine *machine);

static inline rsm_strand *rsm_running(rsm_machine *machine) { return rs_running(&machine->engine)->user; }

/* What the machine keeps alive for a strand, until that ends. */
typedef enum {
    RSM_KEPT_OBJECT,            /* its handle; or the concurrent proc that it runs */
    RSM_KEPT_FIBER,             /* and before it begins, its block */
    RSM_KEPT_EVALUATION,        /* of what it runs; nil: nobody has asked for it */
    RSM_KEPT_VALUE,             /* with which it is resumed */
    RSM_KEPT_STARTS,            /* Array: what the runs of its batch need, several values for each */
    RSM_KEPT
} rsm_kept_for;

/* The strands of a page of the row, so that no strand's values lie in two. */
_Static_assert(RSM_PAGE % RSM_KEPT == 0, "a page holds the values of whole strands");

/* Room for those of one more strand, so that rsm_keep raises nothing. */
static inline void rsm_reserve_kept(mrb_state *mrb, rsm_machine *machine) {
    uint32_t count = rs_strands_names(&machine->engine.strands);
    if (RS_UNLIKELY((int64_t)RSM_KEPT * count >= machine->kept.len)) rsm_values_add_page(mrb, &machine->kept);
}

/* The engine has given it that name. */
static inline void rsm_strand_named(rsm_machine *machine, rsm_strand *strand, rs_id id) {
    strand->id = id;
    strand->kept = rsm_values_place(&machine->kept, (mrb_int)RSM_KEPT * rs_id_index(id));
}

static inline mrb_value rsm_kept(const rsm_strand *strand, rsm_kept_for what) { return strand->kept[what]; }

static inline void rsm_keep(mrb_state *mrb, rsm_machine *machine, const rsm_strand *strand, rsm_kept_for what, mrb_value value) {
    strand->kept[what] = value;
    mrb_value page = rsm_values_page(&machine->kept, (mrb_int)RSM_KEPT * rs_id_index(strand->id));
    mrb_field_write_barrier_value(mrb, mrb_basic_ptr(page), value);
}

static inline void rsm_forget_kept(const rsm_strand *strand) {
    for (int what = 0; what < RSM_KEPT; what++) strand->kept[what] = mrb_nil_value();
}

/* A variable of an object of ours, also of one that the program has frozen. */
static inline void rsm_force_variable(mrb_state *mrb, mrb_value object, mrb_sym name, mrb_value value) {
    mrb_obj_iv_set_force(mrb, mrb_obj_ptr(object), name, value);
}

/* --- workers.c --- */

static inline mrb_int rsm_workers_len(const rsm_workers *workers) { return RARRAY_LEN(workers->fibers); }

/* nil: there is none. */
static inline mrb_value rsm_workers_take(mrb_state *mrb, rsm_workers *workers) {
    mrb_value fiber = mrb_ary_pop(mrb, workers->fibers);
    if (rsm_workers_len(workers) < workers->unneeded) workers->unneeded = rsm_workers_len(workers);
    return fiber;
}

/* What an Array holds of mruby's own making (MRB_ARY_LENGTH_MAX), or less. Those above are left to the collector. */
#define RSM_WORKERS_MAX 65536

static inline void rsm_workers_put(mrb_state *mrb, rsm_workers *workers, mrb_value fiber) {
    if (RS_LIKELY(rsm_workers_len(workers) < RSM_WORKERS_MAX)) mrb_ary_push(mrb, workers->fibers, fiber);
}

/* A pool of fewer is not worth shrinking. */
#define RSM_WORKERS_KEPT 128

/* Leaves to the collector what was not needed, if there was a collection. */
void rsm_workers_period_is_over(mrb_state *mrb, rsm_machine *machine);
static inline void rsm_workers_shrink(mrb_state *mrb, rsm_machine *machine) {
    const rsm_workers *workers = &machine->workers;
    if (RS_LIKELY(workers->period || rsm_workers_len(workers) <= RSM_WORKERS_KEPT)) return;
    rsm_workers_period_is_over(mrb, machine);
}

/* The machine is closed. */
void rsm_workers_close(rsm_workers *workers);

/* --- errors.c --- */

/* A class of ours: "UsageError" and the like. */
struct RClass *rsm_class(mrb_state *mrb, const char *name);

/* A new one of that class of ours. */
mrb_value rsm_error(mrb_state *mrb, const char *class, const char *message);

/* Raises the error in that strand where it waits, or will wait. `first`: it runs next. */
void rsm_deliver(mrb_state *mrb, rsm_machine *machine, rs_strand *strand, mrb_value error, bool first);

/* The error is not raised any more there. */
void rsm_undeliver(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, mrb_value error);

/* The error that has ended a wait; nil for RS_WAKE_VALUE. */
mrb_value rsm_wake_error(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind);

/* Raises it. */
void rsm_raise_wake(mrb_state *mrb, rsm_machine *machine, rs_wake_kind kind);

/* An Integer within these limits, or a UsageError about `what`. */
int64_t rsm_int_arg(mrb_state *mrb, mrb_value value, int64_t min, int64_t max, const char *what);
/* That of an `initialize` with one argument: Class#new hands on an empty Hash of options, which mrb_get_arg1 takes for one. */
mrb_value rsm_only_arg(mrb_state *mrb);
/* The block of a method that takes nothing else, or a UsageError. */
mrb_value rsm_block_arg(mrb_state *mrb, const char *method);
void rsm_check_string(mrb_state *mrb, mrb_value value, const char *what);

/* What the system has answered to that request. */
mrb_noreturn void rsm_fail(mrb_state *mrb, rsm_machine *machine, int64_t result, const rs_request *request);

/* The descriptor of that request was closed. */
mrb_noreturn void rsm_fail_closed(mrb_state *mrb, const rs_request *request);
void rsm_init_errors(mrb_state *mrb, struct RClass *module);

/* --- switch.c --- */

/* Raises where the running strand may not wait now, because a C function of the virtual machine lies between; to be called before
 * the wait has begun. */
void rsm_check_boundary(mrb_state *mrb);

/* The fiber that the running strand began on. */
const struct mrb_context *rsm_first_context(mrb_state *mrb);

/* For rs_driver: programs have stacks of their own inside a strand, in generators. */
const void *rsm_stack(rs_machine *engine);
const void *rsm_outer_stack(const void *context);

/* That strand, which ran until now, has begun to park, and waits from here on. */
mrb_value rsm_park(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rsm_epilogue epilogue);

/* That strand, which ran until now, waits while `first` begins, which runs by the engine's word already. */
mrb_value rsm_run_first(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_strand *first, rsm_epilogue epilogue);

/* Goes on with the strand whose turn it is. */
mrb_value rsm_next(mrb_state *mrb, rsm_machine *machine);

/* --- io.c --- */

/* The machine of a method that begins an op, where it may wait. Raises in a strand that was cancelled and whose turn has ended: one
 * that never waits would not hear of it. */
rsm_machine *rsm_io_machine(mrb_state *mrb);

/* The request is tried at once, and becomes an op where it would wait. Takes over what it owns. */
mrb_value rsm_perform(mrb_state *mrb, rsm_machine *machine, const rs_request *request, rsm_answer answer);

typedef struct {
    rsm_answer answer;
    rsm_epilogue epilogue;      /* NULL: rsm_after_op */
    uint32_t flags;             /* RS_PARK_ */
    int64_t deadline_ns;        /* 0: none */
    bool resumable;             /* Evaluation#resume! may end it, and the epilogue asks */
    bool *waits;                /* becomes true with the wait, and is the epilogue's to end; NULL: nobody asks */
} rsm_op_wait;

/* The same without the try: the last act of a method. */
mrb_value rsm_wait_for(mrb_state *mrb, rsm_machine *machine, const rs_request *request, const rsm_op_wait *how);
mrb_value rsm_after_op(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result);

mrb_value rsm_answer_nil(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result);

/* Memory that a request owns. */
void *rsm_owned(mrb_state *mrb, size_t size);

/* What is there, at most `len` bytes, or nil at the end; at that place of a file, or -1: where the descriptor is. */
mrb_value rsm_read(mrb_state *mrb, int fd, mrb_value len, int64_t offset);

/* How many bytes were written: all with RS_REQUEST_ALL, unless an error came after the first. */
mrb_value rsm_write(mrb_state *mrb, int fd, mrb_value bytes, int64_t offset, uint8_t options, const rsm_op_wait *how);

/* Waits until it is ready for one of the events of poll(2), or for `within` seconds (nil: without a limit); true, the argument of
 * Evaluation#resume!, or, when its time is up, the method's first argument. */
mrb_value rsm_poll(mrb_state *mrb, int fd, uint32_t events, mrb_value within);

/* A write to a pipe or socket that nobody reads is an error, and no signal that ends the process. */
void rsm_survive_broken_pipes(void);

/* --- stream.c --- */

/* A stream without a descriptor yet, and what gives it one. */
mrb_value rsm_stream_new(mrb_state *mrb, rsm_machine *machine);
void rsm_stream_take(rsm_machine *machine, mrb_value stream, int fd);
/* Both. */
mrb_value rsm_answer_stream(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t fd);

/* The descriptor of an open stream. */
int rsm_stream_fd(mrb_state *mrb, mrb_value self);

/* An op has failed with that result and error in a method of ours, which may be a stream's. The error keeps that this stream's other
 * side is gone, for Stream#__peers_fault?, if the result says so. */
void rsm_stream_blame(mrb_state *mrb, mrb_value error, int64_t result);

/* The machine is closed, and with it its streams. */
void rsm_close_streams(rsm_machine *machine);

/* --- socket.c --- */

/* "127.0.0.1:80", "[::1]:80", or the path. */
mrb_value rsm_address_text(mrb_state *mrb, const void *address, size_t len);

/* --- sync.c --- */

/* That object belongs to the machine that used it first, until that is closed: now perhaps to the current one, in `owner`. True: it
 * is new there, and whoever waited in it has gone. */
bool rsm_bind(mrb_state *mrb, mrb_value self, rsm_machine **owner);

/* The running strand waits in that list. If this is refused, the epilogue is called at once. */
mrb_value rsm_wait_in(mrb_state *mrb, rsm_machine *machine, rs_list *list, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns,
                      rsm_epilogue epilogue);

/* The deadline of the running method, which takes so many arguments and timeout:. The one behind the required is non_block. */
int64_t rsm_wait_arguments(mrb_state *mrb, rsm_machine *machine, mrb_int required, mrb_int most, bool *non_block);

/* A class of objects that cannot be copied, and whose data is made once, by their `initialize`. */
struct RClass *rsm_define_data(mrb_state *mrb, struct RClass *module, const char *name, struct RClass *super);
void rsm_refuse_again(mrb_state *mrb, mrb_value self);

/* --- evaluation.c --- */

/* The methods of mrblib that go on in the frame of one of ours, when mrblib is there. */
void rsm_find_calls(mrb_state *mrb, rsm_machine *machine);

mrb_value rsm_evaluation_of(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);
mrb_value rsm_evaluation_to_start(mrb_state *mrb, rsm_machine *machine, mrb_value proc);
void rsm_evaluation_begin(mrb_state *mrb, mrb_value self, rs_id strand);
bool rsm_is_concluded(mrb_state *mrb, mrb_value self);

/* Its run has ended like that, or never begins. What it is concluded to. */
mrb_value rsm_evaluation_ended(mrb_state *mrb, rsm_machine *machine, mrb_value self, mrb_value result);

/* Raises the error by which another strand or evaluation has ended. In place of a TerminatedError a strand that is cancelled itself
 * gets Cancelled, so that it does not matter which of the two ends first. */
mrb_noreturn void rsm_raise_result(mrb_state *mrb, mrb_value error);

/* Raises a result that is an exception. */
mrb_value rsm_raise_or_return(mrb_state *mrb, mrb_value result);

/* What Evaluation#resume! was given. */
mrb_value rsm_take_resume_value(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);

/* --- procs.c --- */

/* What that strand, which runs a proc, calls when it begins. */
mrb_value rsm_first_run(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);

/* What it calls after a run; nil: nothing more. */
mrb_value rsm_next_run(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);

/* It has begun to wait, and another strand begins the rest of its batch. */
void rsm_hand_over(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);

/* Its memory is for the next, and goes with the machine. */
void rsm_spare_run(rsm_machine *machine, rsm_strand *strand);
void rsm_free_spare_runs(mrb_state *mrb, rsm_machine *machine);

/* The run of a proc has ended with that value or that error. */
void rsm_run_ended(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, mrb_value value, mrb_value error);

/* --- the other files --- */

/* A wait that ends by itself: its time is up, or somebody wakes it. Anything else is raised. */
mrb_value rsm_after_wait(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result);

/* A strand that runs the block in that scope, NULL: in the run's; its handle. */
mrb_value rsm_spin(mrb_state *mrb, rsm_machine *machine, rsm_scope *scope, mrb_value block);

/* A strand of that scope has ended, with that error or nil. */
void rsm_scope_child_ended(mrb_state *mrb, rsm_machine *machine, rsm_scope *scope, const rsm_strand *child, mrb_value error);

/* The machine ends before its heap: no scope belongs to it any more. */
void rsm_scopes_outlive(rsm_machine *machine);

/* What a strand of Machine#spin belongs to: the innermost run around the running strand, else the root. */
static inline rs_scope *rsm_run_scope(rsm_machine *machine) {
    rs_scope *run = rs_scope_run_here(&machine->engine);
    return run ? run : &rs_root(&machine->engine)->own;
}

/* nil: never. Errors name the argument by `what`. */
int64_t rsm_deadline(mrb_state *mrb, rsm_machine *machine, mrb_value seconds, const char *what);

void rsm_init_strand(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_scope(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_wait(mrb_state *mrb, struct RClass *module, struct RClass *machine);
/* As an Integer; as a Float where it does not fit. */
static inline mrb_value rsm_integer(mrb_state *mrb, uint64_t number) {
    return number <= (uint64_t)MRB_INT_MAX ? mrb_int_value(mrb, (mrb_int)number) : mrb_float_value(mrb, (mrb_float)number);
}

void rsm_init_simulation(mrb_state *mrb, struct RClass *module);
void rsm_init_evaluation(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_procs(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_io(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_stream(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_socket(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_sync(mrb_state *mrb, struct RClass *module);
void rsm_init_queue(mrb_state *mrb, struct RClass *module);

#endif
