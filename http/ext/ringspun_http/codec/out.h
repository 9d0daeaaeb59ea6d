/* out: what is sent: first lines, fields, and what is around chunks. Owns nothing, has no state, and may be called from any
 * thread.
 *
 * The caller has a buffer with room for all of it: each piece says first how long it is, and then is put there, which answers
 * where the next one goes. What comes from a program is asked about first (rhttp_may_send_...): a byte that is not allowed would
 * end the field, or the head, and what follows would be somebody else's answer.
 */
#ifndef RINGSPUN_HTTP_OUT_H
#define RINGSPUN_HTTP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *bytes;
    size_t len;
} rhttp_text;

#define RHTTP_TEXT_OF(literal) {literal, sizeof(literal) - 1}
#define RHTTP_TEXT(literal) ((rhttp_text)RHTTP_TEXT_OF(literal))

/* A token. */
bool rhttp_may_send_name(rhttp_text name);

/* No control character but a tab: neither CR nor LF, which would begin another field, nor NUL. Also of a reason. */
bool rhttp_may_send_value(rhttp_text value);

bool rhttp_may_send_method(rhttp_text method);

/* Visible characters of ASCII without `#`, and at least one. */
bool rhttp_may_send_target(rhttp_text target);

/* Three digits. */
static inline bool rhttp_may_send_status(uint64_t status) { return status >= 100 && status <= 999; }

/* HTTP/1.1 200 OK. It is the version of the server whatever that of the request was:
 * https://www.rfc-editor.org/rfc/rfc9110#section-6.2 */
size_t rhttp_status_line_size(rhttp_text reason);
uint8_t *rhttp_put_status_line(uint8_t *to, uint16_t status, rhttp_text reason);

/* GET /path HTTP/1.1 */
size_t rhttp_request_line_size(rhttp_text method, rhttp_text target);
uint8_t *rhttp_put_request_line(uint8_t *to, rhttp_text method, rhttp_text target);

/* name: value */
static inline size_t rhttp_field_size(rhttp_text name, rhttp_text value) { return name.len + value.len + 4; }
uint8_t *rhttp_put_field(uint8_t *to, rhttp_text name, rhttp_text value);

/* A number of 64 bits in decimal. */
#define RHTTP_NUMBER_MAX 20u
size_t rhttp_number_size(uint64_t number);
uint8_t *rhttp_put_number(uint8_t *to, uint64_t number);

/* The empty line behind a head, trailers or a chunk's data. */
#define RHTTP_END_SIZE 2u
uint8_t *rhttp_put_end(uint8_t *to);

/* What is before the data of a chunk; behind them comes an end. A chunk of no bytes would be the last one, so
 * none is put for them. */
size_t rhttp_chunk_head_size(uint64_t len);
uint8_t *rhttp_put_chunk_head(uint8_t *to, uint64_t len);

/* The end of a chunked body: this, trailers, and an end. */
#define RHTTP_LAST_CHUNK_SIZE 3u
uint8_t *rhttp_put_last_chunk(uint8_t *to);

#endif
