/* sync: locks, queues, channels and selectors. The header for the rooms above. */
#ifndef RINGSPUN_SYNC_H
#define RINGSPUN_SYNC_H

#include "binding/core/core.h"

/* --- results.c --- */

/* A kind of source with a result: evaluations, strands. A selector reads the result and leaves it for others. An error is a
 * result too. */
typedef struct rsb_result_kind {
    const struct rsb_result_kind *next;
    bool (*is)(VALUE object);
    rs_source *(*source)(VALUE self); /* NULL: the result is there already */
    bool (*look)(VALUE self, VALUE *result);
} rsb_result_kind;

/* Called once a kind, when the extension is loaded. */
void rsb_register_result(rsb_result_kind *kind);
const rsb_result_kind *rsb_result_kind_of(VALUE object); /* NULL: objects of its class have no result */

/* --- selector.c --- */

/* A selector that the program does not see, for one wait in its list `waiters`. Only the caller uses it until it gives it back;
 * `self` keeps it alive. */
rs_selector *rsb_selector_borrow(rsb_machine *machine, VALUE *self);
void rsb_selector_give_back(rsb_machine *machine, rs_selector *selector);
/* Adds a branch for the object's source, which must not be ready yet. */
void rsb_selector_watch(rs_selector *selector, VALUE object, rs_source *source);
VALUE rsb_watch_source(const rs_watch *watch);

void rsb_init_sync(void);
void rsb_init_queue(void);
void rsb_init_selector(void);
void rsb_init_idle_streams(void);
void rsb_init_select(void);
void rsb_init_channel(void);

#endif
