/* backends: all that there are. */
#ifndef RINGSPUN_BACKENDS_H
#define RINGSPUN_BACKENDS_H

#include "ringspun/core/backend.h"

extern const rs_backend rs_backend_uring;
extern const rs_backend rs_backend_epoll;
extern const rs_backend rs_backend_sim;

#endif
