/* runners: the pool of fibers that have run a strand and wait for another. It keeps as many as strands have lately needed at
 * once, and never fewer than KEPT_MIN. CRuby frees a fiber's stack when it collects the fiber (fiber_free in cont.c), so the pool
 * shrinks when it is marked. A period ends with a major collection, or after some minor ones, because each of them scans all
 * stacks that are kept. A runner that was not needed during a whole period is dropped.
 *
 * Only the machine's thread calls these functions, and the garbage collector rsb_runners_mark. It never does so in the middle of
 * another call, because none of these allocates a Ruby object.
 */
#ifndef RINGSPUN_RUNNERS_H
#define RINGSPUN_RUNNERS_H

#include "binding/binding.h"

/* The pool must not be empty. */
static inline VALUE rsb_runners_take(rsb_runners *runners) {
    RS_ASSERT(runners->len > 0);
    VALUE fiber = runners->fibers[--runners->len];
    if (runners->len < runners->unneeded) runners->unneeded = runners->len;
    return fiber;
}

/* False: there is no memory for another. */
bool rsb_runners_make_room(rsb_runners *runners);

static inline bool rsb_runners_has_room(rsb_runners *runners) {
    return runners->len < runners->capacity || rsb_runners_make_room(runners);
}

/* There must be room: rsb_runners_has_room. */
static inline void rsb_runners_put(rsb_runners *runners, VALUE fiber) {
    RS_ASSERT(runners->len < runners->capacity);
    runners->fibers[runners->len++] = fiber;
}

/* Nothing happens if it is not in the pool. */
void rsb_runners_remove(rsb_runners *runners, VALUE fiber);

void rsb_runners_mark(rsb_runners *runners);

/* A strand has ended on a fiber that no other may use. The garbage collector must free its stack: after many of these it runs,
 * even if the program has disabled it. */
void rsb_runners_let_go(rsb_runners *runners);

/* CRuby has no stack left: empties the pools of all machines and runs the garbage collector. */
void rsb_runners_collect(void);
void rsb_runners_free(rsb_runners *runners);

#endif
