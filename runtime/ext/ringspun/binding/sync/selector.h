/* selector: Ringspun::Selector as an object: its branches, and what its waits (select.c) know of them.
 *
 * A selector has a branch for each source: the engine's watch, and what to do when it wins. Looking at a branch either takes what
 * its source has, which is then the selector's whatever happens, or leaves everything as it was.
 */
#ifndef RINGSPUN_SELECTOR_H
#define RINGSPUN_SELECTOR_H

#include "select.h"

#include <poll.h>

/* Those from STREAM on wait for a descriptor. */
typedef enum {
    POP, PUSH, POP_CHANNEL, PUSH_CHANNEL, ACQUIRE, RESULT, STREAM, READABLE, WRITABLE
} rsb_branch_kind;

typedef struct {
    rs_watch watch;             /* first, for the engine knows the branch by it */
    VALUE source;
    VALUE item;                 /* of a push */
    VALUE block;                /* or nil */
    const rsb_result_kind *result; /* of a RESULT */
    rsb_branch_kind kind;
    uint32_t generation;        /* of a descriptor that was given as a number */
    long at;                    /* in the selector's table */
} rsb_branch;

typedef struct {
    rs_selector engine;
    VALUE self;
    VALUE machine;
    rsb_branch **branches;      /* behind the first `len`, a few whose memory the next ones take */
    long len, made, capacity;
    rsb_branch *left;           /* it has been deleted while something was on its way through it */
    VALUE after;                /* block or nil */
    VALUE otherwise;            /* block or nil */
    int64_t after_ns;           /* RS_NEVER: no such branch */
    bool never_waits;           /* there is an `otherwise` */
    rs_id waiting;              /* the strand that waits in it */
    bool closed;
} rsb_selector;

/* One that can be used; or one for Ringspun.select, without a call of the program's. */
rsb_selector *rsb_selector_get(VALUE self, rsb_machine **machine);
rsb_selector *rsb_selector_new(rsb_machine *machine);
void rsb_selector_close(rsb_selector *s);

/* For what the class of the object says. */
void rsb_selector_add(rsb_selector *s, VALUE source);

static inline uint32_t rsb_branch_events(const rsb_branch *b) { return b->kind == WRITABLE ? POLLOUT : POLLIN; }

extern VALUE rsb_cSelector;

void rsb_init_select(void);

#endif
