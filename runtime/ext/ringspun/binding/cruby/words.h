/* words: finds fields in CRuby's own structs by experiment: by what changes there, and not by a layout read in its source. Plain
 * C. The caller holds the GVL and knows the size of each block. */
#ifndef RINGSPUN_CRUBY_WORDS_H
#define RINGSPUN_CRUBY_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RSB_NOT_FOUND SIZE_MAX

static inline void *rsb_word_at(const void *data, size_t offset) {
    void *word;
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

/* The offset of that word in the block. With `before`, an earlier copy: where the word is new. */
static inline size_t rsb_find_word(const void *data, size_t size, const void *wanted, const void *before) {
    for (size_t offset = 0; offset + sizeof(void *) <= size; offset += sizeof(void *)) {
        if (rsb_word_at(data, offset) == wanted && (!before || rsb_word_at(before, offset) != wanted)) return offset;
    }
    return RSB_NOT_FOUND;
}

typedef struct {
    const void *data;
    size_t size;
} rsb_block;

/* Two things (mutexes), and the owner (fiber) of each. */
typedef struct {
    rsb_block things[2], owners[2];
    rsb_block unowned;          /* a third thing, which nobody owns */
} rsb_owned;

static inline size_t rsb_smaller(rsb_block one, rsb_block other) { return one.size < other.size ? one.size : other.size; }

/* Finds the word by which a thing names its owner, and the same word in the owner: a pointer, or a serial number. It differs
 * between the two owners, is 0 in a thing without an owner, and has the same offset in both pairs. */
static inline bool rsb_find_names(const rsb_owned *pairs, size_t *in_thing, size_t *in_owner) {
    size_t thing_size = rsb_smaller(pairs->unowned, pairs->things[0]);
    if (pairs->things[1].size < thing_size) thing_size = pairs->things[1].size;
    size_t owner_size = rsb_smaller(pairs->owners[0], pairs->owners[1]);
    for (size_t place = 0; place + sizeof(void *) <= thing_size; place += sizeof(void *)) {
        void *one = rsb_word_at(pairs->things[0].data, place), *other = rsb_word_at(pairs->things[1].data, place);
        if (one == other || !one || !other || rsb_word_at(pairs->unowned.data, place)) continue;
        for (size_t name = 0; name + sizeof(void *) <= owner_size; name += sizeof(void *)) {
            if (rsb_word_at(pairs->owners[0].data, name) != one || rsb_word_at(pairs->owners[1].data, name) != other) continue;
            *in_thing = place;
            *in_owner = name;
            return true;
        }
    }
    return false;
}

#endif
