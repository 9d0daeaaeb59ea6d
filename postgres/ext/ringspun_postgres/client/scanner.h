/* scanner: what is left of a text. A read of what is not there marks it bad, which is judged once, at the end. */
#ifndef RINGSPUN_PG_SCANNER_H
#define RINGSPUN_PG_SCANNER_H

#include "codec/reader.h"

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
} rpg_scanner;

static inline rpg_scanner rpg_scanner_over(rpg_span text) { return (rpg_scanner){text.bytes, text.bytes + text.len, false}; }

static inline bool rpg_skip(rpg_scanner *s, char byte) {
    if (s->at == s->end || *s->at != (uint8_t)byte) return false;
    s->at++;
    return true;
}

static inline void rpg_must_skip(rpg_scanner *s, char byte) { s->bad |= !rpg_skip(s, byte); }

static inline int64_t rpg_scan_number(rpg_scanner *s, int digits_min, int digits_max) {
    int64_t value = 0;
    int digits = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9' && digits < digits_max; digits++) value = value * 10 + (*s->at++ - '0');
    s->bad |= digits < digits_min;
    return value;
}

#endif
