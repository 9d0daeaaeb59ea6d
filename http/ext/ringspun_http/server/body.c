/* body: the body of a request, piece by piece, as the program asks for it. */
#include "server/connection.h"

#include "codec/out.h"

/* A body may be slower than its rate for so long. */
#define RATE_AFTER_NS INT64_C(10000000000)
#define A_SECOND_NS INT64_C(1000000000)

/* What a program has not read of a body is read for the next request's sake, if there is no more of it than this. */
#define DROPPED_MAX ((uint64_t)64 << 10)

static const char too_slow[] = "the body has not come in time";

/* The client waits for it before it sends the body: https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1 */
static void send_continue(rhs_connection *connection) {
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!connection->owes_continue) return;
    connection->owes_continue = false;
    bool has_sent_head = connection->step != RHS_OWES && connection->step != RHS_HOLDS;
    if (!has_sent_head && !ringspun->stream_put(connection->stream, text, sizeof(text) - 1)) rhs_raise_gone();
}

/* By when more must have come: soon, and before the average falls below the rate. */
static int64_t deadline_of(const rhs_connection *connection) {
    const rhs_clocks *clocks = &connection->clocks;
    int64_t idle = rhs_from_now(clocks->body_ns);
    if (clocks->body_rate == 0) return idle;
    uint64_t earned = connection->read / clocks->body_rate;
    int64_t rated = earned > INT32_MAX ? RINGSPUN_NEVER : connection->body_since + RATE_AFTER_NS + (int64_t)earned * A_SECOND_NS;
    return idle < rated ? idle : rated;
}

static void wait_for_more(rhs_connection *connection) {
    if (!rhs_more(connection, deadline_of(connection), too_slow)) rhs_refuse(connection, 400, "the body has ended before its end");
}

static VALUE piece_of(rhs_connection *connection, const uint8_t *bytes, size_t len) {
    connection->read += len;
    return rb_str_new((const char *)bytes, (long)len);
}

static VALUE read_length(rhs_connection *connection, size_t most) {
    const char *bytes;
    size_t len;
    for (;;) {
        ringspun->stream_peek(connection->stream, &bytes, &len);
        if (len > 0) break;
        wait_for_more(connection);
    }
    if (len > most) len = most;
    if (len > connection->left) len = (size_t)connection->left;
    VALUE piece = piece_of(connection, (const uint8_t *)bytes, len);
    ringspun->stream_drop(connection->stream, len);
    connection->left -= len;
    connection->body_has_ended = connection->left == 0;
    return piece;
}

/* The room that a String has at first, where more is asked for: a length that a client has promised is no reason to have memory. */
#define ROOM_MAX ((size_t)64 << 10)

/* Every byte is copied once. */
static VALUE read_all_of(rhs_connection *connection, size_t most) {
    if (most > connection->left) most = (size_t)connection->left;
    VALUE piece = rb_str_buf_new((long)(most < ROOM_MAX ? most : ROOM_MAX));
    while (most > 0) {
        const char *bytes;
        size_t len;
        ringspun->stream_peek(connection->stream, &bytes, &len);
        if (len > most) len = most;
        rb_str_buf_cat(piece, bytes, (long)len);
        ringspun->stream_drop(connection->stream, len);
        connection->read += len;
        connection->left -= len;
        most -= len;
        if (most > 0) wait_for_more(connection);
    }
    connection->body_has_ended = connection->left == 0;
    return piece;
}

static VALUE text_of(const uint8_t *bytes, rhttp_span span) { return rb_str_new((const char *)bytes + span.at, span.len); }

/* By their names in small letters, as fields of an answer are; several of one name with commas between them. */
static void keep_trailers(rhs_connection *connection, const uint8_t *bytes) {
    const rhttp_fields *fields = &connection->chunks.trailers;
    if (fields->count == 0) return;
    VALUE trailers = rb_hash_new();
    for (uint16_t i = 0; i < fields->count; i++) {
        VALUE name = rb_funcall(text_of(bytes, fields->list[i].name), rb_intern("downcase"), 0);
        VALUE before = rb_hash_lookup(trailers, name), value = text_of(bytes, fields->list[i].value);
        rb_hash_aset(trailers, name, NIL_P(before) ? value : rb_sprintf("%" PRIsVALUE ", %" PRIsVALUE, before, value));
    }
    connection->trailers_read = trailers;
}

