/* slot: the name of what lies in a slab, which the engine keeps for itself. Owned by the machine's thread.
 *
 * A slot has an index for ever, and a generation that counts how often it was given out and is never 0: the two are its name, by
 * which a slot that was given out again differs from what it was before.
 */
#ifndef RINGSPUN_SLOT_H
#define RINGSPUN_SLOT_H

#include "ringspun/core/base.h"

typedef struct {
    uint32_t index;
    uint32_t generation;
    uint32_t next_free;
} rs_slot;

/* The first member of what lies in a slab. */
#define RS_SLOT                                                                                                       \
    union {                                                                                                           \
        rs_slot slot;                                                                                                 \
        struct {                                                                                                      \
            uint32_t index;                                                                                           \
            uint32_t generation;                                                                                      \
        };                                                                                                            \
    }

#endif
