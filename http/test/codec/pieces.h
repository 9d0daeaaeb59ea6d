/* pieces: messages as they come in, in pieces, each in memory of its own so that a sanitizer sees where it ends, and what came of
 * them as text. Two readings of the same bytes are the same when their texts are.
 */
#ifndef RINGSPUN_HTTP_PIECES_H
#define RINGSPUN_HTTP_PIECES_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/chunks.h"
#include "codec/head.h"

typedef struct {
    char *chars;
    size_t len;
    size_t room;
} text;

static inline void make_room(text *to, size_t len) {
    if (to->room - to->len > len) return;
    to->room = (to->len + len) * 2 + 64;
    to->chars = realloc(to->chars, to->room);
    if (!to->chars) abort();
}

__attribute__((format(printf, 2, 3))) static inline void say(text *to, const char *format, ...) {
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int len = vsnprintf(NULL, 0, format, values);
    make_room(to, (size_t)len + 1);
    vsnprintf(to->chars + to->len, (size_t)len + 1, format, again);
    to->len += (size_t)len;
    va_end(again);
    va_end(values);
}

static inline void say_bytes(text *to, const uint8_t *bytes, size_t len) {
    make_room(to, len * 2 + 1);
    for (size_t i = 0; i < len; i++) {
        to->chars[to->len++] = "0123456789abcdef"[bytes[i] >> 4];
        to->chars[to->len++] = "0123456789abcdef"[bytes[i] & 15];
    }
    to->chars[to->len] = 0;
}

/* A copy that is as long as it is. */
static inline uint8_t *only(const uint8_t *bytes, size_t len) {
    uint8_t *copy = malloc(len);
    if (!copy && len > 0) abort();
    if (len > 0) memcpy(copy, bytes, len);
    return copy;
}

/* By code, and not by status, so that other pieces find the same fault. */
static inline void say_wrong(text *to, const rhttp_fields *fields) {
    rhttp_wrong wrong = (rhttp_wrong)fields->wrong;
    say(to, "wrong %u %d %s", rhttp_wrong_status(wrong), wrong, rhttp_wrong_text(wrong));
}

static inline void say_span(text *to, const char *name, const uint8_t *bytes, rhttp_span span) {
    say(to, " %s=", name);
    say_bytes(to, bytes + span.at, span.len);
}

static inline void say_fields(text *to, const uint8_t *bytes, const rhttp_fields *fields) {
    for (uint16_t i = 0; i < fields->count; i++) {
        const rhttp_field *field = &fields->list[i];
        say_span(to, "name", bytes, field->name);
        say_span(to, "value", bytes, field->value);
        say(to, " known=%s underscore=%d", rhttp_name_text((rhttp_name)field->known), field->has_underscore);
    }
}

static inline void say_head(text *to, const uint8_t *bytes, const rhttp_head *head) {
    static const char *const bodies[] = {"none", "length", "chunked", "close", "tunnel"};
    say(to, "whole %u version=%u body=%s body_len=%" PRIu64 " keeps_alive=%d", head->len, head->version, bodies[head->body],
        head->body_len, head->keeps_alive);
    say_span(to, "upgrade", bytes, head->upgrade);
}

static inline void say_request(text *to, const uint8_t *bytes, const rhttp_request *request) {
    static const char *const forms[] = {"origin", "absolute", "authority", "asterisk"};
    say_head(to, bytes, &request->head);
    say(to, " form=%s secure=%d expects=%d port=%d", forms[request->form], request->is_secure, request->expects_continue,
        request->host.text.len ? request->host.port : -1);
    say_span(to, "method", bytes, request->method);
    say_span(to, "target", bytes, request->target);
    say_span(to, "path", bytes, request->path);
    say_span(to, "query", bytes, request->query);
    say_span(to, "host", bytes, request->host.text);
    say_span(to, "host_name", bytes, request->host.name);
    say(to, " known_method=%s", rhttp_method_text((rhttp_method)request->known_method));
    say_fields(to, bytes, &request->head.fields);
}

static inline void say_response(text *to, const uint8_t *bytes, const rhttp_response *response) {
    say_head(to, bytes, &response->head);
    say(to, " status=%u", response->status);
    say_span(to, "reason", bytes, response->reason);
    say_fields(to, bytes, &response->head.fields);
}

static inline void say_found(text *to, rhttp_found found, const rhttp_head *head, size_t len) {
    if (found == RHTTP_WRONG) say_wrong(to, &head->fields);
    if (found == RHTTP_PART) say(to, "part");
    if (found == RHTTP_PART && head->fields.at != len)
        say(to, ", and %zu bytes are to be scanned again", len - head->fields.at);
}

