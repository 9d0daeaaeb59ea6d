/* messages: Ringspun::Postgres::Messages, what a server sends before its connection becomes a lane, one message after the other. */
#include "client/postgres.h"

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

/* Waits for the next one. May switch strands.
 *
 * @return [Array(String, String), nil] its type, a letter, and its body; nil: the server has ended the connection
 * @raise [ProtocolError] what came begins like no message */
static VALUE messages_next(VALUE self, VALUE seconds) {
    messages *all = rb_check_typeddata(self, &messages_type);
    int64_t deadline = ringspun->deadline(seconds);
    for (;;) {
        const char *bytes;
        size_t len, needed;
        rpg_message message;
        ringspun->stream_peek(all->stream, &bytes, &len);
        rpg_found found = rpg_message_next((const uint8_t *)bytes, len, &message, &needed);
        if (found == RPG_WRONG) rb_raise(rpg_eProtocol, "what the server sends is no message of Postgres");
        if (found == RPG_WHOLE) {
            VALUE type = rb_str_new((const char *)&message.type, 1), body = rb_str_new((const char *)message.body, (long)message.len);
            ringspun->stream_drop(all->stream, needed);
            return rb_assoc_new(type, body);
        }
        if (!ringspun->stream_more(all->stream, deadline)) return Qnil;
    }
}

void rpg_init_messages(void) {
    VALUE cMessages = rb_define_class_under(rpg_mPostgres, "Messages", rb_cObject);
    rb_undef_alloc_func(cMessages);
    rb_define_singleton_method(cMessages, "new", messages_new, 1);
    rb_define_method(cMessages, "next", messages_next, 1);
}
