/* unshared: descriptors that a forked child must not keep. If the child read from its copy, those bytes would be lost to the
 * parent; and no strand of the child would ever close it. The child closes them right after fork(2), those of other threads too,
 * because it may never use its machine. */
#ifndef RINGSPUN_BINDING_UNSHARED_H
#define RINGSPUN_BINDING_UNSHARED_H

#include "binding/binding.h"

typedef struct rsb_unshared {
    rs_link link;               /* in the process's list of them */
    int fd;                     /* -1: closed, or given away */
} rsb_unshared;

/* `one` must stay at its address until rsb_unshared_leave. */
void rsb_unshare(rsb_unshared *one, int fd);

/* Returns the descriptor, which the caller closes. -1: this was called before, or the child has closed it. */
int rsb_unshared_leave(rsb_unshared *one);

void rsb_init_unshared(void);

#endif
