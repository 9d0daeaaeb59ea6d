/* stock_mutex: whether a fiber still holds a stock Mutex or Monitor. Ruby has no call that tells; see stock_mutex.c. Called by the
 * thread that runs the fiber, with the GVL. */
#ifndef RINGSPUN_CRUBY_STOCK_MUTEX_H
#define RINGSPUN_CRUBY_STOCK_MUTEX_H

#include "binding/binding.h"

/* True as well where that cannot be found out. */
bool rsb_holds_stock_mutex(VALUE thread, VALUE fiber);
/* A fiber that holds one and ends: it stays with this thread until it holds none any more. May raise. */
void rsb_keep_with_stock_mutex(VALUE fiber);

void rsb_init_stock_mutex(void);

#endif
