/* stock_mutex: whether a fiber holds a Mutex or Monitor of Ruby's. Ruby has no method for that; stock_mutex.c says how it is
 * found. Called on the thread that runs the fiber, with the GVL. */
#ifndef RINGSPUN_CRUBY_STOCK_MUTEX_H
#define RINGSPUN_CRUBY_STOCK_MUTEX_H

#include "binding/binding.h"

/* True also if that cannot be found out. */
bool rsb_holds_stock_mutex(VALUE thread, VALUE fiber);
/* For a fiber that ends while it holds one: keeps it from being collected until it holds none, or this thread ends. May raise. */
void rsb_keep_with_stock_mutex(VALUE fiber);

void rsb_init_stock_mutex(void);

#endif
