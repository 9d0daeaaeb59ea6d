/* unshared: descriptors that a forked child must not keep. If the child read from its copy, those bytes would be lost to the
 * parent; and no strand of the child would ever close it. The child closes them right after fork(2), those of other threads too,
 * because it may never use its machine. */
#ifndef RINGSPUN_BINDING_UNSHARED_H
#define RINGSPUN_BINDING_UNSHARED_H

#include "engine/core/link.h"

typedef struct rsb_unshared {
    rs_link link;               /* in the process's list of them */
    int fd;                     /* -1: closed, or given away */
} rsb_unshared;

/* `one` must stay at its address until rsb_unshared_leave. */
void rsb_unshare(rsb_unshared *one, int fd);

/* Returns the descriptor, which the caller closes. -1: this was called before, or the child has closed it. */
int rsb_unshared_leave(rsb_unshared *one);

/* Around fork(2); the second in the parent, the third in the child. */
void rsb_unshared_fork_begins(void);
void rsb_unshared_fork_ends(void);
void rsb_unshared_forked(void);

#endif
