#include "codec/names.h"

#include "codec/chars.h"

/* Six times as many as there are names, so that factors without a collision are found in a second. */
#define PLACES 512u

/* The factors are the first without a collision that were found by trying. */
#define PLACE(len, first, middle, before_last, last)                                                                           \
    (((uint32_t)(len) + (first) * 3u + (middle) * 50u + (before_last) * 54u + (last)) & (PLACES - 1))

static const uint8_t places[PLACES] = {
#define AS_PLACE(name, text, first, middle, before_last, last, where)                                                          \
    [PLACE(sizeof(text) - 1, first, middle, before_last, last)] = RHTTP_NAME_##name,
    RHTTP_NAMES(AS_PLACE)
};

enum { ANYWHERE, HEAD_ONLY };

static const struct {
    const char *text;
    uint8_t len;
    uint8_t where;
} names[RHTTP_NAME_COUNT] = {
    [RHTTP_OTHER_NAME] = {"", 0, ANYWHERE},
#define AS_ROW(name, text, first, middle, before_last, last, where) [RHTTP_NAME_##name] = {text, sizeof(text) - 1, where},
    RHTTP_NAMES(AS_ROW)
};

/* A token's capital, and no other byte of a token, becomes its small letter by this: the others that would, none of the names
 * has. */
static uint8_t small(uint8_t byte) { return byte | 0x20; }

static bool is_text_of_eight(const uint8_t *name, const uint8_t *text) {
    return (rhttp_eight(name) | 0x2020202020202020u) == rhttp_eight(text);
}

/* Eight bytes at a time. The last eight may have bytes of the ones before. */
static bool is_text(const uint8_t *name, const uint8_t *text, size_t len) {
    size_t at = 0;
    if (len < sizeof(uint64_t)) {
        while (at < len && small(name[at]) == text[at]) at++;
        return at == len;
    }
    for (; len - at > sizeof(uint64_t); at += sizeof(uint64_t)) {
        if (!is_text_of_eight(name + at, text + at)) return false;
    }
    return is_text_of_eight(name + len - sizeof(uint64_t), text + len - sizeof(uint64_t));
}

rhttp_name rhttp_name_of(const uint8_t *name, size_t len) {
    if (len < 2) return RHTTP_OTHER_NAME;
    uint8_t found = places[PLACE(len, small(name[0]), small(name[len / 2]), small(name[len - 2]), small(name[len - 1]))];
    if (names[found].len != len) return RHTTP_OTHER_NAME;
    return is_text(name, (const uint8_t *)names[found].text, len) ? (rhttp_name)found : RHTTP_OTHER_NAME;
}

const char *rhttp_name_text(rhttp_name name) { return names[name].text; }

bool rhttp_name_is_of_head_only(rhttp_name name) { return names[name].where == HEAD_ONLY; }
