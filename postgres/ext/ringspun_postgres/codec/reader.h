/* reader: the fields of a message's body, one after the other. Owns nothing.
 *
 * A read beyond the end answers zeroes and marks the reader bad. So a message is read straight through, and judged once at its end
 * (rpg_reader_is_done): bad when it was too short, and when bytes are left.
 */
#ifndef RINGSPUN_PG_READER_H
#define RINGSPUN_PG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
} rpg_reader;

typedef struct {
    const uint8_t *bytes;
    size_t len;
} rpg_span;

static inline rpg_reader rpg_reader_over(const uint8_t *bytes, size_t len) { return (rpg_reader){bytes, bytes + len, false}; }

static inline size_t rpg_left(const rpg_reader *reader) { return (size_t)(reader->end - reader->at); }

/* NULL when there are fewer. */
static inline const uint8_t *rpg_read_bytes(rpg_reader *reader, size_t len) {
    if (reader->bad || rpg_left(reader) < len) {
        reader->bad = true;
        return NULL;
    }
    const uint8_t *bytes = reader->at;
    reader->at += len;
    return bytes;
}

static inline uint16_t rpg_load_u16(const uint8_t *bytes) { return (uint16_t)((bytes[0] << 8) | bytes[1]); }

static inline uint32_t rpg_load_u32(const uint8_t *bytes) {
    return ((uint32_t)bytes[0] << 24) | ((uint32_t)bytes[1] << 16) | ((uint32_t)bytes[2] << 8) | bytes[3];
}

static inline uint64_t rpg_load_u64(const uint8_t *bytes) {
    return ((uint64_t)rpg_load_u32(bytes) << 32) | rpg_load_u32(bytes + 4);
}

static inline uint8_t rpg_read_u8(rpg_reader *reader) {
    const uint8_t *bytes = rpg_read_bytes(reader, 1);
    return bytes ? bytes[0] : 0;
}

static inline uint16_t rpg_read_u16(rpg_reader *reader) {
    const uint8_t *bytes = rpg_read_bytes(reader, 2);
    return bytes ? rpg_load_u16(bytes) : 0;
}

static inline uint32_t rpg_read_u32(rpg_reader *reader) {
    const uint8_t *bytes = rpg_read_bytes(reader, 4);
    return bytes ? rpg_load_u32(bytes) : 0;
}

static inline int32_t rpg_read_i32(rpg_reader *reader) { return (int32_t)rpg_read_u32(reader); }

/* A String of C, without its NUL. */
static inline rpg_span rpg_read_text(rpg_reader *reader) {
    const uint8_t *nul = reader->bad || rpg_left(reader) == 0 ? NULL : memchr(reader->at, 0, rpg_left(reader));
    if (!nul) {
        reader->bad = true;
        return (rpg_span){(const uint8_t *)"", 0};
    }
    rpg_span text = {reader->at, (size_t)(nul - reader->at)};
    reader->at = nul + 1;
    return text;
}

static inline bool rpg_reader_is_done(const rpg_reader *reader) { return !reader->bad && reader->at == reader->end; }

#endif
