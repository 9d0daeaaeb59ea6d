/* answer: what goes back to the client. Whatever a program gives that would be more than one answer is refused. */
#include "server/connection.h"
#include "server/scratch.h"

#include "codec/chars.h"
#include "codec/date.h"
#include "codec/framing.h"
#include "codec/list.h"
#include "codec/names.h"
#include "codec/out.h"
#include "codec/reasons.h"

#include <string.h>
#include <time.h>

/* A body up to this size leaves with its head in one piece. What is larger is cheaper to send from its own memory. */
#define TOGETHER_MAX ((size_t)32 << 10)

/* The stream copies what it is given, so what is larger goes there piece by piece, each when the client has taken the one before. */
#define SLICE_MAX ((size_t)256 << 10)

/* --- what a program gives --- */

typedef struct {
    bool has_date;
    bool closes;                /* the program says `connection: close` */
    bool is_tunnel;             /* the connection is the program's from here on */
    bool switches;              /* by a 101 */
    bool has_upgrade;           /* a field */
    bool names_upgrade;         /* in `connection` */
    bool says_len;
    uint64_t len;
    VALUE options;              /* String of those that the program names in `connection`; nil: none */
    VALUE asked;                /* Array of the protocols that the request has named; nil: none */
} given;

static rhttp_text text_of(VALUE string) { return (rhttp_text){RSTRING_PTR(string), (size_t)RSTRING_LEN(string)}; }

static void check_name(VALUE name) {
    if (!RB_TYPE_P(name, T_STRING)) rhs_raise_answer("the name of a header must be a String, got %"PRIsVALUE, rb_obj_class(name));
    if (!rhttp_may_send_name(text_of(name))) rhs_raise_answer("a header has the name %+"PRIsVALUE", which is no token", name);
}

/* Other servers send `to_s` of whatever a program gives, and so programs give numbers, such as `content-length`, and Symbols. Those
 * of a class that runs no code of the program are taken here as well. */
static VALUE string_of(VALUE value) {
    if (RB_INTEGER_TYPE_P(value)) return RB_FIXNUM_P(value) ? rb_fix2str(value, 10) : rb_big2str(value, 10);
    if (RB_SYMBOL_P(value)) return rb_sym2str(value);
    if (value == Qtrue) return rb_str_new_cstr("true");
    return value == Qfalse ? rb_str_new_cstr("false") : value;
}

static void check_value(VALUE name, VALUE value) {
    if (!RB_TYPE_P(value, T_STRING)) {
        rhs_raise_answer("the header %"PRIsVALUE" must be a String or an Array of Strings, got %"PRIsVALUE, name, rb_obj_class(value));
    }
    if (!rhttp_may_send_value(text_of(value))) {
        rhs_raise_answer("the header %"PRIsVALUE" has a control character, such as the end of a line, which would begin another "
                         "header; give an Array for several", name);
    }
}

static void put_field(rhttp_text name, rhttp_text value) {
    rhs_scratch_filled(rhttp_put_field(rhs_scratch_room(rhttp_field_size(name, value)), name, value));
}

static void read_length(given *given, VALUE value) {
    const rhttp_text text = text_of(value);
    if (!rhttp_read_length((const uint8_t *)text.bytes, text.len, &given->len)) {
        rhs_raise_answer("the header content-length must be a number, got %+"PRIsVALUE, value);
    }
    given->says_len = true;
}

/* But for capitals. */
static bool is_same(rhttp_text one, rhttp_text other) {
    if (one.len != other.len) return false;
    for (size_t i = 0; i < one.len; i++) {
        if (rhttp_small((uint8_t)one.bytes[i]) != rhttp_small((uint8_t)other.bytes[i])) return false;
    }
    return true;
}

/* Takes the first element off a list with commas between them. */
static bool take_element(rhttp_text list, rhttp_span *left, rhttp_text *element) {
    rhttp_span span;
    if (!rhttp_list_take((const uint8_t *)list.bytes, left, &span)) return false;
    *element = (rhttp_text){list.bytes + span.at, span.len};
    return true;
}

