#include "buffer.h"

#include <stdlib.h>
#include <string.h>

static char *take(rs_pool *pool, size_t capacity) {
    pool->lent++;
    if (capacity == RS_BUFFER_PIECE && pool->len > 0) return pool->pieces[--pool->len];
    return rs_alloc(capacity);
}

static void give_back(rs_pool *pool, char *bytes, size_t capacity) {
    RS_ASSERT(pool->lent > 0);
    pool->lent--;
    if (capacity == RS_BUFFER_PIECE && pool->len < RS_POOL_MAX) pool->pieces[pool->len++] = bytes;
    else free(bytes);
}

/* Moves to memory in which so many bytes have room; doubled, so that a buffer that grows is not copied for each piece. */
static void grow(rs_pool *pool, rs_buffer *buffer, size_t wanted) {
    size_t len = rs_buffer_len(buffer), capacity = RS_BUFFER_PIECE;
    while (capacity < wanted) capacity *= 2;
    char *bytes = take(pool, capacity);
    if (len > 0) memcpy(bytes, rs_buffer_at(buffer), len);
    if (buffer->bytes) give_back(pool, buffer->bytes, buffer->capacity);
    *buffer = (rs_buffer){.bytes = bytes, .end = len, .capacity = capacity};
}

char *rs_buffer_room(rs_pool *pool, rs_buffer *buffer, size_t len) {
    size_t held = rs_buffer_len(buffer);
    if (buffer->capacity - buffer->end >= len && buffer->bytes) return buffer->bytes + buffer->end;
    if (buffer->capacity >= held + len && buffer->start >= held) { /* where moving does not cost more than has been taken */
        memcpy(buffer->bytes, rs_buffer_at(buffer), held);
        buffer->start = 0;
        buffer->end = held;
    } else {
        grow(pool, buffer, held + len);
    }
    return buffer->bytes + buffer->end;
}

void rs_buffer_put(rs_pool *pool, rs_buffer *buffer, const void *bytes, size_t len) {
    if (len == 0) return;
    memcpy(rs_buffer_room(pool, buffer, len), bytes, len);
    rs_buffer_filled(buffer, len);
}

void rs_buffer_clear(rs_pool *pool, rs_buffer *buffer) {
    if (buffer->bytes) give_back(pool, buffer->bytes, buffer->capacity);
    *buffer = (rs_buffer){0};
}

void rs_buffer_drop(rs_pool *pool, rs_buffer *buffer, size_t len) {
    RS_ASSERT(len <= rs_buffer_len(buffer));
    buffer->start += len;
    if (buffer->start == buffer->end) rs_buffer_clear(pool, buffer);
}

void rs_pool_free(rs_pool *pool) {
    while (pool->len > 0) free(pool->pieces[--pool->len]);
}
