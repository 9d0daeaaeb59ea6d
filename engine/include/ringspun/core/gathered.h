/* gathered: what its owner wants to hand over to the backend at the machine's next look. Owned by the machine's thread. */
#ifndef RINGSPUN_GATHERED_H
#define RINGSPUN_GATHERED_H

#include "ringspun/core/link.h"

struct rs_machine;

/* What has gathered for the backend, in the list of those that are handed over at the machine's next look (rs_gather). */
typedef struct rs_gathered {
    rs_link link;
    void (*flush)(struct rs_machine *machine, struct rs_gathered *gathered); /* takes it out (rs_ungather) */
    bool listed;
} rs_gathered;

#endif
