/* limits: how much of a peer is read before it is refused. The caller has them, for as long as anything is read by them. */
#ifndef RINGSPUN_HTTP_LIMITS_H
#define RINGSPUN_HTTP_LIMITS_H

#include <stdint.h>

typedef struct {
    uint32_t line_max;          /* bytes of the first line, without its end */
    uint32_t head_max;          /* bytes of the head, with its empty line; below 2 ** 31 */
    uint16_t fields_max;        /* fields of the head, which is how many the caller has room for */
    uint16_t name_max;          /* bytes of a field's name */
    uint16_t method_max;        /* bytes of a method */
    uint16_t trailers_count_max; /* fields behind a chunked body, which is how many the caller has room for */
    uint32_t trailers_max;      /* bytes of those, with their empty line */
    uint32_t extensions_max;    /* bytes of the extensions of all chunks of a body: CVE-2023-39326 */
    uint64_t body_max;          /* bytes of a body, decoded */
} rhttp_limits;

extern const rhttp_limits rhttp_usual_limits;

#endif
