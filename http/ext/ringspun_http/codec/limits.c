#include "codec/limits.h"

/* A head as others take it by default: a request line of 8 KB as nginx (large_client_header_buffers) and Apache
 * (LimitRequestLine), 100 fields as Apache (LimitRequestFields); 64 KB in all is for cookies and tickets of single sign-on, which
 * come with each request. No registered name of a field is longer than 40 bytes, no registered method longer than 20. */
const rhttp_limits rhttp_usual_limits = {
    .line_max = 8192,
    .head_max = 65536,
    .fields_max = 100,
    .name_max = 256,
    .method_max = 32,
    .trailers_count_max = 32,   /* a checksum, a status, times of a server: few, and none of a client's cookies */
    .trailers_max = 8192,
    .extensions_max = 4096,     /* hardly anybody sends one at all */
    .body_max = INT64_MAX       /* what an off_t has; a server says how much it takes of a request */
};
