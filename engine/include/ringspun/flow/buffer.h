/* buffer: bytes that are on their way through a stream, and the pool that the memory for them comes from. Owned by the machine's
 * thread.
 *
 * Bytes are put in at the end and taken at the front. An empty buffer holds no memory: it has gone back to the pool, so
 * that idle connections hold none.
 */
#ifndef RINGSPUN_BUFFER_H
#define RINGSPUN_BUFFER_H

#include "ringspun/core/machine.h"

/* As much as fits a usual read, and what the pool's pieces hold. Larger ones come from malloc and go back there. */
#define RS_BUFFER_PIECE 16384u
/* A buffer of this size or more grows by a quarter. Doubled, one of 250 MB would ask for 500, and hold what nobody uses. */
#define RS_BUFFER_LARGE 1048576u

typedef struct rs_pool rs_pool;

rs_pool *rs_pool_of(const struct rs_machine *machine);

typedef struct {
    char *bytes;                /* NULL: it is empty */
    size_t start, end;
    size_t capacity;
} rs_buffer;

static inline size_t rs_buffer_len(const rs_buffer *buffer) {
    RS_CHECK(buffer->start <= buffer->end);
    return buffer->end - buffer->start;
}

static inline char *rs_buffer_at(const rs_buffer *buffer) { return buffer->bytes + buffer->start; }

/* Makes room for that many bytes at the end, and answers where. What was there may move. NULL: there is no memory for so many,
 * and nothing has changed. */
char *rs_buffer_room(rs_pool *pool, rs_buffer *buffer, size_t len);

/* So many bytes have come to that place. */
static inline void rs_buffer_filled(rs_buffer *buffer, size_t len) {
    RS_CHECK(len <= buffer->capacity - buffer->end);
    buffer->end += len;
}

/* False: there is no memory for them. */
bool rs_buffer_put(rs_pool *pool, rs_buffer *buffer, const void *bytes, size_t len);

/* So many bytes are taken. */
void rs_buffer_drop(rs_pool *pool, rs_buffer *buffer, size_t len);
void rs_buffer_clear(rs_pool *pool, rs_buffer *buffer);

/* Its memory is the caller's, who frees it; NULL: it was empty. It is empty now. */
char *rs_buffer_release(rs_pool *pool, rs_buffer *buffer);

/* Gives the memory behind its end back to malloc, unless that is little. For a buffer that is released next. */
void rs_buffer_trim(rs_buffer *buffer);

/* Its first bytes become a buffer of their own, and stay where they are; the others move. False: there is no memory for those, and
 * nothing has changed. */
bool rs_buffer_split(rs_pool *pool, rs_buffer *buffer, size_t len, rs_buffer *front);

#endif
