/* select: what selectors and their sources know of each other. A source says where watches of it belong, and answers whether it
 * has something: then it has been taken. Sources of another machine are refused.
 */
#ifndef RINGSPUN_BINDING_SELECT_H
#define RINGSPUN_BINDING_SELECT_H

#include "sync.h"

/* What a selector would push, through that watch. */
VALUE rsb_watch_item(const rs_watch *watch);

/* queue.c */
bool rsb_is_queue(VALUE object);
rs_source *rsb_queue_source(VALUE self, bool for_places);
bool rsb_queue_take(VALUE self, VALUE *item); /* nil where it is closed and empty */
bool rsb_queue_put(VALUE self, VALUE item);

/* sync.c */
bool rsb_is_semaphore(VALUE object);
rs_source *rsb_semaphore_source(VALUE self);
bool rsb_semaphore_take(VALUE self);

/* results.c: evaluations, strands. The result stays where it is for others; an error is one like any other. */
typedef struct rsb_result_kind {
    const struct rsb_result_kind *next;
    bool (*is)(VALUE object);
    rs_source *(*source)(VALUE self); /* NULL: the result is there */
    bool (*look)(VALUE self, VALUE *result);
} rsb_result_kind;

/* Once, when the extension is loaded. */
void rsb_register_result(rsb_result_kind *kind);
const rsb_result_kind *rsb_result_kind_of(VALUE object); /* NULL: it has none */
void rsb_init_results(void);

/* channel.c: they may be any machine's, so the watch has an observer there */
bool rsb_is_channel(VALUE object);
void rsb_channel_observe(VALUE self, rs_watch *watch, bool for_places);
void rsb_channel_check(VALUE self, VALUE value);
bool rsb_channel_take(const rs_watch *watch, VALUE *value); /* nil where it is closed and empty */
bool rsb_channel_put(const rs_watch *watch, VALUE value);

#endif
