/* batches: those of a machine. */
#ifndef RINGSPUN_BATCHES_H
#define RINGSPUN_BATCHES_H

#include "core/machine.h"
#include "ringspun/procs/batch.h"

typedef struct rs_batches {
    rs_links all;               /* those with a strand, the newest first */
    rs_batch *spare;
} rs_batches;

extern const rs_part rs_batches_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_batches_at;

static inline rs_batches *rs_batches_in(const rs_machine *machine) {
    return (rs_batches *)((char *)machine + rs_batches_at);
}

#endif
