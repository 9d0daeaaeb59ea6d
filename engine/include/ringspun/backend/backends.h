/* backends: all that there are. */
#ifndef RINGSPUN_BACKENDS_H
#define RINGSPUN_BACKENDS_H

typedef struct rs_backend rs_backend;

extern const rs_backend rs_backend_uring;
extern const rs_backend rs_backend_epoll;
extern const rs_backend rs_backend_sim;

/* As users know it: "uring", "epoll" or "sim". */
const char *rs_backend_name(const rs_backend *backend);

#endif
