#include "codec/out.h"

#include <string.h>

#include "codec/chars.h"
#include "codec/check.h"

static const uint8_t *bytes_of(rhttp_text text) { return (const uint8_t *)text.bytes; }

static bool is_all(rhttp_text text, uint8_t kind) {
    return text.len > 0 && rhttp_past(bytes_of(text), 0, text.len, kind) == text.len;
}

bool rhttp_may_send_name(rhttp_text name) { return is_all(name, RHTTP_TOKEN); }

bool rhttp_may_send_value(rhttp_text value) { return rhttp_past_value(bytes_of(value), 0, value.len) == value.len; }

bool rhttp_may_send_method(rhttp_text method) { return is_all(method, RHTTP_TOKEN); }

bool rhttp_may_send_target(rhttp_text target) { return is_all(target, RHTTP_TARGET); }

static uint8_t *put(uint8_t *to, rhttp_text text) {
    if (text.len > 0) memcpy(to, text.bytes, text.len);
    return to + text.len;
}

static const rhttp_text version = RHTTP_TEXT_OF("HTTP/1.1");

size_t rhttp_status_line_size(rhttp_text reason) {
    enum { STATUS_WITH_BLANKS = 5 };
    return version.len + STATUS_WITH_BLANKS + reason.len + RHTTP_END_SIZE;
}

uint8_t *rhttp_put_status_line(uint8_t *to, uint16_t status, rhttp_text reason) {
    RHTTP_CHECK(rhttp_may_send_status(status) && rhttp_may_send_value(reason));
    to = put(to, version);
    *to++ = ' ';
    to = rhttp_put_number(to, status);
    *to++ = ' '; /* also where there is no reason: https://www.rfc-editor.org/rfc/rfc9112#section-4 */
    return rhttp_put_end(put(to, reason));
}

size_t rhttp_request_line_size(rhttp_text method, rhttp_text target) {
    return method.len + 1 + target.len + 1 + version.len + RHTTP_END_SIZE;
}

uint8_t *rhttp_put_request_line(uint8_t *to, rhttp_text method, rhttp_text target) {
    RHTTP_CHECK(rhttp_may_send_method(method) && rhttp_may_send_target(target));
    to = put(to, method);
    *to++ = ' ';
    to = put(to, target);
    *to++ = ' ';
    return rhttp_put_end(put(to, version));
}

uint8_t *rhttp_put_field(uint8_t *to, rhttp_text name, rhttp_text value) {
    RHTTP_CHECK(rhttp_may_send_name(name) && rhttp_may_send_value(value));
    to = put(to, name);
    *to++ = ':';
    *to++ = ' ';
    return rhttp_put_end(put(to, value));
}

size_t rhttp_number_size(uint64_t number) {
    size_t size = 1;
    for (; number >= 10; number /= 10) size++;
    return size;
}

uint8_t *rhttp_put_number(uint8_t *to, uint64_t number) {
    size_t size = rhttp_number_size(number);
    for (size_t i = size; i-- > 0; number /= 10) to[i] = (uint8_t)('0' + number % 10);
    return to + size;
}

uint8_t *rhttp_put_end(uint8_t *to) { return put(to, RHTTP_TEXT("\r\n")); }

static size_t hex_digits(uint64_t number) {
    size_t digits = 1;
    for (; number >= 16; number >>= 4) digits++;
    return digits;
}

size_t rhttp_chunk_head_size(uint64_t len) { return hex_digits(len) + RHTTP_END_SIZE; }

uint8_t *rhttp_put_chunk_head(uint8_t *to, uint64_t len) {
    RHTTP_CHECK(len > 0);
    size_t digits = hex_digits(len);
    for (size_t i = digits; i-- > 0; len >>= 4) to[i] = (uint8_t) "0123456789abcdef"[len & 15];
    return rhttp_put_end(to + digits);
}

uint8_t *rhttp_put_last_chunk(uint8_t *to) { return put(to, RHTTP_TEXT("0\r\n")); }
