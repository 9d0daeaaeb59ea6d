/* selector: Ringspun::Selector and its branches, and what select.c uses for its waits. Their rules are the engine's
 * (flow/branches.h). */
#ifndef RINGSPUN_SELECTOR_H
#define RINGSPUN_SELECTOR_H

#include "select.h"

typedef struct {
    rs_branches engine;         /* first */
    VALUE self;
    VALUE machine;
    VALUE after;                /* block or nil */
    VALUE otherwise;            /* block or nil */
    int64_t after_ns;           /* RS_NEVER: no such branch */
    bool never_waits;           /* there is an `otherwise` */
} rsb_selector;

/* The selector, which is open and of this thread's machine; else raises. */
rsb_selector *rsb_selector_get(VALUE self, rsb_machine **machine);
/* A new one, for Ringspun.select. */
rsb_selector *rsb_selector_new(rsb_machine *machine);

/* Adds the branch that fits the class of the source. */
void rsb_selector_add(rsb_selector *s, VALUE source);

extern VALUE rsb_cSelector;


#endif
