/* evaluation: what the files of this room share. */
#ifndef RINGSPUN_EVALUATION_H
#define RINGSPUN_EVALUATION_H

#include "frames.h"
#include "handle.h"

extern VALUE rsb_cEvaluation, rsb_cConcurrentProc, rsb_eEvaluation;

/* How long a wait may last. */
typedef struct {
    VALUE within;               /* seconds; nil: no limit */
    VALUE timeout_result;       /* Qundef: a timeout raises */
} rsb_limit;

/* await.c */
int64_t rsb_limit_end(rsb_machine *machine, const rsb_limit *limit);
VALUE rsb_limit_passed(rsb_machine *machine, const rsb_limit *limit);
/* Called before a wait that Evaluation#resume! may end; the second after it: true if #resume! has ended it. */
void rsb_resumable(rsb_machine *machine);
bool rsb_was_resumed(rsb_machine *machine, rs_wake_kind kind, VALUE *value);
/* Awaits an object that is the evaluation of a run; returns any other object. */
VALUE rsb_result_of_run(VALUE object);

/* evaluation.c */
bool rsb_is_evaluation(VALUE object);
/* True: it is the evaluation of a strand, and of no run. */
bool rsb_is_of_strand(const rsb_evaluation *evaluation);
rsb_evaluation *rsb_evaluation_get(VALUE object);
/* Its machine, which this thread must run. In a forked child, concludes an evaluation that runs in the parent. */
rsb_machine *rsb_evaluation_machine(rsb_evaluation *evaluation);
VALUE rsb_evaluation_new(rsb_machine *machine, VALUE proc, VALUE class, rs_evaluation_state state);
/* The same in two steps, between which the handle gets its frame: a subclass of the program may have an initialize, which may also
 * wait. */
VALUE rsb_evaluation_make(rsb_machine *machine, VALUE proc, VALUE class, rs_evaluation_state state);
VALUE rsb_evaluation_initialize(VALUE self);
/* Somebody gets its result. Where that is an error, a subclass that has a method `error_read` is told. */
void rsb_evaluation_read(VALUE self);

/* current.c */
VALUE rsb_evaluation_of_frame(rsb_machine *machine, rsb_frame *frame);
/* Of the code that runs. */
VALUE rsb_evaluation_here(rsb_machine *machine);

/* select_sources.c */
/* Its source for selectors, made by the first call. It must not be concluded. */
rs_source *rsb_evaluation_source(rsb_evaluation *evaluation);

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
