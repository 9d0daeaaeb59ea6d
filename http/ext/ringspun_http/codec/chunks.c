#include "codec/chunks.h"

#include "codec/chars.h"

/* What is read next. */
enum {
    SIZE, AFTER_SIZE, EXTENSION, NAME, AFTER_NAME, VALUE_BEGIN, VALUE, QUOTED, AFTER_QUOTED, AFTER_VALUE, LINE_LF, DATA, DATA_CR,
    DATA_LF, TRAILERS, DONE
};

/* Those of 64 bits. More could only be zeroes before them, by which a size is hidden from a reader that stops there. */
#define DIGITS_MAX 16

void rhttp_chunks_begin(rhttp_chunks *chunks, const rhttp_limits *limits, rhttp_field *trailers) {
    *chunks = (rhttp_chunks){.limits = limits, .step = SIZE};
    rhttp_fields_begin(&chunks->trailers, trailers, limits->trailers_count_max, limits->name_max, 0);
}

static rhttp_wrong end_size(rhttp_chunks *chunks) {
    if (chunks->left > chunks->limits->body_max - chunks->total) return RHTTP_WRONG_BODY_LONG;
    chunks->total += chunks->left;
    chunks->digits = 0;
    chunks->step = chunks->left > 0 ? DATA : TRAILERS;
    return RHTTP_FINE;
}

static rhttp_wrong go(rhttp_chunks *chunks, uint8_t step) {
    chunks->step = step;
    return RHTTP_FINE;
}

static rhttp_wrong take_size(rhttp_chunks *chunks, uint8_t byte) {
    int digit = rhttp_hex(byte);
    if (digit < 0 && chunks->digits == 0) return rhttp_wrong_byte(byte, RHTTP_WRONG_CHUNK_SIZE);
    if (digit >= 0 && chunks->digits == DIGITS_MAX) return RHTTP_WRONG_CHUNK_SIZE;
    if (digit >= 0) {
        chunks->left = (chunks->digits++ ? chunks->left << 4 : 0) | (uint64_t)digit;
        return RHTTP_FINE;
    }
    if (rhttp_is_blank(byte)) return go(chunks, AFTER_SIZE);
    if (byte != '\r' && byte != ';') return rhttp_wrong_byte(byte, RHTTP_WRONG_CHUNK_SIZE);
    return go(chunks, byte == '\r' ? LINE_LF : EXTENSION);
}

/* Behind a name or a value that was whole. `blanks`: what comes behind blanks, which are none of the end of the line. */
static rhttp_wrong end_extension(rhttp_chunks *chunks, uint8_t byte, uint8_t blanks) {
    if (rhttp_is_blank(byte)) return go(chunks, blanks);
    if (byte == '\r' && chunks->step != blanks) return go(chunks, LINE_LF);
    return byte == ';' ? go(chunks, EXTENSION) : rhttp_wrong_byte(byte, RHTTP_WRONG_EXTENSION);
}

/* ;name, ;name=value or ;name="value", with blanks around each sign, which nobody should send:
 * https://www.rfc-editor.org/rfc/rfc9112#section-7.1.1. Nobody reads them, but where they end is where the data begin. A value
 * with a backslash is refused, for not all readers know that a quote behind it ends nothing. */
static rhttp_wrong take_extension(rhttp_chunks *chunks, uint8_t byte) {
    bool is_token = rhttp_is(byte, RHTTP_TOKEN), is_text = rhttp_is(byte, RHTTP_VALUE);
    if (++chunks->extensions_len > chunks->limits->extensions_max) return RHTTP_WRONG_EXTENSIONS_LONG;
    switch (chunks->step) {
    case AFTER_SIZE:
        if (rhttp_is_blank(byte)) return RHTTP_FINE;
        return byte == ';' ? go(chunks, EXTENSION) : rhttp_wrong_byte(byte, RHTTP_WRONG_CHUNK_SIZE);
    case EXTENSION:
        if (rhttp_is_blank(byte)) return RHTTP_FINE;
        return is_token ? go(chunks, NAME) : rhttp_wrong_byte(byte, RHTTP_WRONG_EXTENSION);
    case NAME:
        if (is_token) return RHTTP_FINE;
        return byte == '=' ? go(chunks, VALUE_BEGIN) : end_extension(chunks, byte, AFTER_NAME);
    case AFTER_NAME: return byte == '=' ? go(chunks, VALUE_BEGIN) : end_extension(chunks, byte, AFTER_NAME);
    case VALUE_BEGIN:
        if (rhttp_is_blank(byte)) return RHTTP_FINE;
        if (byte == '"') return go(chunks, QUOTED);
        return is_token ? go(chunks, VALUE) : rhttp_wrong_byte(byte, RHTTP_WRONG_EXTENSION);
    case VALUE: return is_token ? RHTTP_FINE : end_extension(chunks, byte, AFTER_VALUE);
    case QUOTED:
        if (byte == '"') return go(chunks, AFTER_QUOTED);
        return is_text && byte != '\\' ? RHTTP_FINE : rhttp_wrong_byte(byte, RHTTP_WRONG_EXTENSION);
    default: return end_extension(chunks, byte, AFTER_VALUE);
    }
}

