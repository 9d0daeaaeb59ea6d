/* runners: fibers that have run a strand and wait for another. As many are kept as strands have lately needed at once, and never
 * fewer than a few. CRuby frees a stack when it collects the fiber, so the list is looked at when it is marked: a period ends
 * with a major collection, or after some minor ones, each of which scans all that are kept. Who was not needed in the whole of a
 * period goes.
 *
 * All of it belongs to the machine's thread. Only a collection marks, which no thread of the ractor is in the middle of a call
 * beside, for none of these allocates from Ruby.
 */
#ifndef RINGSPUN_RUNNERS_H
#define RINGSPUN_RUNNERS_H

#include "binding/binding.h"

/* Of one that is not empty. */
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

/* Where there is room. */
static inline void rsb_runners_put(rsb_runners *runners, VALUE fiber) {
    RS_ASSERT(runners->len < runners->capacity);
    runners->fibers[runners->len++] = fiber;
}

/* One that is there no more, perhaps. */
void rsb_runners_remove(rsb_runners *runners, VALUE fiber);

void rsb_runners_mark(rsb_runners *runners);

/* A strand has ended on a fiber that is used up. Its stack waits for the collector: that comes once there are many, even where the
 * program has turned it off. */
void rsb_runners_let_go(rsb_runners *runners);

/* Collects, and keeps none, of any machine: somebody lacks a stack. */
void rsb_runners_collect(void);
void rsb_runners_free(rsb_runners *runners);

#endif