static void add_option(given *given, rhttp_text option) {
    if (NIL_P(given->options)) given->options = rb_str_buf_new(32);
    else rb_str_cat(given->options, ", ", 2);
    rb_str_cat(given->options, option.bytes, (long)option.len);
}

/* What the server says by itself: whether the connection goes on, and how a body is framed. */
static bool is_option_of_ours(rhttp_name known) {
    return known == RHTTP_NAME_KEEP_ALIVE || known == RHTTP_NAME_CONTENT_LENGTH || known == RHTTP_NAME_TRANSFER_ENCODING;
}

/* Other options name fields for the next reader alone, and stay: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1 */
static void read_connection(given *given, VALUE value) {
    const rhttp_text list = text_of(value);
    rhttp_span left = {0, (uint32_t)list.len};
    for (rhttp_text option; take_element(list, &left, &option);) {
        const rhttp_name known = rhttp_name_of((const uint8_t *)option.bytes, option.len);
        const bool closes = is_same(option, RHTTP_TEXT("close"));
        given->closes |= closes;
        if ((closes && !given->is_tunnel) || is_option_of_ours(known) || !rhttp_may_send_name(option)) continue;
        given->names_upgrade |= known == RHTTP_NAME_UPGRADE;
        add_option(given, option);
    }
}

static bool was_asked(VALUE asked, rhttp_text protocol) {
    for (long i = 0; !NIL_P(asked) && i < RARRAY_LEN(asked); i++) {
        VALUE one = RARRAY_AREF(asked, i);
        if (RB_TYPE_P(one, T_STRING) && is_same(text_of(one), protocol)) return true;
    }
    return false;
}

/* A 101 goes on in a protocol that the client has asked for: https://www.rfc-editor.org/rfc/rfc9110#section-7.8 */
static void read_upgrade(given *given, VALUE value) {
    const rhttp_text list = text_of(value);
    rhttp_span left = {0, (uint32_t)list.len};
    for (rhttp_text protocol; take_element(list, &left, &protocol);) {
        given->has_upgrade = true;
        if (given->switches && !was_asked(given->asked, protocol)) {
            rhs_raise_answer("a 101 switches to %+"PRIsVALUE", and the field upgrade of the request names %+"PRIsVALUE, value,
                             given->asked);
        }
    }
}

/* True: the field is not to be sent as it is. How a body is framed and whether the connection goes on is the server's to say. */
static bool is_ours(given *given, rhttp_name known, VALUE value) {
    switch (known) {
    case RHTTP_NAME_CONTENT_LENGTH:
        read_length(given, value);
        return true;
    case RHTTP_NAME_CONNECTION:
        read_connection(given, value);
        return true;
    case RHTTP_NAME_TRANSFER_ENCODING:
    case RHTTP_NAME_KEEP_ALIVE:
        return true;
    case RHTTP_NAME_UPGRADE:
        read_upgrade(given, value);
        return false;
    case RHTTP_NAME_DATE:
        given->has_date = true;
        return false;
    default:
        return false;
    }
}

static void put_header(given *given, VALUE name, rhttp_name known, VALUE value) {
    value = string_of(value);
    check_value(name, value);
    if (!is_ours(given, known, value)) put_field(text_of(name), text_of(value));
    RB_GC_GUARD(value);
}

/* Those that begin with `rack.` are for the server. */
static int put_headers(VALUE name, VALUE value, VALUE data) {
    given *given = (void *)data;
    if (RB_SYMBOL_P(name)) name = rb_sym2str(name);
    check_name(name);
    const rhttp_text text = text_of(name);
    if (text.len > 5 && memcmp(text.bytes, "rack.", 5) == 0) return ST_CONTINUE;

    rhttp_name known = rhttp_name_of((const uint8_t *)text.bytes, text.len);
    if (value == Qnil) return ST_CONTINUE; /* Puma would send a field without a value */
    if (RB_TYPE_P(value, T_ARRAY)) {
        for (long i = 0; i < RARRAY_LEN(value); i++) put_header(given, name, known, RARRAY_AREF(value, i));
    } else {
        put_header(given, name, known, value);
    }
    return ST_CONTINUE;
}

/* --- the head --- */

