/* binding: the only C that knows Ruby. Shared by its files; everything here runs with the GVL held unless it says otherwise.
 *
 * A machine belongs to one Ruby thread. Engine strands point at their rsb_strand, which is the data of a Ringspun::Strand
 * object; live ones are pinned by the machine's mark function, so the pointers hold under compaction.
 */
#ifndef RINGSPUN_BINDING_H
#define RINGSPUN_BINDING_H

#include "ringspun/engine.h"

#include <pthread.h>
#include <ruby.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <ruby/thread.h>

/* Handles of strands that have ended and that nobody has seen, for the next ones: a kilobyte of a machine. */
#define RSB_SPARE_MAX 128

/* See core/machine/runners.h. */
typedef struct rsb_runners {
    VALUE *fibers;              /* the last one is taken first */
    uint32_t len, capacity;
    uint32_t unneeded;          /* so many, the first ones, were not taken since the period began */
    size_t collections, major_collections; /* how many there had been when the period began */
    uint32_t let_go;            /* fibers since the last collection that no strand will use again */
} rsb_runners;

/* What a machine looks for while no strand can run and none is known to wake any. The last look is the one before a deadlock. */
typedef enum { RSB_LOOK_FOR_OTHERS, RSB_LOOK_SOON, RSB_LOOK_FOR_SIGNALS, RSB_LOOK_LAST } rsb_look;

/* Of more threads that run than these none is waited for. */
#define RSB_RUNNING_MAX 8

/* See core/strand/pending.h. */
typedef struct {
    struct {
        int32_t thread;         /* 0: the place is free */
        int64_t used_ns;        /* what it had used of a processor when it was seen first */
    } running[RSB_RUNNING_MAX];
} rsb_pending;

typedef struct rsb_machine {
    rs_machine *engine;
    VALUE self;
    VALUE thread;
    rsb_runners runners;        /* runner fibers that wait for a strand */
    VALUE idle_taken;           /* the one that was taken out of `runners` last, until it runs; 0: none */
    VALUE maker;                /* the fiber that makes runners, or nil */
    struct rsb_fibers *fibers;  /* see core/machine/fibers.h */
    uint32_t fork_count;        /* as it was when the machine last looked */
    bool open;
    rs_link pinned;             /* in the process's list of machines that must stay (core/machine/pinned.c) */
    bool is_pinned;
    bool thread_moves;          /* from one native thread to another */
    bool takes_stack;           /* it holds the lock of fiber_stacks */
    _Atomic bool thread_ended;  /* nobody can run it any more */
    bool locate;                /* record where strands are spun, and when they begin to wait */
    long features_seen;         /* how many files Ruby had loaded when a strand was spun last */
    VALUE root_fiber;           /* the thread's first, where CRuby goes on when a runner ends (return_fiber, cont.c); nil: not known */
    rs_scope outside;           /* the strands that belong to no Ringspun.run */
    rs_scope *outermost;        /* the scope of the outermost Ringspun.run, or `outside` */
    VALUE root_error;           /* the last error of a strand that was raised in the root, or nil */
    VALUE child_error;          /* in a forked child: what its first strand ended with, or nil */
    VALUE stackless_error;      /* what the last strand without a stack failed with */
    int64_t stackless_until_ns;
    rs_id collected_for;        /* the strand for whose stack garbage was collected last */
    pthread_mutex_t wake_lock;  /* guards `wakeable`: nobody sends to a machine that is being closed */
    bool wakeable;
    char backend_reason[200];
    VALUE spare[RSB_SPARE_MAX]; /* handles of strands that nobody has seen */
    uint32_t spare_len;
    rsb_look look;
    rsb_pending pending;
    uint64_t looked_after_resumes; /* metrics.resumes, when it last slept because a strand had run */
    char *scratch;              /* for bytes that are copied on before another strand runs; NULL: not needed yet */
} rsb_machine;

/* What other files keep for a strand lies behind this (core/machine/part.h). */
typedef struct rsb_strand {
    VALUE self;
    VALUE machine;
    VALUE fiber;                /* resume target of the current park */
    VALUE home;                 /* the fiber that runs the strand from its start; nil for the root */
    VALUE scope_fibers;         /* Array of other fibers on whose stacks scopes of it are open, or nil */
    VALUE body;                 /* or nil: see rsb_work */
    VALUE value;
    VALUE error;
    VALUE raises;               /* Array of exceptions to raise at the next park, or nil */
    VALUE messages;             /* Array of values for Machine#park, or nil */
    VALUE storage;
    VALUE supervisor;           /* the Ringspun::Scope it was spun into, or nil */
    VALUE spawned_at;
    VALUE blocker;              /* what a block-like hook waits for, or nil */
    rs_id id;
    VALUE hook_error;           /* the one of `raises` that only the scheduler hook that it is in may raise; 0: none */
    uint32_t hooks_left;        /* how often it has left a hook */
    VALUE kill;                 /* errinfo of a kill, or of a throw, that was caught at a switch; 0: none */
    int kill_state;             /* its rb_protect state */
    bool displaced;             /* it was left in the middle of a Fiber#raise or the like: `fiber` may be out of date */
    bool urgent;                /* something was raised for the thread, to be raised here before the next wait */
    bool kill_pending;          /* `kill` has not been raised at a wait of ours yet */
    bool started;
    bool done;
    bool cancelled;             /* it ended by a cancellation */
    bool used_fiber;            /* its fiber cannot be given to another strand */
    bool certain;               /* its block is called even when it is cancelled; the cancellation is raised at its first wait */
    bool ends_hook;             /* what it raises in another strand's fiber is only for the scheduler hook in there */
    bool own_fiber;             /* `fiber` was made for this strand, and ends with it */
    bool shown;                 /* its handle has been given to the program */
    bool tells_end;             /* the hook `strand_ends` of parts is called when it ends */
} rsb_strand;

extern VALUE rsb_mRingspun;
extern VALUE rsb_eError, rsb_eUsage, rsb_eClosed, rsb_eWrongThread, rsb_eTimeout, rsb_eLimit, rsb_eDeadlock,
    rsb_eTerminated, rsb_eCancelled, rsb_eUnsupported;

extern uint32_t rsb_forks;

void rsb_init_api(void);

/* Keeps a function out of line. A strand that waits keeps its stack, so the frames below a wait should be small: what is seldom
 * called has a frame of its own. */
#define RSB_APART __attribute__((noinline))

#endif
