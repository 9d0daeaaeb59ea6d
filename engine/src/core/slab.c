#include "core/slab.h"

#include <stdlib.h>
#include <string.h>

void rs_slab_init(rs_slab *slab, size_t size, uint32_t limit) {
    RS_CHECK(size >= sizeof(rs_slot));
    *slab = (rs_slab){.size = size, .first_free = RS_NO_INDEX, .limit = limit};
}

void rs_slab_free(rs_slab *slab) {
    RS_CHECK(slab->chunk_count <= slab->chunk_capacity && slab->used <= rs_slab_len(slab));
    for (uint32_t i = 0; i < slab->chunk_count; i++) free(slab->chunks[i]);
    free(slab->chunks);
    *slab = (rs_slab){.first_free = RS_NO_INDEX};
}

static rs_slot *slot_at(const rs_slab *slab, uint32_t index) {
    RS_CHECK(index < rs_slab_len(slab));
    return (rs_slot *)((char *)slab->chunks[index / RS_SLAB_CHUNK] + slab->size * (index % RS_SLAB_CHUNK));
}

static bool add_chunk(rs_slab *slab) {
    RS_CHECK(slab->first_free == RS_NO_INDEX && slab->used == slab->length);
    RS_CHECK(slab->length == slab->chunk_count * RS_SLAB_CHUNK);
    if (slab->chunk_count == slab->chunk_capacity) {
        uint32_t capacity = slab->chunk_capacity ? slab->chunk_capacity * 2 : 4;
        void **chunks = rs_try_realloc(slab->chunks, sizeof(void *) * capacity);
        if (!chunks) return false;
        slab->chunks = chunks;
        slab->chunk_capacity = capacity;
    }
    void *chunk = rs_try_alloc_uncleared(slab->size * RS_SLAB_CHUNK);
    if (!chunk) return false;
    slab->chunks[slab->chunk_count++] = chunk;
    return true;
}

bool rs_slab_reserve(rs_slab *slab) {
    RS_CHECK(slab->used <= rs_slab_len(slab));
    if (slab->used >= slab->limit) return false;
    if (RS_LIKELY(slab->first_free != RS_NO_INDEX)) return true;
    return slab->length < slab->chunk_count * RS_SLAB_CHUNK || add_chunk(slab);
}

void *rs_slab_take(rs_slab *slab) {
    if (!rs_slab_reserve(slab)) return NULL;
    bool first_time = slab->first_free == RS_NO_INDEX;
    uint32_t index = first_time ? slab->length++ : slab->first_free, generation = 1;
    rs_slot *slot = slot_at(slab, index);
    if (RS_LIKELY(!first_time)) {
        RS_CHECK(slot->index == index);
        RS_CHECK(slot->next_free == RS_NO_INDEX || slot->next_free < slab->length);
        slab->first_free = slot->next_free;
        generation = slot->generation + 1;
    }
    slab->used++;
    memset(slot, 0, slab->size);
    slot->index = index;
    slot->generation = generation ? generation : 1;
    return slot;
}

void rs_slab_give(rs_slab *slab, void *slot) {
    rs_slot *mine = slot;
    RS_ASSERT(slab->used > 0 && mine->index < rs_slab_len(slab));
    RS_CHECK(slot_at(slab, mine->index) == mine);
    RS_CHECK(slab->first_free != mine->index);
    mine->next_free = slab->first_free;
    slab->first_free = mine->index;
    slab->used--;
}
