/* Bytes of a hostile server, for all that the codec does with them, under a sanitizer with all checks, and as users have it: a
 * conversation as a server may have it, with some bytes spoiled. Each is taken twice, in other pieces, and both must see the same.
 *
 *     fuzz --seconds 20          as many conversations as that
 *     fuzz --seed 7              one of them again
 */
#include "codec/message.h"
#include "codec/out.h"
#include "codec/replies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct { uint64_t state; } chance;

/* splitmix64: https://prng.di.unimi.it/splitmix64.c */
static uint64_t draw(chance *c) {
    uint64_t z = (c->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t below(chance *c, uint32_t limit) { return (uint32_t)(draw(c) % limit); }

/* --- a server --- */

static void put_noise(rpg_out *out, chance *c, uint32_t limit) {
    for (uint32_t len = below(c, limit); len > 0; len--) rpg_put_u8(out, (uint8_t)draw(c));
}

static void put_texts(rpg_out *out, chance *c, uint32_t count) {
    for (; count > 0; count--) {
        for (uint32_t len = below(c, 8); len > 0; len--) rpg_put_u8(out, (uint8_t)(1 + below(c, 255)));
        rpg_put_u8(out, 0);
    }
}

static void put_columns(rpg_out *out, chance *c) {
    uint16_t count = (uint16_t)below(c, 5);
    rpg_put_u16(out, count);
    for (; count > 0; count--) {
        put_texts(out, c, 1);
        for (int i = 0; i < 16; i++) rpg_put_u8(out, (uint8_t)draw(c));
        rpg_put_u16(out, (uint16_t)below(c, 3));
    }
}

static void put_row(rpg_out *out, chance *c) {
    uint16_t count = (uint16_t)below(c, 5);
    rpg_put_u16(out, count);
    for (; count > 0; count--) {
        uint32_t len = below(c, 20);
        rpg_put_u32(out, len ? len : UINT32_MAX);
        for (; len > 0; len--) rpg_put_u8(out, (uint8_t)draw(c));
    }
}

static void put_body(rpg_out *out, chance *c, uint8_t type) {
    switch (type) {
    case RPG_ROW_DESCRIPTION: put_columns(out, c); return;
    case RPG_ROW: put_row(out, c); return;
    case RPG_READY: rpg_put_u8(out, (uint8_t) "ITEx"[below(c, 4)]); return;
    case RPG_COMPLETE: put_texts(out, c, 1); return;
    case RPG_PARAMETER_STATUS: put_texts(out, c, 2); return;
    case RPG_ERROR:
    case RPG_NOTICE: put_texts(out, c, 1 + below(c, 3)); rpg_put_u8(out, 0); return;
    case RPG_AUTHENTICATION: rpg_put_u32(out, below(c, 14)); put_noise(out, c, 12); return;
    case RPG_KEY_DATA: rpg_put_u32(out, below(c, 99)); put_noise(out, c, 300); return;
    default: put_noise(out, c, 12);
    }
}

static void put_message(rpg_out *out, chance *c) {
    static const uint8_t types[] = "12tTnDDDDCZZZIsENSA3GHdcRKvVW";
    uint8_t type = types[below(c, sizeof(types) - 1)];
    size_t begun = rpg_begin(out, type);
    put_body(out, c, type);
    rpg_end(out, begun);
}

static void spoil(rpg_out *out, chance *c) {
    for (uint32_t times = below(c, 4); times > 0 && out->len > 0; times--) {
        out->bytes[below(c, (uint32_t)out->len)] = below(c, 2) ? (uint8_t)draw(c) : 0xff;
    }
    if (below(c, 4) == 0) out->len = below(c, (uint32_t)out->len + 1);
}

/* --- a client --- */

static uint64_t seen; /* a digest of all that is read */

static void see(uint64_t value) { seen = (seen ^ value) * 0x100000001b3u; }

static void see_span(rpg_span span) {
    see(span.len);
    for (size_t i = 0; i < span.len; i++) see(span.bytes[i]);
}

static void see_columns(const rpg_message *message) {
    rpg_reader reader;
    uint16_t count;
    rpg_column column;
    if (!rpg_read_columns(message, &reader, &count)) return;
    for (; count > 0 && rpg_read_column(&reader, &column); count--) see_span(column.name);
    see(rpg_reader_is_done(&reader));
}

static void see_row(const rpg_message *message) {
    rpg_reader reader;
    uint16_t count;
    rpg_span value;
    if (!rpg_read_row(message, &reader, &count)) return;
    for (; count > 0 && rpg_read_value(&reader, &value); count--) see_span(value);
    see(rpg_reader_is_done(&reader));
}

static void see_error(const rpg_message *message) {
    rpg_reader reader = rpg_reader_over(message->body, message->len);
    uint8_t code;
    rpg_span text;
    while (rpg_read_error_field(&reader, &code, &text) && code) see_span(text);
}

static void see_negotiation(const rpg_message *message) {
    uint32_t newest, unknown;
    if (!rpg_read_negotiate(message, &newest, &unknown)) return;
    see(newest);
    see(unknown);
}

/* As what it is, and as everything else. */
static void see_body(const rpg_message *message) {
    uint32_t number;
    uint16_t columns;
    uint8_t byte;
    rpg_span one, other;
    rpg_reader reader;
    see_columns(message);
    see_row(message);
    see_error(message);
    see_negotiation(message);
    if (rpg_read_authentication(message, &number, &one)) see_span(one);
    if (rpg_read_key_data(message, &number, &one)) see_span(one);
    if (rpg_read_parameter_status(message, &one, &other)) see_span(other);
    if (rpg_read_notification(message, &number, &one, &other)) see_span(other);
    if (rpg_read_complete(message, &one)) see_span(one);
    if (rpg_read_ready(message, &byte)) see(byte);
    if (rpg_read_copy(message, &byte, &columns)) see(columns);
    if (rpg_read_parameters(message, &reader, &columns)) see(columns);
}

static void expect(rpg_replies *replies, chance *c) {
    static char tags[4];
    static const uint16_t all = 2 * RPG_STEP_SYNC - 1;
    uint16_t steps = below(c, 4) ? (uint16_t)(draw(c) & all & ~RPG_STEP_QUERY) : RPG_STEP_QUERY;
    if (steps && !rpg_replies_expect(replies, steps, &tags[below(c, 4)])) abort();
}

/* Whatever the server says, a request ends once at most, and none that nobody has sent. */
static void end_all(rpg_replies *replies, uint32_t *ended) {
    void *tag;
    rpg_end_kind end;
    while (rpg_replies_next_ended(replies, &tag, &end)) {
        see(end);
        ++*ended;
    }
}

/* All of it, in pieces of such sizes, each in memory of its own so that the sanitizer sees its end. */
static uint64_t converse(const rpg_out *bytes, uint64_t seed, chance pieces) {
    chance c = {seed};
    rpg_replies replies = {0};
    uint32_t sent = 0, ended = 0;
    size_t begin = 0, end = 0;
    seen = 0;
    while (end < bytes->len) {
        size_t left = bytes->len - end, step = 1 + below(&pieces, 64);
        end += step < left ? step : left;
        uint8_t *piece = malloc(end - begin);
        if (!piece) abort();
        memcpy(piece, bytes->bytes + begin, end - begin);
        size_t at = 0, needed;
        rpg_message message;
        rpg_found found;
        while ((found = rpg_message_next(piece + at, end - begin - at, &message, &needed)) == RPG_WHOLE) {
            uint32_t before = replies.len;
            for (uint32_t count = below(&c, 3); count > 0; count--) expect(&replies, &c);
            sent += replies.len - before;
            see_body(&message);
            end_all(&replies, &ended);
            see(rpg_replies_take(&replies, &message).kind);
            end_all(&replies, &ended);
            at += needed;
        }
        free(piece);
        begin += at;
        if (found == RPG_WRONG) break;
    }
    see(begin);
    if (ended + replies.len != sent) abort();
    rpg_replies_free(&replies);
    return seen;
}

static void run(uint64_t seed) {
    chance c = {seed};
    rpg_out bytes = {0};
    for (uint32_t count = 1 + below(&c, 40); count > 0; count--) put_message(&bytes, &c);
    spoil(&bytes, &c);
    chance one = {draw(&c)}, other = {draw(&c)};
    if (converse(&bytes, seed, one) != converse(&bytes, seed, other)) {
        fprintf(stderr, "seed %" PRIu64 ": other pieces are seen as something else\n", seed);
        abort();
    }
    rpg_out_free(&bytes);
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
    printf("%" PRIu64 " passed, 0 failed\n", seed);
    return seed == 0;
}
