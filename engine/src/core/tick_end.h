/* tick end: what is called once when the tick ends, that is when the machine is about to ask the backend, and before what was
 * written is handed over. Owned by the machine's thread.
 *
 * For whoever gathers what several strands want in one tick. It is called between strands: it may write and wake, and neither wait
 * nor raise. What it asks to be called later is called when the next tick ends.
 */
#ifndef RINGSPUN_TICK_END_H
#define RINGSPUN_TICK_END_H

#include "ringspun/core/link.h"

typedef struct {
    rs_link link;
    void (*call)(uintptr_t data);
    uintptr_t data;
} rs_tick_end;

/* False: no memory. */
bool rs_tick_ends_add(rs_links *ends, void (*call)(uintptr_t data), uintptr_t data);

void rs_tick_ends_call(rs_links *ends);

/* The data of all that are to be called, for the driver, who keeps it alive. */
void rs_tick_ends_visit(const rs_links *ends, void (*visit)(uintptr_t data));

/* Nobody will be called: the machine ends, or these are the parent's. */
void rs_tick_ends_forget(rs_links *ends);

#endif
