/* out: what a client sends, written one message after the other into memory that grows. It belongs to whoever has it.
 *
 * Memory that cannot be had, and a message that is longer than its length can say, mark it failed: nothing more is written then,
 * and the caller asks once, when all is written. A message that was begun is undone by rpg_out_cut.
 */
#ifndef RINGSPUN_PG_OUT_H
#define RINGSPUN_PG_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { RPG_OUT_FINE, RPG_OUT_NO_MEMORY, RPG_OUT_TOO_LONG } rpg_out_state;

typedef struct {
    uint8_t *bytes;
    size_t len;
    size_t capacity;
    rpg_out_state state;
} rpg_out;

void rpg_out_free(rpg_out *out);

/* Back to what it was when it had that length, failed or not. */
static inline void rpg_out_cut(rpg_out *out, size_t len) {
    out->len = len;
    out->state = RPG_OUT_FINE;
}

/* Room for so many bytes more, whose contents the caller writes; NULL: it has failed. */
uint8_t *rpg_out_room(rpg_out *out, size_t len);

void rpg_put_bytes(rpg_out *out, const void *bytes, size_t len);
void rpg_put_u8(rpg_out *out, uint8_t value);
void rpg_put_u16(rpg_out *out, uint16_t value);
void rpg_put_u32(rpg_out *out, uint32_t value);

/* With its NUL; the text itself has none. */
void rpg_put_text(rpg_out *out, const void *text, size_t len);

static inline void rpg_store_u16(uint8_t *bytes, uint16_t value) {
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static inline void rpg_store_u32(uint8_t *bytes, uint32_t value) {
    rpg_store_u16(bytes, (uint16_t)(value >> 16));
    rpg_store_u16(bytes + 2, (uint16_t)value);
}

static inline void rpg_store_u64(uint8_t *bytes, uint64_t value) {
    rpg_store_u32(bytes, (uint32_t)(value >> 32));
    rpg_store_u32(bytes + 4, (uint32_t)value);
}

/* A message of that type (0: one that has none, as all those before a connection's first) and its end, which notes its length.
 * What the first answers is for the second. */
size_t rpg_begin(rpg_out *out, uint8_t type);
void rpg_end(rpg_out *out, size_t begun);

#endif
