/* select: what selectors use of their sources. Sources of another machine are refused. */
#ifndef RINGSPUN_BINDING_SELECT_H
#define RINGSPUN_BINDING_SELECT_H

#include "sync.h"

/* queue.c */
bool rsb_is_queue(VALUE object);
rs_queue *rsb_queue_of(VALUE self);
/* Something may have been put into it by a push, or by a pop that has made room. */
void rsb_queue_wrote(VALUE self, const rs_queue *queue);

/* sync.c */
bool rsb_is_semaphore(VALUE object);
rs_semaphore *rsb_semaphore_of(VALUE self);

/* results.c */
void rsb_init_results(void);

/* channel.c: checks also what is to be pushed */
bool rsb_is_channel(VALUE object);
rs_channel *rsb_channel_of(VALUE self, VALUE value);

#endif
