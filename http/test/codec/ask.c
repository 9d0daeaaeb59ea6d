/* The codec as a program, for tests in Ruby: it reads a kind, four bytes with a length, and a message, and answers with a line
 * that says what came of it, for each. The message is taken whole and then cut at each of its bytes; where that is not the same,
 * the line says so.
 *
 *     q  a request        a  an answer to a GET        h  an answer to a HEAD        b  a chunked body
 */
#include "pieces.h"

static text see(int kind, const uint8_t *bytes, size_t len, pieces pieces) {
    switch (kind) {
    case 'q': return see_request(bytes, len, &rhttp_usual_limits, pieces);
    case 'a': return see_response(bytes, len, &rhttp_usual_limits, RHTTP_METHOD_GET, pieces);
    case 'h': return see_response(bytes, len, &rhttp_usual_limits, RHTTP_METHOD_HEAD, pieces);
    case 'b': return see_chunks(bytes, len, &rhttp_usual_limits, pieces);
    default: abort();
    }
}

static bool is_same(const text *one, int kind, const uint8_t *bytes, size_t len, pieces pieces) {
    text other = see(kind, bytes, len, pieces);
    bool same = strcmp(one->chars, other.chars) == 0;
    if (!same) printf("cut at %" PRIu64 " it is not `%s` but `%s`\n", pieces.word, one->chars, other.chars);
    free(other.chars);
    return same;
}

/* Long ones are cut at fewer places, for each cut reads all of it. */
static void answer(int kind, const uint8_t *bytes, size_t len) {
    size_t step = len > 1000 ? 97 : 1;
    text whole = see(kind, bytes, len, (pieces){cut_once, 0});
    bool same = step > 1 || is_same(&whole, kind, bytes, len, (pieces){cut_everywhere, 0});
    for (size_t at = 1; same && at < len; at += step) same = is_same(&whole, kind, bytes, len, (pieces){cut_once, at});
    if (same) puts(whole.chars);
    fflush(stdout);
    free(whole.chars);
}

int main(void) {
    uint8_t lead[5];
    while (fread(lead, 1, sizeof(lead), stdin) == sizeof(lead)) {
        size_t len = (size_t)lead[1] << 24 | (size_t)lead[2] << 16 | (size_t)lead[3] << 8 | lead[4];
        uint8_t *bytes = malloc(len + 1);
        if (!bytes || fread(bytes, 1, len, stdin) != len) abort();
        answer(lead[0], bytes, len);
        free(bytes);
    }
    return 0;
}
