#include "ringspun/flow/buffer.h"
#include "core/machine.h"
#include "flow/pool.h"

#include <stdlib.h>
#include <string.h>

rs_pool *rs_pool_of(const rs_machine *machine) { return rs_pool_in(machine); }

static char *take(rs_pool *pool, size_t capacity) {
    RS_CHECK(capacity >= RS_BUFFER_PIECE && pool->len <= RS_POOL_MAX);
    bool pooled = capacity == RS_BUFFER_PIECE && pool->len > 0;
    char *bytes = pooled ? pool->pieces[--pool->len] : rs_try_realloc(NULL, capacity);
    if (bytes) pool->lent++;
    return bytes;
}

static void give_back(rs_pool *pool, char *bytes, size_t capacity) {
    RS_CHECK(pool->lent > 0 && bytes != NULL);
    pool->lent--;
    if (capacity == RS_BUFFER_PIECE && pool->len < RS_POOL_MAX) pool->pieces[pool->len++] = bytes;
    else free(bytes);
}

/* Multiplied, so that a buffer that grows is not copied for each piece. */
static size_t capacity_for(size_t wanted) {
    RS_CHECK(wanted > 0);
    size_t capacity = RS_BUFFER_PIECE;
    while (capacity < wanted && capacity < RS_BUFFER_LARGE) capacity *= 2;
    while (capacity < wanted && capacity < SIZE_MAX / 2) capacity += capacity / 4;
    return capacity < wanted ? wanted : capacity;
}

static void move_to_front(rs_buffer *buffer) {
    size_t len = rs_buffer_len(buffer);
    RS_ASSERT(buffer->start <= buffer->end && buffer->end <= buffer->capacity);
    memmove(buffer->bytes, rs_buffer_at(buffer), len);
    buffer->start = 0;
    buffer->end = len;
}

/* Where it lies, if it can: realloc(3) has the kernel move a large one by its pages (mremap(2)), so that it is never there twice. */
static bool extend(rs_buffer *buffer, size_t capacity) {
    RS_CHECK(capacity > buffer->capacity);
    if (buffer->start > 0) move_to_front(buffer);
    char *bytes = rs_try_realloc(buffer->bytes, capacity);
    if (!bytes) return false;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

/* To memory in which so many bytes have room. False: there is none. */
static bool grow(rs_pool *pool, rs_buffer *buffer, size_t wanted) {
    RS_CHECK(wanted > rs_buffer_len(buffer));
    size_t len = rs_buffer_len(buffer), capacity = capacity_for(wanted);
    if (buffer->capacity > RS_BUFFER_PIECE) return extend(buffer, capacity);
    char *bytes = take(pool, capacity);
    if (!bytes) return false;
    if (len > 0) memcpy(bytes, rs_buffer_at(buffer), len);
    if (buffer->bytes) give_back(pool, buffer->bytes, buffer->capacity);
    *buffer = (rs_buffer){.bytes = bytes, .end = len, .capacity = capacity};
    return true;
}

/* Moving costs little beside what has been taken since the last move. Without that limit a reader that looks at many bytes, and
 * takes one when one comes, would move all of them for each. */
static bool is_cheap_to_move(const rs_buffer *buffer) { return buffer->start >= rs_buffer_len(buffer) / 8; }

char *rs_buffer_room(rs_pool *pool, rs_buffer *buffer, size_t len) {
    size_t held = rs_buffer_len(buffer);
    RS_CHECK(buffer->start <= buffer->end && buffer->end <= buffer->capacity && (buffer->bytes || buffer->capacity == 0));
    if (buffer->capacity - buffer->end >= len && buffer->bytes) return buffer->bytes + buffer->end;
    if (len > SIZE_MAX - held) return NULL;
    bool fits = buffer->capacity >= held + len;
    bool grows = !(fits && is_cheap_to_move(buffer)) && grow(pool, buffer, fits ? buffer->capacity + 1 : held + len);
    if (!grows && !fits) return NULL;
    if (!grows) move_to_front(buffer);
    RS_CHECK(buffer->capacity - buffer->end >= len && rs_buffer_len(buffer) == held);
    return buffer->bytes + buffer->end;
}

bool rs_buffer_put(rs_pool *pool, rs_buffer *buffer, const void *bytes, size_t len) {
    if (len == 0) return true;
    RS_CHECK(bytes != NULL);
    char *room = rs_buffer_room(pool, buffer, len);
    if (!room) return false;
    memcpy(room, bytes, len);
    rs_buffer_filled(buffer, len);
    return true;
}

void rs_buffer_clear(rs_pool *pool, rs_buffer *buffer) {
    RS_CHECK(buffer->bytes || (buffer->end == 0 && buffer->capacity == 0));
    if (buffer->bytes) give_back(pool, buffer->bytes, buffer->capacity);
    *buffer = (rs_buffer){0};
}

void rs_buffer_trim(rs_buffer *buffer) {
    RS_CHECK(buffer->start <= buffer->end && buffer->end <= buffer->capacity);
    if (buffer->end == 0 || buffer->capacity - buffer->end < buffer->capacity / 8) return;
    char *bytes = rs_try_realloc(buffer->bytes, buffer->end);
    if (!bytes) return;
    buffer->bytes = bytes;
    buffer->capacity = buffer->end;
}

char *rs_buffer_release(rs_pool *pool, rs_buffer *buffer) {
    char *bytes = buffer->bytes;
    RS_CHECK(!bytes || pool->lent > 0);
    if (bytes) pool->lent--;
    *buffer = (rs_buffer){0};
    return bytes;
}

bool rs_buffer_split(rs_pool *pool, rs_buffer *buffer, size_t len, rs_buffer *front) {
    RS_ASSERT(len <= rs_buffer_len(buffer));
    rs_buffer rest = {0};
    if (!rs_buffer_put(pool, &rest, rs_buffer_at(buffer) + len, rs_buffer_len(buffer) - len)) return false;
    RS_CHECK(front != buffer);
    *front = *buffer;
    front->end = front->start + len;
    *buffer = rest;
    return true;
}

void rs_buffer_drop(rs_pool *pool, rs_buffer *buffer, size_t len) {
    RS_ASSERT(len <= rs_buffer_len(buffer));
    buffer->start += len;
    if (buffer->start == buffer->end) rs_buffer_clear(pool, buffer);
}

void rs_pool_free(rs_pool *pool) {
    RS_CHECK(pool->len <= RS_POOL_MAX);
    while (pool->len > 0) free(pool->pieces[--pool->len]);
}

static void close_pool(rs_machine *machine) { rs_pool_free(rs_pool_in(machine)); }

const rs_part rs_pool_part = {.close = close_pool};
