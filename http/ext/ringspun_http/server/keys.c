#include "server/keys.h"

#include "codec/chars.h"

VALUE rhs_keys[RHS_KEY_COUNT];
VALUE rhs_name_keys[RHTTP_NAME_COUNT];
VALUE rhs_methods[RHTTP_METHOD_COUNT];

static const char *const texts[RHS_KEY_COUNT] = {
#define RHS_AS_TEXT(name, text) text,
    RHS_KEYS(RHS_AS_TEXT)
#undef RHS_AS_TEXT
};

#define PREFIX "HTTP_"

static size_t put_key(char *to, const uint8_t *name, size_t len) {
    memcpy(to, PREFIX, sizeof(PREFIX) - 1);
    char *at = to + sizeof(PREFIX) - 1;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = name[i];
        *at++ = (char)(byte == '-' ? '_' : byte >= 'a' && byte <= 'z' ? byte - 'a' + 'A' : byte);
    }
    return sizeof(PREFIX) - 1 + len;
}

VALUE rhs_key_of(const uint8_t *name, size_t len) {
    char text[sizeof(PREFIX) + UINT16_MAX]; /* the limit of a name is of 16 bits */
    return rb_enc_interned_str(text, (long)put_key(text, name, len), rb_ascii8bit_encoding());
}

static VALUE kept(VALUE string) {
    rb_gc_register_mark_object(string);
    return string;
}

static VALUE kept_text(const char *text) { return kept(rb_interned_str_cstr(text)); }

/* These two have no prefix: https://github.com/rack/rack/blob/main/SPEC.rdoc */
static bool has_no_prefix(rhttp_name name) { return name == RHTTP_NAME_CONTENT_TYPE || name == RHTTP_NAME_CONTENT_LENGTH; }

static VALUE key_of_name(rhttp_name name) {
    const char *text = rhttp_name_text(name);
    char key[64];
    size_t len = put_key(key, (const uint8_t *)text, strlen(text)), from = has_no_prefix(name) ? sizeof(PREFIX) - 1 : 0;
    return rb_interned_str(key + from, (long)(len - from));
}

void rhs_init_keys(void) {
    for (int i = 0; i < RHS_KEY_COUNT; i++) rhs_keys[i] = kept_text(texts[i]);
    for (int i = 1; i < RHTTP_NAME_COUNT; i++) rhs_name_keys[i] = kept(key_of_name((rhttp_name)i));
    for (int i = 1; i < RHTTP_METHOD_COUNT; i++) rhs_methods[i] = kept_text(rhttp_method_text((rhttp_method)i));
}
