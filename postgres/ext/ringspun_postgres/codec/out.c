#include "codec/out.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a usual statement with its values. It doubles. */
#define FIRST_CAPACITY 512u

void rpg_out_free(rpg_out *out) {
    free(out->bytes);
    *out = (rpg_out){0};
}

static bool grow(rpg_out *out, size_t len) {
    size_t capacity = out->capacity ? out->capacity : FIRST_CAPACITY, wanted = out->len + len;
    if (wanted < len) return false;
    while (capacity < wanted) capacity = capacity > SIZE_MAX / 2 ? wanted : capacity * 2;
    uint8_t *bytes = realloc(out->bytes, capacity);
    if (!bytes) return false;
    out->bytes = bytes;
    out->capacity = capacity;
    return true;
}

uint8_t *rpg_out_room(rpg_out *out, size_t len) {
    if (out->state != RPG_OUT_FINE) return NULL;
    if (out->capacity - out->len < len && !grow(out, len)) {
        out->state = RPG_OUT_NO_MEMORY;
        return NULL;
    }
    uint8_t *room = out->bytes + out->len;
    out->len += len;
    return room;
}

void rpg_put_bytes(rpg_out *out, const void *bytes, size_t len) {
    uint8_t *room = rpg_out_room(out, len);
    if (room && len > 0) memcpy(room, bytes, len);
}

void rpg_put_u8(rpg_out *out, uint8_t value) { rpg_put_bytes(out, &value, 1); }

void rpg_put_u16(rpg_out *out, uint16_t value) {
    uint8_t *room = rpg_out_room(out, 2);
    if (room) rpg_store_u16(room, value);
}

void rpg_put_u32(rpg_out *out, uint32_t value) {
    uint8_t *room = rpg_out_room(out, 4);
    if (room) rpg_store_u32(room, value);
}

void rpg_put_text(rpg_out *out, const void *text, size_t len) {
    rpg_put_bytes(out, text, len);
    rpg_put_u8(out, 0);
}

size_t rpg_begin(rpg_out *out, uint8_t type) {
    if (type) rpg_put_u8(out, type);
    size_t begun = out->len;
    rpg_put_u32(out, 0);
    return begun;
}

void rpg_end(rpg_out *out, size_t begun) {
    if (out->state != RPG_OUT_FINE) return;
    size_t len = out->len - begun;
    if (len > INT32_MAX) out->state = RPG_OUT_TOO_LONG;
    else rpg_store_u32(out->bytes + begun, (uint32_t)len);
}
