/* machine: a Ringspun::Machine and its strands, as far as all rooms know them.
 *
 * A machine belongs to one mrb_state, and opens at its first use. It is the data of an object, which a variable of the module has while
 * the machine is the current one. Behind it lies what other rooms keep for it (part.h). A strand is the data of its handle; one without
 * a handle is memory of the work that it does (rsm_work). The engine's strand points to it, until the strand ends.
 */
#ifndef RINGSPUN_MRUBY_MACHINE_H
#define RINGSPUN_MRUBY_MACHINE_H

#include "supported.h"

#include "ringspun/engine.h"

#include <pthread.h>

#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/internal.h>
#include <mruby/proc.h>
#include <mruby/variable.h>

#include "values.h"
#include "workers.h"

typedef struct rsm_machine rsm_machine;
typedef struct rsm_strand rsm_strand;
typedef struct rsm_scope rsm_scope;

/* What a wait returns in the strand that has waited, or raises there. */
typedef mrb_value (*rsm_epilogue)(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result);

typedef enum { RSM_LIVES, RSM_DONE, RSM_FAILED, RSM_CANCELLED } rsm_outcome;

/* What a wait leaves for its epilogue. Whoever begins the wait knows its type (RSM_MEMO). */
#define RSM_MEMO_SIZE 32

struct rsm_strand {
    struct mrb_context *context; /* where it waits; NULL: it has not begun */
    rsm_epilogue epilogue;
    _Alignas(8) unsigned char memo[RSM_MEMO_SIZE]; /* of its present wait */
    union {
        rsm_scope *scope;       /* whose block has spun it; NULL: it belongs to a run */
        rsm_strand *caller;     /* has_work: which waits for its first wait or its end; NULL: none does */
    };
    mrb_value *kept;            /* RSM_KEPT of them, in the machine's row (kept_alive.h) */
    mrb_value raises;           /* Array, registered with the collector: to be raised where it waits; nil: nothing */
    rs_id id;
    uint8_t outcome;
    bool turn_ended;            /* and no op has begun since */
    bool has_work;              /* it has no handle: what it runs, and its memory, is another room's (part.h) */
    bool has_batch;             /* of work that has not begun */
    bool never_ran;             /* its present work, because it was concluded before, or the strand was cancelled */
};

/* The memo of its wait, of that type. */
#define RSM_MEMO(type, strand) ((type *)(void *)(strand)->memo)

struct rsm_machine {
    rs_machine *engine;
    mrb_state *mrb;
    rsm_strand root;
    bool open;
    pthread_t thread;           /* that has opened it */
    const struct mrb_context *root_context; /* where its root began */
    const struct mrb_context *outer_context; /* of a simulation: where the strand of the machine before was, */
    ptrdiff_t outer_depth;      /* and how deep */
    uint64_t number;            /* no other has it, and none will */
    mrb_value self;
    rsm_values kept;            /* by the index of a strand, several for each (kept_alive.h) */
    rsm_workers workers;
    struct RClass *strand_class, *cancelled_class, *terminated_class;
    mrb_sym result_name;        /* of the variable in which a handle has it; to look one up takes longer than a wait */
};

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

/* The state ends, and with it its machines. */
void rsm_close_machines(mrb_state *mrb);

#endif
