/* receive: the head of the next request. */
#include "server/connection.h"
#include "server/env.h"
#include "server/keys.h"

#include "codec/check.h"

/* The number of fields up to which a head that comes in one piece needs no memory of its own. Browsers send 15 to 25. */
#define FIELDS_ON_THE_STACK 32

/* The number of requests without a wait between them after which other strands have their turn. */
#define IN_A_ROW_MAX 32

static rhttp_field *own_list(rhs_connection *connection) {
    if (!connection->list) connection->list = ALLOC_N(rhttp_field, connection->limits.fields_max);
    return connection->list;
}

static size_t peek(const rhs_connection *connection, const uint8_t **bytes) {
    const char *first;
    size_t len;
    ringspun->stream_peek(connection->stream, &first, &len);
    *bytes = (const uint8_t *)first;
    return len;
}

static int64_t begin_wait(rhs_connection *connection) {
    int64_t ns = connection->has_served ? connection->clocks.keep_alive_ns : connection->clocks.first_byte_ns;
    return connection->due_ns = rhs_from_now(ns);
}

/* Waits until the client has sent something. RHS_ENDED: it has closed its side, or has sent nothing in time. RHS_LATE: it has sent
 * nothing for as long as the strand has patience, and has taken all that was sent to it. */
static rhs_came wait_for_first_byte(rhs_connection *connection, int64_t patience_ns) {
    bool is_new = connection->due_ns == 0; /* else there may be something, for it was given a strand */
    if (is_new) begin_wait(connection);
    if (is_new && patience_ns == 0 && ringspun->stream_unsent(connection->stream) == 0) return RHS_LATE;
    int64_t leaves_ns = rhs_from_now(patience_ns);
    for (;;) {
        bool may_leave = leaves_ns < connection->due_ns;
        rhs_came came = rhs_wait_for_more(connection, may_leave ? leaves_ns : connection->due_ns);
        if (came != RHS_LATE) return came;
        if (ringspun->stream_unsent(connection->stream) == 0) return may_leave ? RHS_LATE : RHS_ENDED;
        leaves_ns = RINGSPUN_NEVER;
        if (may_leave) continue;
        rhs_flush(connection); /* a client that reads slowly is not idle */
        begin_wait(connection);
    }
}

static rhs_came find_first_byte(rhs_connection *connection, int64_t patience_ns) {
    const uint8_t *bytes;
    if (peek(connection, &bytes) == 0) {
        connection->in_a_row = 0;
        return wait_for_first_byte(connection, patience_ns);
    }
    if (++connection->in_a_row == IN_A_ROW_MAX) {
        connection->in_a_row = 0;
        ringspun->yield();
    }
    return RHS_MORE;
}

/* A second try, of a head that is not all there or has many fields. */
static rhttp_found take_slowly(rhs_connection *connection) {
    const int64_t deadline = rhs_from_now(connection->clocks.head_ns);
    rhttp_request_begin(&connection->request, &connection->limits, own_list(connection));
    for (;;) {
        const uint8_t *bytes;
        size_t len = peek(connection, &bytes);
        rhttp_found found = rhttp_request_take(&connection->request, bytes, len);
        if (found != RHTTP_PART) return found;
        if (!rhs_more(connection, deadline, "the head has not come in time")) return RHTTP_PART;
    }
}

/* What was known of the request before. */
static void forget(rhs_connection *connection) {
    connection->due_ns = 0;
    connection->status = 0;
    connection->read = connection->sent = 0;
}

static void note(rhs_connection *connection) {
    const rhttp_request *request = &connection->request;
    connection->step = RHS_OWES;
    connection->has_served = true;
    connection->version = request->head.version;
    connection->method = request->known_method;
    connection->body = request->head.body;
    connection->left = request->head.body_len;
    connection->body_has_ended = connection->body != RHTTP_BODY_CHUNKED && connection->left == 0;
    connection->trailers_read = Qnil;
    connection->owes_continue = request->expects_continue && !connection->body_has_ended;
    connection->keeps_alive = request->head.keeps_alive;
    if (connection->body == RHTTP_BODY_CHUNKED) {
        if (!connection->trailers) connection->trailers = ZALLOC_N(rhttp_field, connection->limits.trailers_count_max);
        rhttp_chunks_begin(&connection->chunks, &connection->limits, connection->trailers);
    }
}

static VALUE take_whole(rhs_connection *connection) {
    const uint8_t *bytes;
    peek(connection, &bytes);
    VALUE env = rhs_env_of(&connection->request, bytes, connection->base);
    note(connection);
    connection->asked = connection->request.head.upgrade.len > 0 ? rb_ary_dup(rb_hash_aref(env, rhs_keys[RHS_PROTOCOL])) : Qnil;
    ringspun->stream_drop(connection->stream, connection->request.head.len);
    return env;
}

/* Waits for the next request.
 *
 * May switch strands.
 *
 * @param patience [Float, nil] seconds after which the wait is left to others; nil: it is not
 * @return [Hash, false, nil] its env; nil: the client has closed its side, or no byte of it has come in time; false: none has come,
 *   and its time is not over, see {#due}
 * @raise [RequestError] it is none, or has begun and has not come in time */
static VALUE connection_receive(VALUE self, VALUE patience) {
    rhs_connection *connection = rhs_connection_get(self);
    if (connection->step != RHS_WAITS && connection->step != RHS_HAS_ANSWERED) rb_raise(rhs_eUsage, "a request is owed an answer");

    connection->step = RHS_WAITS;
    rhs_came came = find_first_byte(connection, rhs_nanoseconds(patience));
    if (came != RHS_MORE) return came == RHS_LATE ? Qfalse : Qnil;

    connection->step = RHS_READS;
    forget(connection);
    rhttp_field few[FIELDS_ON_THE_STACK];
    rhttp_limits limits = connection->limits;
    if (limits.fields_max > FIELDS_ON_THE_STACK) limits.fields_max = FIELDS_ON_THE_STACK;
    const uint8_t *bytes;
    size_t len = peek(connection, &bytes);
    rhttp_request_begin(&connection->request, &limits, few);
    rhttp_found found = rhttp_request_take(&connection->request, bytes, len);
    if (found != RHTTP_WHOLE) found = take_slowly(connection);
    if (found == RHTTP_WRONG) rhs_refuse_wrong(connection, connection->request.head.fields.wrong);
    return found == RHTTP_PART ? Qnil : take_whole(connection);
}

void rhs_init_receive(VALUE class) { rb_define_method(class, "receive", connection_receive, 1); }
