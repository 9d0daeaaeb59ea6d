#include "codec/request.h"

/* In place of a version of the protocol: 1234 in the upper half, and 5679 or 5678, so that no version is ever the same.
 * https://www.postgresql.org/docs/17/protocol-message-formats.html (SSLRequest, CancelRequest) */
#define SSL_REQUEST 80877103u
#define CANCEL_REQUEST 80877102u

static void put_span(rpg_out *out, rpg_span text) { rpg_put_text(out, text.bytes, text.len); }

void rpg_put_ssl_request(rpg_out *out) {
    size_t begun = rpg_begin(out, 0);
    rpg_put_u32(out, SSL_REQUEST);
    rpg_end(out, begun);
}

void rpg_put_cancel_request(rpg_out *out, uint32_t process, rpg_span key) {
    size_t begun = rpg_begin(out, 0);
    rpg_put_u32(out, CANCEL_REQUEST);
    rpg_put_u32(out, process);
    rpg_put_bytes(out, key.bytes, key.len);
    rpg_end(out, begun);
}

void rpg_put_startup(rpg_out *out, uint32_t protocol, const rpg_span *parameters, size_t count) {
    size_t begun = rpg_begin(out, 0);
    rpg_put_u32(out, protocol);
    for (size_t i = 0; i < count; i++) put_span(out, parameters[i]);
    rpg_put_u8(out, 0);
    rpg_end(out, begun);
}

void rpg_put_password(rpg_out *out, rpg_span answer) {
    size_t begun = rpg_begin(out, 'p');
    put_span(out, answer);
    rpg_end(out, begun);
}

void rpg_put_sasl_initial(rpg_out *out, rpg_span mechanism, rpg_span answer) {
    size_t begun = rpg_begin(out, 'p');
    put_span(out, mechanism);
    rpg_put_u32(out, (uint32_t)answer.len);
    rpg_put_bytes(out, answer.bytes, answer.len);
    rpg_end(out, begun);
}

void rpg_put_sasl_response(rpg_out *out, rpg_span answer) {
    size_t begun = rpg_begin(out, 'p');
    rpg_put_bytes(out, answer.bytes, answer.len);
    rpg_end(out, begun);
}

void rpg_put_parse(rpg_out *out, rpg_span name, rpg_span sql, const uint32_t *types, uint16_t count) {
    size_t begun = rpg_begin(out, 'P');
    put_span(out, name);
    put_span(out, sql);
    rpg_put_u16(out, count);
    for (uint16_t i = 0; i < count; i++) rpg_put_u32(out, types[i]);
    rpg_end(out, begun);
}

static uint8_t *store_span(uint8_t *at, rpg_span span) {
    if (span.len > 0) memcpy(at, span.bytes, span.len);
    return at + span.len;
}

/* In one piece, for each statement has one. */
size_t rpg_begin_bind(rpg_out *out, rpg_span statement, rpg_span params, uint16_t columns) {
    size_t begun = out->len + 1;
    uint8_t *at = rpg_out_room(out, 1 + 4 + 1 + statement.len + 1 + params.len + 2);
    if (!at) return begun;
    *at = 'B';
    at += 1 + 4;
    *at++ = 0; /* the portal has no name */
    at = store_span(at, statement);
    *at++ = 0;
    at = store_span(at, params);
    rpg_store_u16(at, columns);
    return begun;
}

static void put_named(rpg_out *out, uint8_t type, char of, rpg_span name) {
    size_t begun = rpg_begin(out, type);
    rpg_put_u8(out, (uint8_t)of);
    put_span(out, name);
    rpg_end(out, begun);
}

void rpg_put_describe(rpg_out *out, char of, rpg_span name) { put_named(out, 'D', of, name); }
void rpg_put_close(rpg_out *out, char of, rpg_span name) { put_named(out, 'C', of, name); }

void rpg_put_execute(rpg_out *out, rpg_span portal, uint32_t rows) {
    size_t begun = rpg_begin(out, 'E');
    put_span(out, portal);
    rpg_put_u32(out, rows);
    rpg_end(out, begun);
}

void rpg_put_query(rpg_out *out, rpg_span sql) {
    size_t begun = rpg_begin(out, 'Q');
    put_span(out, sql);
    rpg_end(out, begun);
}

static void put_bare(rpg_out *out, uint8_t type) { rpg_end(out, rpg_begin(out, type)); }

void rpg_put_sync(rpg_out *out) { put_bare(out, 'S'); }
void rpg_put_flush(rpg_out *out) { put_bare(out, 'H'); }

void rpg_put_copy_header(rpg_out *out, uint32_t len) {
    rpg_put_u8(out, 'd');
    rpg_put_u32(out, len + 4);
}

void rpg_put_copy_done(rpg_out *out) { put_bare(out, 'c'); }

void rpg_put_copy_fail(rpg_out *out, rpg_span reason) {
    size_t begun = rpg_begin(out, 'f');
    put_span(out, reason);
    rpg_end(out, begun);
}