static const char *date_now(void) {
    static rhttp_date date;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return rhttp_date_at(&date, now.tv_sec);
}

static uint16_t status_of(VALUE status) {
    if (!RB_FIXNUM_P(status) || FIX2LONG(status) < 0 || !rhttp_may_send_status((uint64_t)FIX2LONG(status))) {
        rhs_raise_answer("the status of an answer must be an Integer of three digits, got %+"PRIsVALUE, status);
    }
    uint16_t number = (uint16_t)FIX2LONG(status);
    if (number / 100 == 1 && number != 101) {
        rhs_raise_answer("the status %"PRIsVALUE" is none of an answer, for which the client would go on to wait", status);
    }
    return number;
}

static bool is_tunnel(const rhs_connection *connection, uint16_t status) {
    return status == 101 || (connection->method == RHTTP_METHOD_CONNECT && status / 100 == 2);
}

static void put_status(uint16_t status) {
    const char *reason = rhttp_reason(status);
    rhttp_text text = {reason, strlen(reason)};
    rhs_scratch_filled(rhttp_put_status_line(rhs_scratch_room(rhttp_status_line_size(text)), status, text));
}

/* All of it in one field, for some readers know only one. Whoever sends `upgrade` names it there:
 * https://www.rfc-editor.org/rfc/rfc9110#section-7.8 */
static void put_connection(given *given, uint8_t says) {
    if (given->has_upgrade && !given->names_upgrade) add_option(given, RHTTP_TEXT("upgrade"));
    if (NIL_P(given->options)) return;
    if (says == RHTTP_SAYS_CLOSE) add_option(given, RHTTP_TEXT("close"));
    if (says == RHTTP_SAYS_KEEP_ALIVE) add_option(given, RHTTP_TEXT("keep-alive"));
    put_field(RHTTP_TEXT("connection"), text_of(given->options));
    RB_GC_GUARD(given->options);
}

static void put_plan(const rhttp_plan *plan, given *given) {
    rhttp_plan rest = *plan;
    put_connection(given, plan->says);
    if (!NIL_P(given->options)) rest.says = RHTTP_SAYS_NOTHING;
    rhs_scratch_filled(rhttp_put_plan(rhs_scratch_room(rhttp_plan_size(&rest)), &rest));
    rhs_scratch_filled(rhttp_put_end(rhs_scratch_room(RHTTP_END_SIZE)));
}

/* A client that has never been told to send its body may send it all the same, or not. */
static bool may_keep(const rhs_connection *connection, const given *given) {
    return connection->keeps_alive && !connection->is_last && !given->closes && !connection->owes_continue && rhs_may_drop(connection);
}

/* Puts the head. With `bytes` below 0 the length of the body is the one that the program says, or not known. */
static void put_head(rhs_connection *connection, VALUE status, VALUE headers, int64_t bytes) {
    uint16_t number = status_of(status);
    given given = {.is_tunnel = is_tunnel(connection, number), .switches = number == 101, .options = Qnil,
                   .asked = connection->asked};
    rhs_scratch_begin();
    put_status(number);
    rb_hash_foreach(headers, put_headers, (VALUE)&given);
    if (given.switches && !given.has_upgrade) {
        rhs_raise_answer("a 101 needs the header upgrade, with a protocol for which the field upgrade of the request asks");
    }
    if (bytes >= 0 && given.says_len && given.len != (uint64_t)bytes && connection->method != RHTTP_METHOD_HEAD && number != 304) {
        rhs_raise_answer("the header content-length says %"PRIu64", and the body has %"PRId64" bytes", given.len, bytes);
    }
    if (bytes >= 0 && !given.says_len) given.len = (uint64_t)bytes;
    if (!given.has_date) put_field(RHTTP_TEXT("date"), (rhttp_text){date_now(), RHTTP_DATE_LEN});
    rhttp_answer answer = {.version = connection->version, .method = connection->method, .status = number,
                           .gives = bytes >= 0 || given.says_len ? RHTTP_GIVES_LENGTH : RHTTP_GIVES_STREAM,
                           .says_len = given.says_len, .len = given.len, .keeps_alive = may_keep(connection, &given)};
    connection->plan = rhttp_plan_answer(&answer);
    put_plan(&connection->plan, &given);
    connection->status = number;
}