static VALUE read_chunk(rhs_connection *connection) {
    for (;;) {
        const char *bytes;
        size_t len;
        ringspun->stream_peek(connection->stream, &bytes, &len);
        rhttp_piece piece;
        rhttp_chunk found = rhttp_chunks_take(&connection->chunks, (const uint8_t *)bytes, len, &piece);
        if (found == RHTTP_CHUNK_WRONG) rhs_refuse_wrong(connection, connection->chunks.trailers.wrong);
        if (found == RHTTP_CHUNK_DATA) {
            VALUE text = piece_of(connection, piece.data, piece.len);
            ringspun->stream_drop(connection->stream, piece.taken);
            return text;
        }
        if (found == RHTTP_CHUNK_END) keep_trailers(connection, (const uint8_t *)bytes);
        ringspun->stream_drop(connection->stream, piece.taken);
        if (found == RHTTP_CHUNK_END) {
            connection->body_has_ended = true;
            return Qnil;
        }
        wait_for_more(connection);
    }
}

/* Whether all of the chunks have come that are left. They stay where they are, for the program may still read them. */
static bool has_last_chunk(const rhs_connection *connection) {
    const char *bytes;
    size_t len;
    ringspun->stream_peek(connection->stream, &bytes, &len);
    rhttp_chunks chunks = connection->chunks;
    rhttp_field *trailers = ALLOCA_N(rhttp_field, chunks.trailers.room); /* else the end of the body would be noted in its own */
    chunks.trailers.list = MEMCPY(trailers, connection->trailers, rhttp_field, chunks.trailers.room);
    for (uint64_t dropped = 0;;) {
        rhttp_piece piece;
        rhttp_chunk found = rhttp_chunks_take(&chunks, (const uint8_t *)bytes, len, &piece);
        dropped += piece.len;
        if (found != RHTTP_CHUNK_DATA || dropped > DROPPED_MAX) return found == RHTTP_CHUNK_END;
        bytes += piece.taken;
        len -= piece.taken;
    }
}

bool rhs_may_drop(const rhs_connection *connection) {
    if (connection->body_has_ended) return true;
    return connection->body == RHTTP_BODY_LENGTH ? connection->left <= DROPPED_MAX : has_last_chunk(connection);
}

static bool begin_read(rhs_connection *connection) {
    if (connection->step == RHS_WAITS || connection->step == RHS_READS) rb_raise(rhs_eUsage, "there is no request");
    if (connection->body_has_ended) return false;

    if (connection->read == 0) connection->body_since = ringspun->now();
    send_continue(connection);
    return true;
}

/* Waits for bytes of the request's body.
 *
 * May switch strands.
 *
 * @param most [Integer] bytes; of a chunked body it returns what has come of a chunk
 * @return [String, nil] nil: that was all
 * @raise [RequestError] it is not framed as it should be, has ended before its end, or has not come in time */
static VALUE connection_read(VALUE self, VALUE most) {
    rhs_connection *connection = rhs_connection_get(self);
    if (!begin_read(connection)) return Qnil;
    if (connection->body == RHTTP_BODY_LENGTH) return read_length(connection, NUM2SIZET(most));
    return read_chunk(connection);
}

/* The same, and waits for as many bytes as are asked for, or all that are left, where the head has said how many there are.
 *
 * @param most [Integer] bytes
 * @return [String, nil] fewer of a chunked body
 * @raise (see #read) */
static VALUE connection_read_all_of(VALUE self, VALUE most) {
    rhs_connection *connection = rhs_connection_get(self);
    if (!begin_read(connection)) return Qnil;
    if (connection->body == RHTTP_BODY_LENGTH) return read_all_of(connection, NUM2SIZET(most));
    return read_chunk(connection);
}

/* @return [Integer, nil] bytes of the body that the head has promised, and that were not read; nil: it has not said */
static VALUE connection_left(VALUE self) {
    const rhs_connection *connection = rhs_connection_get(self);
    if (connection->body_has_ended) return INT2FIX(0);
    return connection->body == RHTTP_BODY_LENGTH ? ULL2NUM(connection->left) : Qnil;
}

/* @return [Hash{String => String}, nil] the fields behind a chunked body, once it has ended, by names in small letters; nil: none */
static VALUE connection_trailers(VALUE self) { return rhs_connection_get(self)->trailers_read; }

/* @return [Boolean] whether the client sends the body only when it is told to go on, and has not been told */
static VALUE connection_expects_p(VALUE self) { return rhs_bool(rhs_connection_get(self)->owes_continue); }

void rhs_init_body(VALUE class) {
    rb_define_method(class, "read", connection_read, 1);
    rb_define_method(class, "read_all_of", connection_read_all_of, 1);
    rb_define_method(class, "left", connection_left, 0);
    rb_define_method(class, "trailers", connection_trailers, 0);
    rb_define_method(class, "expects?", connection_expects_p, 0);
}
