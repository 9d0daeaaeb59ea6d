/* chars: what a byte may be in a message. Owns nothing, has no state, and may be called from any thread.
 *
 * Whatever the locale is: a letter is one of ASCII.
 */
#ifndef RINGSPUN_HTTP_CHARS_H
#define RINGSPUN_HTTP_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A byte may have several of these. */
enum {
    RHTTP_TOKEN = 1,            /* tchar: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 */
    RHTTP_VALUE = 2,            /* visible, blank, or not of ASCII: https://www.rfc-editor.org/rfc/rfc9110#section-5.5 */
    RHTTP_TARGET = 4,           /* visible and of ASCII, but for `#`, which begins what a client keeps to itself */
    RHTTP_HOST = 8              /* unreserved: https://www.rfc-editor.org/rfc/rfc3986#section-2.3. A registered name may have more
                                   (`%`, `,`, `;` ...), which no name of DNS has, and by which two readers find two hosts */
};

extern const uint8_t rhttp_chars[256];

static inline bool rhttp_is(uint8_t byte, uint8_t kind) { return rhttp_chars[byte] & kind; }

static inline bool rhttp_is_blank(uint8_t byte) { return byte == ' ' || byte == '\t'; }

static inline bool rhttp_is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

static inline uint8_t rhttp_small(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte; }

/* The value of a hexadecimal digit; -1: it is none. */
static inline int rhttp_hex(uint8_t byte) {
    if (rhttp_is_digit(byte)) return byte - '0';
    uint8_t letter = rhttp_small(byte);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Whether they are the same but for capitals. `small` has none. */
static inline bool rhttp_is_same(const uint8_t *bytes, size_t len, const char *small, size_t small_len) {
    if (len != small_len) return false;
    for (size_t i = 0; i < len; i++) {
        if (rhttp_small(bytes[i]) != (uint8_t)small[i]) return false;
    }
    return true;
}

/* Where the first byte is that is not of this kind. */
static inline size_t rhttp_past(const uint8_t *bytes, size_t at, size_t end, uint8_t kind) {
    while (at < end && rhttp_is(bytes[at], kind)) at++;
    return at;
}

/* Eight bytes as a number whose lowest byte is the first, on any processor; compilers make one load of it. */
static inline uint64_t rhttp_eight(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 | (uint64_t)bytes[3] << 24 |
           (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 | (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

/* How many of eight bytes stand before the first that is below a blank, or is DEL; 8: none is. The lowest bit that is set is right,
 * whatever the subtraction borrows above it: https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord */
static inline size_t rhttp_before_control(const uint8_t *bytes) {
    const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
    uint64_t eight = rhttp_eight(bytes), nought_for_del = eight ^ (ones * 0x7f);
    uint64_t found = (((eight - ones * ' ') & ~eight) | ((nought_for_del - ones) & ~nought_for_del)) & tops;
    return found ? (size_t)__builtin_ctzll(found) / 8 : sizeof(eight);
}

/* The same as rhttp_past for RHTTP_VALUE, by eights, for values are what heads are made of. */
static inline size_t rhttp_past_value(const uint8_t *bytes, size_t at, size_t end) {
    while (end - at >= sizeof(uint64_t)) {
        size_t count = rhttp_before_control(bytes + at);
        at += count;
        if (count == sizeof(uint64_t)) continue;
        if (bytes[at] != '\t') return at;
        at++;
    }
    return rhttp_past(bytes, at, end, RHTTP_VALUE);
}

#endif
