/* sync: locks, queues, channels and selectors. What other rooms may use of this one. */
#ifndef RINGSPUN_SYNC_H
#define RINGSPUN_SYNC_H

#include "binding/core/core.h"

/* --- results.c --- */

/* Evaluations, strands. The result stays where it is for others; an error is one like any other. */
typedef struct rsb_result_kind {
    const struct rsb_result_kind *next;
    bool (*is)(VALUE object);
    rs_source *(*source)(VALUE self); /* NULL: the result is there */
    bool (*look)(VALUE self, VALUE *result);
} rsb_result_kind;

/* Once, when the extension is loaded. */
void rsb_register_result(rsb_result_kind *kind);
const rsb_result_kind *rsb_result_kind_of(VALUE object); /* NULL: it has none */

/* --- selector.c --- */

/* One that the program does not see, for a wait in its list; the caller's alone until it is given back. `self` keeps it alive. */
rs_selector *rsb_selector_borrow(rsb_machine *machine, VALUE *self);
void rsb_selector_give_back(rsb_machine *machine, rs_selector *selector);
/* That object's source, which has nothing yet. */
void rsb_selector_watch(rs_selector *selector, VALUE object, rs_source *source);
VALUE rsb_watch_source(const rs_watch *watch);

void rsb_init_sync(void);
void rsb_init_queue(void);
void rsb_init_selector(void);
void rsb_init_channel(void);

#endif
