/* span: a piece of the caller's bytes. It is an offset and no address, for the buffer that has the bytes may move while they
 * come. */
#ifndef RINGSPUN_HTTP_SPAN_H
#define RINGSPUN_HTTP_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t at;
    uint32_t len;
} rhttp_span;

/* What a look at the bytes that there are has found. */
typedef enum {
    RHTTP_WHOLE,
    RHTTP_PART,                 /* more bytes are needed; what was scanned is not scanned again */
    RHTTP_WRONG                 /* whatever comes, this is none, and the connection must not be used any more */
} rhttp_found;

/* The bytes [from, to). */
static inline rhttp_span rhttp_between(size_t from, size_t to) { return (rhttp_span){(uint32_t)from, (uint32_t)(to - from)}; }

static inline uint32_t rhttp_span_end(rhttp_span span) { return span.at + span.len; }

#endif