static void has_answered(rhs_connection *connection) { connection->step = RHS_HAS_ANSWERED; }

/* --- one that is held --- */

static void hold_head(rhs_connection *connection) {
    connection->held = rhs_scratch_string();
    connection->head_is_due = false;
    connection->step = RHS_HOLDS;
}

static VALUE take_head(rhs_connection *connection) {
    VALUE head = connection->held;
    connection->held = Qnil;
    return head;
}

static void drop_head(rhs_connection *connection) {
    if (connection->step != RHS_HOLDS) return;
    take_head(connection);
    connection->step = RHS_OWES;
}

static bool try_to_send_head(rhs_connection *connection) {
    if (RB_LIKELY(connection->step != RHS_HOLDS)) return true;
    VALUE head = take_head(connection);
    connection->step = connection->plan.body == RHTTP_BODY_TUNNEL ? RHS_TUNNELS : RHS_ANSWERS;
    bool is_put = ringspun->stream_put(connection->stream, RSTRING_PTR(head), (size_t)RSTRING_LEN(head));
    RB_GC_GUARD(head);
    return is_put;
}

static void send_head(rhs_connection *connection) {
    if (!try_to_send_head(connection)) rhs_raise_gone();
}

/* --- an answer whose body is there --- */

static int64_t bytes_of(VALUE parts) {
    int64_t bytes = 0;
    for (long i = 0; i < RARRAY_LEN(parts); i++) {
        VALUE part = RARRAY_AREF(parts, i);
        if (!RB_TYPE_P(part, T_STRING)) rhs_raise_answer("a body must give Strings, got %"PRIsVALUE, rb_obj_class(part));
        bytes += RSTRING_LEN(part);
    }
    return bytes;
}

static void put(const rhs_connection *connection, const char *bytes, size_t len) {
    if (!ringspun->stream_put(connection->stream, bytes, len)) rhs_raise_gone();
}

/* Does not wait, so that what several strands write has no other bytes in the middle of a chunk. */
static void put_chunk(const rhs_connection *connection, const char *bytes, size_t len) {
    bool together = len <= TOGETHER_MAX;
    rhs_scratch_begin();
    rhs_scratch_filled(rhttp_put_chunk_head(rhs_scratch_room(rhttp_chunk_head_size(len)), len));
    if (together) {
        rhs_scratch_put(bytes, len);
        rhs_scratch_filled(rhttp_put_end(rhs_scratch_room(RHTTP_END_SIZE)));
    }
    rhs_scratch_send(connection->stream);
    if (together) return;
    put(connection, bytes, len);
    put(connection, "\r\n", RHTTP_END_SIZE);
}

static void check_length(const rhs_connection *connection, size_t more) {
    if (connection->plan.body != RHTTP_BODY_LENGTH || connection->sent + more <= connection->plan.len) return;
    rhs_raise_answer("the body has more bytes than its content-length, %"PRIu64, connection->plan.len);
}

static void send_piece(rhs_connection *connection, VALUE piece) {
    const size_t all = (size_t)RSTRING_LEN(piece);
    check_length(connection, all);
    send_head(connection);
    if (all > SLICE_MAX) piece = rb_str_new_frozen(piece); /* others may change it between two slices */
    for (size_t at = 0; at < all;) {
        const char *bytes = RSTRING_PTR(piece) + at;
        const size_t len = all - at < SLICE_MAX ? all - at : SLICE_MAX;
        connection->plan.body == RHTTP_BODY_CHUNKED ? put_chunk(connection, bytes, len) : put(connection, bytes, len);
        connection->sent += len;
        at += len;
        rhs_keep_pace(connection);
    }
    RB_GC_GUARD(piece);
}

static void check_whole(const rhs_connection *connection) {
    if (connection->plan.body != RHTTP_BODY_LENGTH || connection->sent >= connection->plan.len) return;
    rhs_raise_answer("the body has %"PRIu64" bytes, and its content-length says %"PRIu64, connection->sent, connection->plan.len);
}

