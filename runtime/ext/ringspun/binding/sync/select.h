/* select: how selectors use their sources. Each kind of source has a function that returns the list for watches (rs_source), and
 * one that tries it and takes what it has. Sources of another machine are refused.
 */
#ifndef RINGSPUN_BINDING_SELECT_H
#define RINGSPUN_BINDING_SELECT_H

#include "sync.h"

/* queue.c */
bool rsb_is_queue(VALUE object);
rs_source *rsb_queue_source(VALUE self, bool for_places);
bool rsb_queue_take(VALUE self, VALUE *item); /* nil if it is closed and empty */
bool rsb_queue_put(VALUE self, VALUE item);

/* sync.c */
bool rsb_is_semaphore(VALUE object);
rs_source *rsb_semaphore_source(VALUE self);
bool rsb_semaphore_take(VALUE self);

/* results.c */
void rsb_init_results(void);

/* channel.c: a channel belongs to no machine, so the watch has an observer in it */
bool rsb_is_channel(VALUE object);
void rsb_channel_observe(VALUE self, rs_watch *watch, bool for_places);
void rsb_channel_check(VALUE self, VALUE value);
bool rsb_channel_take(const rs_watch *watch, VALUE *value); /* nil if it is closed and empty */
bool rsb_channel_put(const rs_watch *watch, VALUE value);

#endif
