/* slab: slots of one kind, which never move, so that timers and lists may lie in them. Owned by the machine's thread.
 *
 * What lies in a slot stays there when it is given back, for its owner's states say that it is free.
 */
#ifndef RINGSPUN_SLAB_H
#define RINGSPUN_SLAB_H

#include "ringspun/core/slot.h"

/* Slots that are allocated together. A power of two, for every look at a slot divides by it. */
#define RS_SLAB_CHUNK 256u

typedef struct {
    void **chunks;
    size_t size;                /* of a slot */
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    uint32_t length;            /* slots that were ever given out; the memory behind them is not touched before */
    uint32_t first_free;        /* of these; RS_NO_INDEX: there is none */
    uint32_t used;
    uint32_t limit;             /* so many at the same time */
} rs_slab;

void rs_slab_init(rs_slab *slab, size_t size, uint32_t limit);
void rs_slab_free(rs_slab *slab);

/* Whether rs_slab_take has one to give: false at the limit, and where there is no memory for more. */
bool rs_slab_reserve(rs_slab *slab);

/* A slot with its name and zeroes, or NULL (rs_slab_reserve). */
void *rs_slab_take(rs_slab *slab);
void rs_slab_give(rs_slab *slab, void *slot);

/* How many slots were ever given out, those that are free again as well. */
static inline uint32_t rs_slab_len(const rs_slab *slab) { return slab->length; }

static inline size_t rs_slab_bytes(const rs_slab *slab) { return slab->chunk_count * RS_SLAB_CHUNK * slab->size; }

/* The slot at an index below that; `type` is what lies in it. */
#define RS_SLAB_AT(slab, type, index) (&((type *)(slab)->chunks[(index) / RS_SLAB_CHUNK])[(index) % RS_SLAB_CHUNK])

#endif