/* How the bytes come in: each call of `next` answers where the piece ends that follows, up to `len`. */
typedef struct pieces {
    size_t (*next)(struct pieces *pieces, size_t at, size_t len);
    uint64_t word;              /* of `next` */
} pieces;

/* In two, at `word`. */
static inline size_t cut_once(pieces *pieces, size_t at, size_t len) {
    return at < pieces->word && pieces->word < len ? pieces->word : len;
}

static inline size_t cut_everywhere(pieces *pieces, size_t at, size_t len) {
    (void)pieces;
    return at < len ? at + 1 : len;
}

/* The list is as long as it has to be, and no longer. */
static inline text see_request(const uint8_t *bytes, size_t len, const rhttp_limits *limits, pieces pieces) {
    text seen = {0};
    rhttp_request request;
    rhttp_field *list = calloc(limits->fields_max, sizeof(*list));
    rhttp_found found = RHTTP_PART;
    rhttp_request_begin(&request, limits, list);
    for (size_t end = 0; found == RHTTP_PART && (end < len || end == 0);) {
        end = pieces.next(&pieces, end, len);
        uint8_t *copy = only(bytes, end);
        found = rhttp_request_take(&request, copy, end);
        if (found == RHTTP_WHOLE) say_request(&seen, copy, &request);
        else if (end == len || found == RHTTP_WRONG) say_found(&seen, found, &request.head, end);
        free(copy);
        if (len == 0) break;
    }
    free(list);
    return seen;
}

static inline text see_response(const uint8_t *bytes, size_t len, const rhttp_limits *limits, rhttp_method asked, pieces pieces) {
    text seen = {0};
    rhttp_response response;
    rhttp_field *list = calloc(limits->fields_max, sizeof(*list));
    rhttp_found found = RHTTP_PART;
    rhttp_response_begin(&response, limits, list, asked);
    for (size_t end = 0; found == RHTTP_PART && (end < len || end == 0);) {
        end = pieces.next(&pieces, end, len);
        uint8_t *copy = only(bytes, end);
        found = rhttp_response_take(&response, copy, end);
        if (found == RHTTP_WHOLE) say_response(&seen, copy, &response);
        else if (end == len || found == RHTTP_WRONG) say_found(&seen, found, &response.head, end);
        free(copy);
        if (len == 0) break;
    }
    free(list);
    return seen;
}

/* All that can be taken of a piece; `*begin` is where what was not taken begins. */
static inline rhttp_chunk take_chunks(rhttp_chunks *chunks, const uint8_t *bytes, size_t *begin, size_t end, text *data,
                                      text *after) {
    uint8_t *copy = only(bytes + *begin, end - *begin);
    size_t at = 0, len = end - *begin;
    rhttp_chunk chunk;
    rhttp_piece piece;
    do {
        chunk = rhttp_chunks_take(chunks, copy + at, len - at, &piece);
        if (chunk == RHTTP_CHUNK_DATA) say_bytes(data, piece.data, piece.len);
        if (chunk == RHTTP_CHUNK_END) say_fields(after, copy + at, &chunks->trailers);
        at += piece.taken;
    } while (chunk == RHTTP_CHUNK_DATA);
    free(copy);
    *begin += at;
    return chunk;
}

static inline text see_chunks(const uint8_t *bytes, size_t len, const rhttp_limits *limits, pieces pieces) {
    text seen = {0}, data = {0}, after = {0};
    rhttp_chunks chunks;
    rhttp_field *list = calloc(limits->trailers_count_max, sizeof(*list));
    rhttp_chunk chunk = RHTTP_CHUNK_PART;
    size_t begin = 0;
    rhttp_chunks_begin(&chunks, limits, list);
    for (size_t end = 0; chunk == RHTTP_CHUNK_PART && end < len;) {
        end = pieces.next(&pieces, end, len);
        chunk = take_chunks(&chunks, bytes, &begin, end, &data, &after);
    }
    if (chunk == RHTTP_CHUNK_WRONG) say_wrong(&seen, &chunks.trailers);
    else say(&seen, "%s %zu data=%s%s", chunk == RHTTP_CHUNK_END ? "whole" : "part", begin, data.chars ? data.chars : "",
             after.chars ? after.chars : "");
    free(data.chars);
    free(after.chars);
    free(list);
    return seen;
}

#endif