/* The program may change them while the client is waited for. */
static void send_parts(rhs_connection *connection, VALUE parts) {
    for (long i = 0; i < RARRAY_LEN(parts); i++) {
        VALUE part = RARRAY_AREF(parts, i);
        if (!RB_TYPE_P(part, T_STRING)) rhs_raise_answer("a body must give Strings, got %"PRIsVALUE, rb_obj_class(part));
        send_piece(connection, part);
    }
    check_whole(connection);
}

/* Answers the request. A head that is held is dropped: nobody has seen it.
 *
 * May switch strands, when the client reads slowly.
 *
 * @param status [Integer]
 * @param headers [Hash{String, Symbol => String, Integer, Symbol, Boolean, nil, Array}] nil: it is not sent
 * @param parts [Array<String>] the whole body
 * @return [nil]
 * @raise [AnswerError] it cannot be sent; nothing was
 * @raise [GoneError] the client has gone */
static VALUE connection_answer(VALUE self, VALUE status, VALUE headers, VALUE parts) {
    rhs_connection *connection = rhs_connection_get(self);
    drop_head(connection);
    rhs_connection_at(self, RHS_OWES, "an answer");
    Check_Type(headers, T_HASH);
    Check_Type(parts, T_ARRAY);
    int64_t bytes = bytes_of(parts);
    put_head(connection, status, headers, bytes);
    bool together = bytes <= (int64_t)TOGETHER_MAX;
    bool has_body = connection->plan.body != RHTTP_BODY_NONE; /* whatever length the program says: to HEAD it may be that of nothing */
    if (together && has_body) {
        for (long i = 0; i < RARRAY_LEN(parts); i++) rhs_scratch_put(RSTRING_PTR(RARRAY_AREF(parts, i)), (size_t)RSTRING_LEN(RARRAY_AREF(parts, i)));
    }
    rhs_scratch_send(connection->stream);
    connection->step = RHS_ANSWERS;
    if (has_body) {
        if (together) connection->sent = (uint64_t)bytes;
        else send_parts(connection, parts);
    }
    has_answered(connection);
    rhs_keep_pace(connection);
    return Qnil;
}

/* --- one whose body comes later --- */

/* Makes the head alone. Its length is the one that `content-length` says, or is not known. It is held until the first piece of the
 * body, the end of it or {#flush}, so that a body that fails before is answered with a 500.
 *
 * @return [Boolean] whether there is a body to be sent
 * @raise (see #answer) */
static VALUE connection_begin(VALUE self, VALUE status, VALUE headers) {
    rhs_connection *connection = rhs_connection_at(self, RHS_OWES, "an answer");
    Check_Type(headers, T_HASH);
    put_head(connection, status, headers, -1);
    hold_head(connection);
    return rhs_bool(connection->plan.body != RHTTP_BODY_NONE);
}

/* Sends the head that is held, where the body goes to the stream beside this connection.
 *
 * @return [nil]
 * @raise [GoneError] the client has gone */
static VALUE connection_send_head(VALUE self) {
    send_head(rhs_connection_get(self));
    return Qnil;
}

/* The call may be that of an answer before. Whether the client has gone is seen by whoever writes next. */
static void send_head_now(VALUE self) {
    rhs_connection *connection = rhs_connection_get(self);
    if (connection->head_is_due) try_to_send_head(connection);
}

/* Has the head leave at the end of the tick, unless it was sent or dropped before: what waits for its first piece for long, as a
 * stream of events does, is known to the client at once.
 *
 * @return [nil] */
static VALUE connection_send_head_soon(VALUE self) {
    if (!ringspun->at_tick_end(send_head_now, self)) rb_memerror();
    rhs_connection_get(self)->head_is_due = true;
    return Qnil;
}

/* Sends a piece of the body. It leaves at the end of the tick.
 *
 * May switch strands, when the client reads slowly.
 *
 * @param piece [String]
 * @return [nil]
 * @raise [AnswerError] it is none, or more than the head has promised
 * @raise [GoneError] the client has gone */
