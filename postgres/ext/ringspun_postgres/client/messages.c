/* Ringspun::Postgres::Messages, what is said on a connection before it becomes a lane: what the server sends, one message after the
 * other, and the bytes of what it is sent. */
#include "client/inits.h"
#include "client/postgres.h"

/* Whoever answers may be anybody, and no message of a server that is one is longer here: VALID_LONG_MESSAGE_TYPE in libpq's
 * fe-protocol3.c has this limit as well. */
#define TOLD_MAX 30000u

/* --- what comes --- */

typedef struct {
    VALUE stream;
} messages;

static void messages_mark(void *data) { rb_gc_mark(((messages *)data)->stream); }

static const rb_data_type_t messages_type = {
    .wrap_struct_name = "Ringspun::Postgres::Messages",
    .function = {.dmark = messages_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE messages_new(VALUE class, VALUE stream) {
    messages *all;
    VALUE self = TypedData_Make_Struct(class, messages, &messages_type, all);
    all->stream = stream;
    return self;
}

/* nil for the value that is NULL. */
static VALUE string_of(rpg_span bytes) { return bytes.bytes ? rb_str_new((const char *)bytes.bytes, (long)bytes.len) : Qnil; }

static VALUE authentication_of(const rpg_message *message) {
    uint32_t method;
    rpg_span rest;
    if (!rpg_read_authentication(message, &method, &rest)) return Qnil;
    return rb_assoc_new(UINT2NUM(method), string_of(rest));
}

static VALUE key_of(const rpg_message *message) {
    uint32_t process;
    rpg_span key;
    return rpg_read_key_data(message, &process, &key) ? rb_assoc_new(UINT2NUM(process), string_of(key)) : Qnil;
}

static VALUE setting_of(const rpg_message *message) {
    rpg_span name, value;
    return rpg_read_parameter_status(message, &name, &value) ? rb_assoc_new(string_of(name), string_of(value)) : Qnil;
}

static VALUE status_of(const rpg_message *message) {
    uint8_t status;
    return rpg_read_ready(message, &status) ? rb_ary_new_from_args(1, rb_str_new((const char *)&status, 1)) : Qnil;
}

static VALUE version_of(const rpg_message *message) {
    uint32_t newest, unknown;
    if (!rpg_read_negotiate(message, &newest, &unknown)) return Qnil;
    return rb_assoc_new(UINT2NUM(newest), UINT2NUM(unknown));
}

static VALUE row_of(const rpg_message *message) {
    rpg_reader reader;
    uint16_t count;
    rpg_span value;
    if (!rpg_read_row(message, &reader, &count)) return Qnil;
    VALUE row = rb_ary_new_capa(count);
    for (; count > 0; count--) {
        if (!rpg_read_value(&reader, &value)) return Qnil;
        rb_ary_push(row, string_of(value));
    }
    return rpg_reader_is_done(&reader) ? row : Qnil;
}

static VALUE fields_of(const rpg_message *message) {
    switch (message->type) {
    case RPG_AUTHENTICATION: return authentication_of(message);
    case RPG_KEY_DATA: return key_of(message);
    case RPG_PARAMETER_STATUS: return setting_of(message);
    case RPG_READY: return status_of(message);
    case RPG_NEGOTIATE: return version_of(message);
    case RPG_ROW: return row_of(message);
    default: return rb_ary_new_from_args(1, string_of((rpg_span){message->body, message->len}));
    }
}

NORETURN(static void refuse_length(uint32_t told));
static void refuse_length(uint32_t told) {
    rb_raise(rpg_eProtocol, "what answers is no Postgres, or a broken one: it sent a message of %u bytes", told);
}

/* False: it is not whole. */
static bool take(VALUE stream, bool ended, VALUE *type, VALUE *fields) {
    const char *chars;
    size_t come, needed;
    rpg_message message;
    ringspun->stream_peek(stream, &chars, &come);
    if (come < RPG_HEADER && !ended) return false;
    const uint8_t *bytes = (const uint8_t *)chars;
    if (come >= RPG_HEADER && rpg_load_u32(bytes + 1) > TOLD_MAX) refuse_length(rpg_load_u32(bytes + 1));
    rpg_found found = rpg_message_next(bytes, come, &message, &needed);
    if (found == RPG_WRONG) rb_raise(rpg_eProtocol, "what the server sends is no message of Postgres");
    if (found == RPG_PART) return false;
    *type = rb_str_new((const char *)&message.type, 1);
    *fields = fields_of(&message);
    ringspun->stream_drop(stream, needed);
    return true;
}

/* Waits for the next one. May switch strands.
 *
 * @return [Array(String, Array), nil] its type, a letter, and its fields, as numbers and bytes, or nil, where they are not as they must
 *   be; of a type that has none here, the body. nil: the server has ended the connection
 * @raise [ProtocolError] what came begins like no message, or is too long */
static VALUE messages_next(VALUE self) {
    const messages *all = rb_check_typeddata(self, &messages_type);
    VALUE type, fields;
    bool ended = false;
    while (!take(all->stream, ended, &type, &fields)) {
        if (ended) return Qnil;
        ended = !ringspun->stream_more(all->stream, RINGSPUN_NEVER);
    }
    return rb_assoc_new(type, fields);
}

/* --- what goes --- */

static VALUE written(rpg_out *out) {
    VALUE bytes = out->state == RPG_OUT_FINE ? rb_str_new((const char *)out->bytes, (long)out->len) : Qnil;
    bool too_long = out->state == RPG_OUT_TOO_LONG;
    rpg_out_free(out);
    if (too_long) rb_raise(rpg_eUsage, "what a connection begins with has too many bytes");
    if (NIL_P(bytes)) rb_memerror();
    return bytes;
}

static rpg_span span_of(VALUE text) { return (rpg_span){(const uint8_t *)RSTRING_PTR(text), (size_t)RSTRING_LEN(text)}; }

/* All that follows returns a String: the message. Texts have no NUL in them. */

static VALUE ssl_request(VALUE class) {
    rpg_out out = {0};
    rpg_put_ssl_request(&out);
    return written(&out);
}

static VALUE cancel_request(VALUE class, VALUE process, VALUE key) {
    rpg_out out = {0};
    rpg_put_cancel_request(&out, NUM2UINT(process), span_of(key));
    return written(&out);
}

/* @param version [Integer] of the protocol
 * @param texts [Array<String>] names and values in turn */
static VALUE startup(VALUE class, VALUE version, VALUE texts) {
    rpg_out out = {0};
    uint32_t protocol = NUM2UINT(version);
    VALUE memory;
    rpg_span *spans = ALLOCV_N(rpg_span, memory, RARRAY_LEN(texts));
    for (long i = 0; i < RARRAY_LEN(texts); i++) spans[i] = span_of(RARRAY_AREF(texts, i));
    rpg_put_startup(&out, protocol, spans, (size_t)RARRAY_LEN(texts));
    ALLOCV_END(memory);
    RB_GC_GUARD(texts);
    return written(&out);
}

static VALUE password(VALUE class, VALUE text) {
    rpg_out out = {0};
    rpg_put_password(&out, span_of(text));
    return written(&out);
}

static VALUE sasl_initial(VALUE class, VALUE mechanism, VALUE answer) {
    rpg_out out = {0};
    rpg_put_sasl_initial(&out, span_of(mechanism), span_of(answer));
    return written(&out);
}

static VALUE sasl_response(VALUE class, VALUE answer) {
    rpg_out out = {0};
    rpg_put_sasl_response(&out, span_of(answer));
    return written(&out);
}

static VALUE query(VALUE class, VALUE sql) {
    rpg_out out = {0};
    rpg_put_query(&out, span_of(sql));
    return written(&out);
}

void rpg_init_messages(void) {
    VALUE cMessages = rb_define_class_under(rpg_mPostgres, "Messages", rb_cObject);
    rb_undef_alloc_func(cMessages);
    rb_define_singleton_method(cMessages, "new", messages_new, 1);
    rb_define_method(cMessages, "next", messages_next, 0);
    rb_define_singleton_method(cMessages, "ssl_request", ssl_request, 0);
    rb_define_singleton_method(cMessages, "cancel_request", cancel_request, 2);
    rb_define_singleton_method(cMessages, "startup", startup, 2);
    rb_define_singleton_method(cMessages, "password", password, 1);
    rb_define_singleton_method(cMessages, "sasl_initial", sasl_initial, 2);
    rb_define_singleton_method(cMessages, "sasl_response", sasl_response, 1);
    rb_define_singleton_method(cMessages, "query", query, 1);
}
