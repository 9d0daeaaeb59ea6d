/* chunks: a chunked body, taken apart where it lies in the caller's buffer (https://www.rfc-editor.org/rfc/rfc9112#section-7.1).
 * The struct is the caller's, and so is the memory for the trailers. It may be called from any thread, by one at a time.
 *
 * Each call is given the bytes that follow those which were taken before, and takes as many as it can: the data are named where
 * they lie. Trailers are taken only as a whole, so the caller keeps their bytes until all of them are there; they are scanned
 * once all the same. They are fields of their own, and never those of the head
 * (https://www.rfc-editor.org/rfc/rfc9110#section-6.5.1).
 */
#ifndef RINGSPUN_HTTP_CHUNKS_H
#define RINGSPUN_HTTP_CHUNKS_H

#include "codec/fields.h"
#include "codec/limits.h"

typedef enum {
    RHTTP_CHUNK_DATA,           /* `data` has some; there may be more in the bytes that are left */
    RHTTP_CHUNK_PART,           /* more bytes are needed */
    RHTTP_CHUNK_END,            /* of the body; `trailers` has what came behind it */
    RHTTP_CHUNK_WRONG           /* `trailers.wrong` says what */
} rhttp_chunk;

typedef struct {
    const rhttp_limits *limits; /* of the caller, for as long as the body is read */
    rhttp_fields trailers;      /* `list` and `count`; their spans are of the bytes of the call that has found the end */
    uint64_t left;              /* bytes of this chunk that have not come; while its size is read, that */
    uint64_t total;             /* bytes of all chunks that have begun */
    uint32_t extensions_len;
    uint8_t step;
    uint8_t digits;             /* of the size that is read */
} rhttp_chunks;

typedef struct {
    size_t taken;               /* bytes of this call that need not be given again */
    const uint8_t *data;        /* in the bytes of this call */
    size_t len;
} rhttp_piece;

/* `trailers` has room for limits->trailers_count_max. */
void rhttp_chunks_begin(rhttp_chunks *chunks, const rhttp_limits *limits, rhttp_field *trailers);

rhttp_chunk rhttp_chunks_take(rhttp_chunks *chunks, const uint8_t *bytes, size_t len, rhttp_piece *piece);

#endif
