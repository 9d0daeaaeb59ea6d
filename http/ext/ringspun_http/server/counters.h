/* counters: numbers that the processes of a server share. The class Ringspun::HTTP::Counters owns the memory, which forked children
 * have as well. Totals are added to by all. Gauges are of one process, in a slot that it claims, so that what a killed one has left
 * there is not counted. */
#ifndef RINGSPUN_HTTP_COUNTERS_H
#define RINGSPUN_HTTP_COUNTERS_H

#include "server/http.h"

VALUE rhs_init_counters(void);

#endif
