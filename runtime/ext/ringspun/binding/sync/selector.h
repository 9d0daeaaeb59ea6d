/* selector: Ringspun::Selector, its branches, and what select.c uses for its waits.
 *
 * A selector has a branch for each source: the engine's watch, and what to do when it wins. Looking at a branch either takes what
 * its source has, and that branch wins in any case, or changes nothing.
 */
#ifndef RINGSPUN_SELECTOR_H
#define RINGSPUN_SELECTOR_H

#include "select.h"

#include <poll.h>

/* STREAM and the kinds after it wait for a descriptor. */
typedef enum {
    POP, PUSH, POP_CHANNEL, PUSH_CHANNEL, ACQUIRE, RESULT, STREAM, READABLE, WRITABLE
} rsb_branch_kind;

typedef struct {
    rs_watch watch;             /* first: a pointer to it is one to the branch */
    VALUE source;
    VALUE item;                 /* of a push */
    VALUE block;                /* or nil */
    const rsb_result_kind *result; /* of a RESULT */
    rsb_branch_kind kind;
    uint32_t generation;        /* of a descriptor that was given as an Integer */
    long at;                    /* index in `branches` */
} rsb_branch;

typedef struct {
    rs_selector engine;
    VALUE self;
    VALUE machine;
    rsb_branch **branches;      /* `len` of them are in use; the others, up to `made`, are memory for later branches */
    long len, made, capacity;
    rsb_branch *left;           /* a branch that was deleted after it was served and before the strand has run */
    VALUE after;                /* block or nil */
    VALUE otherwise;            /* block or nil */
    int64_t after_ns;           /* RS_NEVER: no such branch */
    bool never_waits;           /* there is an `otherwise` */
    rs_id waiting;              /* the strand that waits in the selector */
    bool closed;
} rsb_selector;

/* The selector, which is open and of this thread's machine; else raises. */
rsb_selector *rsb_selector_get(VALUE self, rsb_machine **machine);
/* A new one, for Ringspun.select. */
rsb_selector *rsb_selector_new(rsb_machine *machine);
void rsb_selector_close(rsb_selector *s);

/* Adds the branch that fits the class of the source. */
void rsb_selector_add(rsb_selector *s, VALUE source);

static inline uint32_t rsb_branch_events(const rsb_branch *b) { return b->kind == WRITABLE ? POLLOUT : POLLIN; }

extern VALUE rsb_cSelector;

void rsb_init_select(void);

#endif
