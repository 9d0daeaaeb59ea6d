/* unshared: descriptors that a forked child must not have: who uses its copy takes something away from the parent, whose strand
 * knows nothing of it, and in the child there is nobody who would close it. The child closes all of them, those of other threads
 * as well, at once: it may never use its machine. */
#ifndef RINGSPUN_BINDING_UNSHARED_H
#define RINGSPUN_BINDING_UNSHARED_H

#include "engine/core/link.h"

typedef struct rsb_unshared {
    rs_link link;               /* in the process's list of them */
    int fd;                     /* -1: closed, or given away */
} rsb_unshared;

/* Stays where it is until it is left. */
void rsb_unshare(rsb_unshared *one, int fd);

/* The descriptor is the caller's to close from now on. -1: it was left already, or this is a child's. */
int rsb_unshared_leave(rsb_unshared *one);

/* Around fork(2); the second in the parent, the third in the child. */
void rsb_unshared_fork_begins(void);
void rsb_unshared_fork_ends(void);
void rsb_unshared_forked(void);

#endif
