/* batches: those of a machine. */
#ifndef RINGSPUN_BATCHES_H
#define RINGSPUN_BATCHES_H

#include "core/part.h"
#include "ringspun/procs/batch.h"

typedef struct rs_batches {
    rs_links all;               /* those with a strand, the newest first */
    rs_batch *spare;
} rs_batches;

extern const rs_part rs_batches_part;

#endif
