/* Bytes of hostile peers, for all that the codec does with them, under a sanitizer with all checks, and as users have it: what a
 * client or a server may send on a connection, one message behind the other, with some bytes spoiled. Each is taken three times,
 * whole and in other pieces, and all must see the same. What the codec writes it must read as it was meant.
 *
 *     fuzz --seconds 20          as many connections as that
 *     fuzz --seed 7              one of them again
 */
#include <time.h>

#include "codec/chars.h"
#include "codec/out.h"
#include "codec/plan.h"
#include "codec/reasons.h"
#include "pieces.h"

typedef struct { uint64_t state; } chance;

/* splitmix64: https://prng.di.unimi.it/splitmix64.c */
static uint64_t draw(chance *c) {
    uint64_t z = (c->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t below(chance *c, uint32_t limit) { return (uint32_t)(draw(c) % limit); }

#define ONE_OF(c, list) ((list)[below(c, sizeof(list) / sizeof(*(list)))])

#define DEMAND(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x), abort()))

/* --- a peer --- */

/* Some are right; most are nearly. */
static const char *const methods[] = {"HEAD", "OPTIONS", "CONNECT", "PUT", "get", "G@T", "M-SEARCH",
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", ""};
static const char *const targets[] = {"/a?b=c", "*", "h:80", "http://h/", "https://H?x", "http://u@h/", "/#", "/a b", "//", "/\x7f",
                                      "/\xff", "http:///", "ftp://h/", "/%00"};
static const char *const versions[] = {"HTTP/1.0", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.10", ""};
static const char *const names[] = {"Host", "Content-Length", "content-length", "Transfer-Encoding", "Connection", "Upgrade",
                                    "Expect", "Accept", "Cookie", "X-Other", "x_other", "Content_Length", "Transfer-Encoding ",
                                    " Host", "X\t", "", "X(", "Trailer", "Content-Length\v"};
static const char *const values[] = {"h", "h", "h:80", "5", "5", "0", "chunked", "chunked", "Chunked", "gzip, chunked",
                                     "chunked, chunked", "identity", "5, 5", "+5", "-1", "0x5", " 5 ", "\t5", "chunked ",
                                     "close", "keep-alive", "upgrade", "websocket", "100-continue", "", "a\vb", "\xff\xfe",
                                     "18446744073709551616", "9223372036854775807", "a, b,, close", "xchunked", "h, h",
                                     "[::1]:80", "a b", "\x01"};
static const char *const ends[] = {"\n", "\r", "\r\n ", "\r\r\n", "\n\r\n"};
static const char *const statuses[] = {"204 No", "304 x", "100 Continue", "101 x", "404", "500 \xff", "99 x", "2000 x"};

/* `right` mostly. */
#define MOSTLY(c, right, list) (below(c, 8) ? (right) : ONE_OF(c, list))

static void put_end(text *to, chance *c) { say(to, "%s", below(c, 40) ? "\r\n" : ONE_OF(c, ends)); }

static void put_fields(text *to, chance *c) {
    if (below(c, 12)) say(to, "Host: h\r\n");
    if (below(c, 2)) say(to, below(c, 2) ? "Content-Length: 5\r\n" : "Transfer-Encoding: chunked\r\n");
    for (uint32_t count = below(c, 4); count > 0; count--) {
        say(to, "%s:%s%s", MOSTLY(c, "X", names), below(c, 4) ? " " : "", ONE_OF(c, values));
        put_end(to, c);
    }
    put_end(to, c);
}

static void put_chunks(text *to, chance *c) {
    static const char *const chunks[] = {"1\r\n\n\r\n", "0a;x=\"y\"\r\n0123456789\r\n", "5 \r\nabcde\r\n", "5;\r\nabcde\r\n",
                                         "ffffffffffffffff\r\n", "10000000000000000\r\n", "4\r\nabcde\r\n"};
    static const char *const trailers[] = {"X: y\r\n\r\n", "Host: h\r\n\r\n", "a:\r\nb:\r\n\r\n", "\n", "x y\r\n\r\n"};
    for (uint32_t count = below(c, 4); count > 0; count--) say(to, "%s", MOSTLY(c, "5\r\nabcde\r\n", chunks));
    say(to, "0\r\n%s", MOSTLY(c, "\r\n", trailers));
}

static void put_message(text *to, chance *c, bool is_request) {
    const char *version = MOSTLY(c, "HTTP/1.1", versions);
    if (is_request) say(to, "%s %s %s", MOSTLY(c, "POST", methods), MOSTLY(c, "/", targets), version);
    else say(to, "%s %s", version, MOSTLY(c, "200 OK", statuses));
    put_end(to, c);
    put_fields(to, c);
    if (below(c, 2)) put_chunks(to, c);
    else if (below(c, 2)) say(to, "abcde");
}

static void spoil(text *bytes, chance *c) {
    static const uint8_t bad[] = "\0\r\n\t :,;\x7f\x80\xff";
    for (uint32_t times = below(c, 4) ? 0 : below(c, 3); times > 0 && bytes->len > 0; times--) {
        bytes->chars[below(c, (uint32_t)bytes->len)] = (char)(below(c, 2) ? draw(c) : bad[below(c, sizeof(bad) - 1)]);
    }
    if (below(c, 4) == 0) bytes->len = below(c, (uint32_t)bytes->len + 1);
}

/* --- the side that reads --- */

static size_t cut_by_chance(pieces *pieces, size_t at, size_t len) {
    chance c = {pieces->word};
    size_t step = 1 + below(&c, 40);
    pieces->word = c.state;
    return len - at < step ? len : at + step;
}

static size_t not_cut(pieces *pieces, size_t at, size_t len) {
    (void)pieces, (void)at;
    return len;
}

/* What holds of every head that is taken. */
static void check_head(const uint8_t *bytes, const rhttp_head *head) {
    for (uint16_t i = 0; i < head->fields.count; i++) {
        const rhttp_field *field = &head->fields.list[i];
        DEMAND(field->name.len > 0 && rhttp_span_end(field->name) < field->value.at + 1 &&
               rhttp_span_end(field->value) < head->len);
        DEMAND(rhttp_past(bytes, field->name.at, head->len, RHTTP_TOKEN) == rhttp_span_end(field->name));
        DEMAND(rhttp_past(bytes, field->value.at, head->len, RHTTP_VALUE) >= rhttp_span_end(field->value));
        DEMAND(field->value.len == 0 || !rhttp_is_blank(bytes[field->value.at]));
    }
    DEMAND(memcmp(bytes + head->len - 4, "\r\n\r\n", 4) == 0);
    DEMAND(head->body != RHTTP_BODY_CHUNKED || !rhttp_head_next(head, RHTTP_NAME_CONTENT_LENGTH, NULL));
}

typedef enum { IN_HEAD, IN_LENGTH, IN_CHUNKS, OVER } phase;

/* A connection, from the side that reads. `begin` is where what has not been taken begins. */
typedef struct {
    bool reads_requests;
    phase phase;
    size_t begin;
    uint64_t left;
    rhttp_request request;
    rhttp_response response;
    rhttp_chunks chunks;
    rhttp_field fields[100];
    rhttp_field trailers[32];
    text seen;
    text data;
} reader;

static void begin_head(reader *r) {
    r->phase = IN_HEAD;
    rhttp_request_begin(&r->request, &rhttp_usual_limits, r->fields);
    rhttp_response_begin(&r->response, &rhttp_usual_limits, r->fields, RHTTP_METHOD_GET);
}

static void begin_body(reader *r, const rhttp_head *head) {
    r->phase = head->body == RHTTP_BODY_CHUNKED ? IN_CHUNKS : head->body == RHTTP_BODY_LENGTH ? IN_LENGTH : OVER;
    r->left = head->body_len;
    rhttp_chunks_begin(&r->chunks, &rhttp_usual_limits, r->trailers);
    if (head->body == RHTTP_BODY_NONE) begin_head(r);
}

/* Heads that were taken, so that nobody believes in a run in which all were refused. */
static uint64_t heads_taken;

static bool read_head(reader *r, const uint8_t *bytes, size_t len) {
    rhttp_head *head = r->reads_requests ? &r->request.head : &r->response.head;
    rhttp_found found =
        r->reads_requests ? rhttp_request_take(&r->request, bytes, len) : rhttp_response_take(&r->response, bytes, len);
    if (found == RHTTP_PART) return false;
    if (found == RHTTP_WRONG) {
        say_wrong(&r->seen, &head->fields);
        r->phase = OVER;
        return false;
    }
    heads_taken++;
    check_head(bytes, head);
    if (r->reads_requests) say_request(&r->seen, bytes, &r->request);
    else say_response(&r->seen, bytes, &r->response);
    r->begin += head->len;
    begin_body(r, head);
    return true;
}

static bool read_length(reader *r, const uint8_t *bytes, size_t len) {
    size_t count = len < r->left ? len : (size_t)r->left;
    say_bytes(&r->data, bytes, count);
    r->left -= count;
    r->begin += count;
    if (r->left > 0) return false;
    begin_head(r);
    return true;
}

static bool read_chunks(reader *r, const uint8_t *bytes, size_t len) {
    rhttp_piece piece;
    rhttp_chunk chunk = rhttp_chunks_take(&r->chunks, bytes, len, &piece);
    if (chunk == RHTTP_CHUNK_WRONG) {
        say_wrong(&r->seen, &r->chunks.trailers);
        r->phase = OVER;
        return false;
    }
    if (chunk == RHTTP_CHUNK_DATA) say_bytes(&r->data, piece.data, piece.len);
    if (chunk == RHTTP_CHUNK_END) say_fields(&r->seen, bytes, &r->chunks.trailers);
    DEMAND(piece.taken <= len);
    r->begin += piece.taken;
    if (chunk == RHTTP_CHUNK_END) begin_head(r);
    return chunk != RHTTP_CHUNK_PART;
}

static bool read_on(reader *r, const uint8_t *bytes, size_t len) {
    switch (r->phase) {
    case IN_HEAD: return len > 0 && read_head(r, bytes, len);
    case IN_LENGTH: return read_length(r, bytes, len);
    case IN_CHUNKS: return read_chunks(r, bytes, len);
    default: return false;
    }
}

/* All of it; the answer is what was seen. */
static char *converse(const text *bytes, bool reads_requests, pieces pieces) {
    reader *r = calloc(1, sizeof(*r));
    r->reads_requests = reads_requests;
    begin_head(r);
    for (size_t end = 0; end < bytes->len && r->phase != OVER;) {
        end = pieces.next(&pieces, end, bytes->len);
        size_t first = r->begin;
        uint8_t *copy = only((const uint8_t *)bytes->chars + first, end - first);
        while (read_on(r, copy + (r->begin - first), end - r->begin)) {}
        free(copy);
    }
    say(&r->seen, " to %zu with %s", r->phase == OVER ? 0 : r->begin, r->data.chars ? r->data.chars : "");
    char *seen = r->seen.chars;
    free(r->data.chars);
    free(r);
    return seen;
}

static void check_pieces(uint64_t seed, const text *bytes, bool reads_requests, chance *c) {
    char *whole = converse(bytes, reads_requests, (pieces){not_cut, 0});
    for (int i = 0; i < 2; i++) {
        char *other = converse(bytes, reads_requests, (pieces){i ? cut_by_chance : cut_everywhere, draw(c)});
        if (strcmp(whole, other) != 0) {
            fprintf(stderr, "seed %" PRIu64 ": other pieces are seen as something else\n%s\n%s\n", seed, whole, other);
            abort();
        }
        free(other);
    }
    free(whole);
}

/* --- the side that writes --- */

/* Any bytes that may be sent as a value, without blanks around them, which nobody would see. */
static rhttp_text draw_value(chance *c, char *room, size_t max) {
    rhttp_text value = {room, below(c, (uint32_t)max)};
    for (size_t i = 0; i < value.len; i++) room[i] = (char)draw(c);
    bool is_bare = value.len == 0 || (!rhttp_is_blank((uint8_t)room[0]) && !rhttp_is_blank((uint8_t)room[value.len - 1]));
    return rhttp_may_send_value(value) && is_bare ? value : RHTTP_TEXT("x");
}

static bool has_bytes(const uint8_t *bytes, rhttp_span span, rhttp_text expected) {
    return span.len == expected.len && (span.len == 0 || memcmp(bytes + span.at, expected.bytes, span.len) == 0);
}

/* An answer as a program may give it, read by a client: where the client sees the body end is where the server has ended it. */
static void check_answer(chance *c) {
    uint8_t bytes[400], *to = bytes;
    char room[40];
    rhttp_field fields[100];
    rhttp_response response;
    static const uint16_t odd[] = {101, 204, 205, 304};
    rhttp_answer answer = {.version = below(c, 4) ? RHTTP_1_1 : RHTTP_1_0, .gives = (uint8_t)below(c, 3),
                           .method = (uint8_t)(1 + below(c, RHTTP_METHOD_COUNT - 1)), .keeps_alive = below(c, 2),
                           .says_len = below(c, 2), .len = draw(c) >> below(c, 63) >> 1,
                           .status = below(c, 3) ? (uint16_t)(100 + below(c, 900)) : ONE_OF(c, odd)};
    rhttp_plan plan = rhttp_plan_answer(&answer);
    rhttp_text reason = {rhttp_reason(answer.status), strlen(rhttp_reason(answer.status))},
               value = draw_value(c, room, sizeof(room));
    size_t size =
        rhttp_status_line_size(reason) + rhttp_field_size(RHTTP_TEXT("x"), value) + rhttp_plan_size(&plan) + RHTTP_END_SIZE;
    to = rhttp_put_field(rhttp_put_status_line(to, answer.status, reason), RHTTP_TEXT("x"), value);
    to = rhttp_put_end(rhttp_put_plan(to, &plan));
    DEMAND((size_t)(to - bytes) == size);
    rhttp_response_begin(&response, &rhttp_usual_limits, fields, (rhttp_method)answer.method);
    DEMAND(rhttp_response_take(&response, bytes, size) == RHTTP_WHOLE && response.head.len == size);
    DEMAND(response.status == answer.status && has_bytes(bytes, fields[0].value, value));
    bool is_empty = plan.body == RHTTP_BODY_NONE && response.head.body == RHTTP_BODY_LENGTH && response.head.body_len == 0;
    DEMAND(response.head.body == plan.body || is_empty);
    DEMAND(plan.body != RHTTP_BODY_LENGTH || response.head.body_len == plan.len);
    DEMAND(answer.status < 200 || plan.keeps_alive || !response.head.keeps_alive);
    DEMAND(!plan.keeps_alive || response.head.keeps_alive);
}

/* A body in chunks, as they are written. */
static void check_chunks(chance *c) {
    text bytes = {0}, data = {0};
    for (uint32_t count = below(c, 5); count > 0; count--) {
        uint8_t around[20], piece[300];
        size_t len = 1 + below(c, sizeof(piece));
        for (size_t i = 0; i < len; i++) piece[i] = (uint8_t)draw(c);
        size_t head = (size_t)(rhttp_put_chunk_head(around, len) - around);
        DEMAND(head == rhttp_chunk_head_size(len));
        make_room(&bytes, head + len + 8);
        memcpy(bytes.chars + bytes.len, around, head);
        memcpy(bytes.chars + bytes.len + head, piece, len);
        bytes.len = (size_t)(rhttp_put_end((uint8_t *)bytes.chars + bytes.len + head + len) - (uint8_t *)bytes.chars);
        say_bytes(&data, piece, len);
    }
    say(&bytes, "0\r\n\r\n");
    text seen = see_chunks((const uint8_t *)bytes.chars, bytes.len, &rhttp_usual_limits, (pieces){cut_by_chance, draw(c)});
    text expected = {0};
    say(&expected, "whole %zu data=%s", bytes.len, data.chars ? data.chars : "");
    DEMAND(strcmp(seen.chars, expected.chars) == 0);
    free(seen.chars);
    free(expected.chars);
    free(data.chars);
    free(bytes.chars);
}

static void run(uint64_t seed) {
    chance c = {seed};
    bool is_request = below(&c, 3);
    text bytes = {0};
    for (uint32_t count = 1 + below(&c, 3); count > 0; count--) put_message(&bytes, &c, is_request);
    spoil(&bytes, &c);
    check_pieces(seed, &bytes, is_request, &c);
    check_answer(&c);
    check_chunks(&c);
    free(bytes.chars);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    uint64_t number = strtoull(argv[2], NULL, 10), seed = 0;
    if (strcmp(argv[1], "--seed") == 0) {
        run(number);
        return 0;
    }
    time_t until = time(NULL) + (time_t)number;
    for (; time(NULL) < until; seed++) run(seed);
    DEMAND(heads_taken > seed / 2); /* of at least three times as many */
    printf("%" PRIu64 " passed, 0 failed\n", seed);
    return seed == 0;
}