/* One byte of what is around the data. */
static rhttp_wrong take_byte(rhttp_chunks *chunks, uint8_t byte) {
    switch (chunks->step) {
    case SIZE: return take_size(chunks, byte);
    case LINE_LF: return byte == '\n' ? end_size(chunks) : RHTTP_WRONG_BARE_CR;
    case DATA_CR: return byte == '\r' ? go(chunks, DATA_LF) : RHTTP_WRONG_CHUNK_END;
    case DATA_LF: return byte == '\n' ? go(chunks, SIZE) : RHTTP_WRONG_CHUNK_END;
    default: return take_extension(chunks, byte);
    }
}

static rhttp_chunk take_data(rhttp_chunks *chunks, const uint8_t *bytes, size_t at, size_t len, rhttp_piece *piece) {
    size_t there = len - at, count = there < chunks->left ? there : (size_t)chunks->left;
    *piece = (rhttp_piece){at + count, bytes + at, count};
    chunks->left -= count;
    if (chunks->left == 0) chunks->step = DATA_CR;
    return RHTTP_CHUNK_DATA;
}

static rhttp_chunk refuse(rhttp_chunks *chunks, rhttp_wrong wrong) {
    rhttp_fields_refuse(&chunks->trailers, chunks->trailers.at, wrong);
    return RHTTP_CHUNK_WRONG;
}

/* Their spans are of the bytes from `at` on, until all of them are there. */
static rhttp_chunk end_trailers(rhttp_chunks *chunks, size_t at) {
    rhttp_fields *trailers = &chunks->trailers;
    for (uint16_t i = 0; i < trailers->count; i++) {
        rhttp_field *trailer = &trailers->list[i];
        if (rhttp_name_is_of_head_only((rhttp_name)trailer->known)) return refuse(chunks, RHTTP_WRONG_TRAILER_NAME);
        trailer->name.at += (uint32_t)at;
        trailer->value.at += (uint32_t)at;
    }
    chunks->step = DONE;
    return RHTTP_CHUNK_END;
}

static rhttp_chunk take_trailers(rhttp_chunks *chunks, const uint8_t *bytes, size_t at, size_t len, rhttp_piece *piece) {
    size_t max = chunks->limits->trailers_max, end = len - at < max ? len - at : max;
    rhttp_found found = rhttp_fields_take(&chunks->trailers, bytes + at, end);
    piece->taken = found == RHTTP_WHOLE ? at + chunks->trailers.at : at;
    if (found == RHTTP_WHOLE) return end_trailers(chunks, at);
    if (found == RHTTP_PART && end == max) return refuse(chunks, RHTTP_WRONG_TRAILERS_LONG);
    return found == RHTTP_PART ? RHTTP_CHUNK_PART : RHTTP_CHUNK_WRONG;
}

rhttp_chunk rhttp_chunks_take(rhttp_chunks *chunks, const uint8_t *bytes, size_t len, rhttp_piece *piece) {
    size_t at = 0;
    *piece = (rhttp_piece){0, bytes, 0};
    if (chunks->trailers.wrong) return RHTTP_CHUNK_WRONG;
    if (chunks->step == DONE) return RHTTP_CHUNK_END;
    for (; chunks->step != TRAILERS; at++) {
        piece->taken = at;
        if (at == len) return RHTTP_CHUNK_PART;
        if (chunks->step == DATA) return take_data(chunks, bytes, at, len, piece);
        rhttp_wrong wrong = take_byte(chunks, bytes[at]);
        if (wrong != RHTTP_FINE) return refuse(chunks, wrong);
    }
    return take_trailers(chunks, bytes, at, len, piece);
}
