/* line: what the first lines of requests and answers have in common, and how a head goes from its first line to its fields. The
 * struct is the caller's. It may be called from any thread, by one at a time. */
#ifndef RINGSPUN_HTTP_LINE_H
#define RINGSPUN_HTTP_LINE_H

#include "codec/head.h"

void rhttp_head_begin(rhttp_head *head, const rhttp_limits *limits, rhttp_field *list);

/* The steps of a first line answer true when they are done, and `step` is the next one; otherwise `fields.found` says why not. */
bool rhttp_pass(rhttp_head *head, size_t at);
bool rhttp_pause(rhttp_head *head, size_t at);
bool rhttp_refuse(rhttp_head *head, size_t at, rhttp_wrong wrong);

/* `HTTP/1.1`, from `fields.mark` on. Bytes that are no version at all have `otherwise`. */
bool rhttp_take_version(rhttp_head *head, const uint8_t *bytes, size_t end, rhttp_wrong otherwise);

/* One byte, which is that one. */
bool rhttp_take_byte(rhttp_head *head, const uint8_t *bytes, size_t end, uint8_t expected, rhttp_wrong otherwise);

/* Where the first line must have ended. */
size_t rhttp_line_end_max(const rhttp_head *head);

/* Reads the fields, up to the limit of the head. When they are whole, `len` is set. */
rhttp_found rhttp_take_fields(rhttp_head *head, const uint8_t *bytes, size_t len);

#endif
