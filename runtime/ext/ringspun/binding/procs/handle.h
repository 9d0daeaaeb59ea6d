/* handle: the data of a Ringspun::Evaluation, which is the handle to a run of a concurrent proc.
 *
 * A run is a frame (frames.h). The handle is made when the program first asks for it. From then on frame and handle point to each
 * other until the run ends. So a call that does not wait makes no object, unless the program asks for its handle.
 *
 * What it has of the engine (engine/procs/evaluation.h) is its state, its result, and who waits for it.
 */
#ifndef RINGSPUN_HANDLE_H
#define RINGSPUN_HANDLE_H

#include "binding/core/core.h"

typedef struct rsb_evaluation {
    rs_evaluation engine;
    VALUE machine;
    VALUE proc;
    VALUE strand;               /* OF_STRAND */
    VALUE data;                 /* Hash, or nil */
    struct rsb_frame *frame;    /* NULL: it does not run */
    uint32_t fork_count;
} rsb_evaluation;

/* Of an object that is known to be one. */
static inline rsb_evaluation *rsb_evaluation_data(VALUE object) { return RTYPEDDATA_GET_DATA(object); }

/* Of a handle, if there is one: 0 is none. */
static inline bool rsb_is_concluded(VALUE object) { return object && rs_is_concluded(&rsb_evaluation_data(object)->engine); }
static inline void rsb_conclude(rsb_machine *machine, VALUE object, VALUE result) {
    if (object) rs_evaluation_conclude(machine->engine, &rsb_evaluation_data(object)->engine, result);
}

#endif