static VALUE connection_write(VALUE self, VALUE piece) {
    rhs_connection *connection = rhs_connection_get(self);
    const rhs_step step = connection->step;
    if (step != RHS_HOLDS && step != RHS_ANSWERS && step != RHS_TUNNELS) {
        rb_raise(rhs_eUsage, "this answer has no body, or has ended");
    }
    if (!RB_TYPE_P(piece, T_STRING)) rhs_raise_answer("a body must give Strings, got %"PRIsVALUE, rb_obj_class(piece));
    if (RSTRING_LEN(piece) == 0 || connection->plan.body == RHTTP_BODY_NONE) return Qnil;

    send_piece(connection, piece);
    return Qnil;
}

/* Notes bytes of the body that have gone to the stream beside this connection.
 *
 * @param bytes [Integer]
 * @return [nil] */
static VALUE connection_passed(VALUE self, VALUE bytes) {
    rhs_connection_at(self, RHS_ANSWERS, "a body")->sent += NUM2ULL(bytes);
    return Qnil;
}

/* Ends the body. A tunnel has none that would end.
 *
 * @return [nil]
 * @raise [AnswerError] it has fewer bytes than the head has promised
 * @raise [GoneError] the client has gone */
static VALUE connection_finish(VALUE self) {
    rhs_connection *connection = rhs_connection_get(self);
    if (connection->step == RHS_HOLDS) {
        check_whole(connection);
        send_head(connection);
    }
    if (connection->step == RHS_TUNNELS) return Qnil;
    rhs_connection_at(self, RHS_ANSWERS, "the end of an answer");
    check_whole(connection);
    if (connection->plan.body == RHTTP_BODY_CHUNKED) put(connection, "0\r\n\r\n", RHTTP_LAST_CHUNK_SIZE + RHTTP_END_SIZE);
    has_answered(connection);
    return Qnil;
}

/* --- what comes before it --- */

/* Sends a 103, as often as the program likes. Its fields are as those of an answer, but for those of a body.
 *
 * @param headers [Hash{String => String, Array<String>}]
 * @return [nil]
 * @raise [UsageError] the answer has begun, or the client speaks HTTP/1.0, which has no such answers
 * @raise [AnswerError] it cannot be sent; nothing was
 * @raise [GoneError] the client has gone */
static VALUE connection_early_hints(VALUE self, VALUE headers) {
    enum { EARLY_HINTS = 103 };
    rhs_connection *connection = rhs_connection_at(self, RHS_OWES, "an early hint");
    if (connection->version == RHTTP_1_0) rb_raise(rhs_eUsage, "a client of HTTP/1.0 takes a 103 for the answer; leave it out");
    Check_Type(headers, T_HASH);
    given given = {.options = Qnil, .asked = Qnil};
    rhs_scratch_begin();
    put_status(EARLY_HINTS);
    rb_hash_foreach(headers, put_headers, (VALUE)&given);
    put_connection(&given, RHTTP_SAYS_NOTHING);
    rhs_scratch_filled(rhttp_put_end(rhs_scratch_room(RHTTP_END_SIZE)));
    rhs_scratch_send(connection->stream);
    return Qnil;
}

/* Waits until all that was written is in the hands of the kernel.
 *
 * May switch strands.
 *
 * @return [nil]
 * @raise [TimeoutError] the client has taken nothing in time
 * @raise [GoneError, SystemCallError] it has gone */
static VALUE connection_flush(VALUE self) {
    rhs_connection *connection = rhs_connection_get(self);
    send_head(connection);
    rhs_flush(connection);
    return Qnil;
}

void rhs_init_answer(VALUE class) {
    rb_define_method(class, "answer", connection_answer, 3);
    rb_define_method(class, "begin", connection_begin, 2);
    rb_define_method(class, "send_head", connection_send_head, 0);
    rb_define_method(class, "send_head_soon", connection_send_head_soon, 0);
    rb_define_method(class, "passed", connection_passed, 1);
    rb_define_method(class, "early_hints", connection_early_hints, 1);
    rb_define_method(class, "write", connection_write, 1);
    rb_define_method(class, "flush", connection_flush, 0);
    rb_define_method(class, "finish", connection_finish, 0);
}
