/* evaluation: Ringspun::Evaluation, the handle to a run of a concurrent proc. What the files of this room share.
 *
 * A run is a frame (frames.h). The handle is made when the program first asks for it. From then on frame and handle point to each
 * other until the run ends. So a call that does not wait makes no object, unless the program asks for its handle.
 *
 * What it has of the engine (engine/procs/evaluation.h) is its state, its result, and who waits for it.
 */
#ifndef RINGSPUN_EVALUATION_H
#define RINGSPUN_EVALUATION_H

#include "frames.h"

typedef struct rsb_evaluation {
    rs_evaluation engine;
    VALUE machine;
    VALUE proc;
    VALUE strand;               /* OF_STRAND */
    VALUE data;                 /* Hash, or nil */
    struct rsb_frame *frame;    /* NULL: it does not run */
    uint32_t fork_count;
} rsb_evaluation;

extern VALUE rsb_cEvaluation, rsb_cConcurrentProc, rsb_eEvaluation;

/* How long a wait may last. */
typedef struct {
    VALUE within;               /* seconds; nil: no limit */
    VALUE timeout_result;       /* Qundef: a timeout raises */
} rsb_limit;

/* Of an object that is known to be one. */
static inline rsb_evaluation *rsb_evaluation_data(VALUE object) { return RTYPEDDATA_GET_DATA(object); }

/* Of a handle, if there is one: 0 is none. */
static inline bool rsb_is_concluded(VALUE object) { return object && rs_is_concluded(&rsb_evaluation_data(object)->engine); }
static inline void rsb_conclude(rsb_machine *machine, VALUE object, VALUE result) {
    if (object) rs_evaluation_conclude(&machine->engine, &rsb_evaluation_data(object)->engine, result);
}

/* evaluation.c */
int64_t rsb_limit_end(rsb_machine *machine, const rsb_limit *limit);
VALUE rsb_limit_passed(rsb_machine *machine, const rsb_limit *limit);
/* Called before a wait that Evaluation#resume! may end; the second after it: true if #resume! has ended it. */
void rsb_resumable(rsb_machine *machine);
bool rsb_was_resumed(rsb_machine *machine, rs_wake_kind kind, VALUE *value);
bool rsb_is_evaluation(VALUE object);
rsb_evaluation *rsb_evaluation_get(VALUE object);
/* Its machine, which this thread must run. In a forked child, concludes an evaluation that runs in the parent. */
rsb_machine *rsb_evaluation_machine(rsb_evaluation *evaluation);
VALUE rsb_evaluation_new(rsb_machine *machine, VALUE proc, VALUE class, rs_evaluation_state state);
VALUE rsb_evaluation_of_frame(rsb_machine *machine, rsb_frame *frame);
/* Somebody gets its result. Where that is an error, a subclass that has a method `error_read` is told. */
void rsb_evaluation_read(VALUE self);
/* Awaits an object that is the evaluation of a run; returns any other object. */
VALUE rsb_result_of_run(VALUE object);
/* evaluation_data.c */
void rsb_init_evaluation_data(void);

/* scope_concurrently.c */
void rsb_init_scope_concurrently(void);

/* select_sources.c */
/* Its source for selectors, made by the first call. It must not be concluded. */
rs_source *rsb_evaluation_source(rsb_evaluation *evaluation);
void rsb_init_select_sources(void);

/* concurrent_proc.c */
/* The class of the evaluations of that proc's runs. */
VALUE rsb_evaluation_class(VALUE proc);
/* True for an error of the program's code; false for one that ends the program, such as exit or a signal. */
bool rsb_is_rescueable(VALUE error);
/* Calls the proc's error handlers. Returns 0, or the state of what ended one and more than it. */
int rsb_trigger_error(VALUE proc, VALUE error);

/* start.c */
/* A run that has not begun: a proc and the arguments of its call. */
typedef struct rsb_start {
    VALUE proc;
    VALUE evaluation;           /* 0: there is no handle */
    VALUE arguments;            /* Array; 0: none */
    VALUE block;                /* or nil */
    VALUE storage;              /* of the calling fiber; nil or 0: none */
    VALUE spawned_at;           /* or nil */
    bool keywords;              /* the last argument is a Hash of keywords */
} rsb_start;

/* How a run has ended, for the strand that started it and is waiting right there. */
typedef struct rsb_start_answer {
    const rsb_start *start;
    VALUE value;
    bool ended;
    bool failed;
} rsb_start_answer;

rsb_start rsb_start_of(rsb_machine *machine, VALUE proc, int argc, const VALUE *argv, VALUE block, bool keywords);
void rsb_start_later(rsb_machine *machine, const rsb_start *start);
/* Runs it at once, in a strand of its own. True: it has ended, and `answer` is its value, or its error if `failed`. False: it
 * waits, and `answer` is its evaluation. */
bool rsb_start_now(rsb_machine *machine, const rsb_start *start, VALUE *answer, bool *failed);
/* Starts it later, in a strand of that scope. */
void rsb_start_in_scope(rsb_machine *machine, rs_scope *scope, VALUE supervisor, const rsb_start *start);

#endif
