#include "client/params.h"

#include <stdio.h>

static bool is_plain(VALUE value) {
    if (RB_TYPE_P(value, T_STRING)) return rpg_is_utf8(value);
    return NIL_P(value) || FIXNUM_P(value) || value == Qtrue || value == Qfalse;
}

bool rpg_is_utf8(VALUE string) {
    int index = rb_enc_get_index(string);
    return index == rb_utf8_encindex() || index == rb_ascii8bit_encindex() || index == rb_usascii_encindex();
}

/* For what a String is made of in Ruby: Ringspun::Postgres.encode. */
VALUE rpg_encode_params(VALUE params) {
    VALUE encoded = params;
    if (RARRAY_LEN(params) > UINT16_MAX) {
        rb_raise(rpg_eUsage, "a statement has up to 65535 parameters, got %ld", RARRAY_LEN(params));
    }
    for (long i = 0; i < RARRAY_LEN(params); i++) {
        VALUE value = RARRAY_AREF(params, i);
        if (is_plain(value)) continue;
        if (encoded == params) encoded = rb_ary_dup(params);
        VALUE string = rb_funcall(rpg_mPostgres, rb_intern("encode"), 2, value, LONG2FIX(i + 1));
        rb_ary_store(encoded, i, rb_str_to_str(string));
    }
    return encoded;
}

static void put_text(rpg_out *out, const char *text, size_t len) {
    rpg_put_u32(out, (uint32_t)len);
    rpg_put_bytes(out, text, len);
}

static void put_value(rpg_out *out, VALUE value) {
    char digits[24];
    if (NIL_P(value)) rpg_put_u32(out, UINT32_MAX);
    else if (FIXNUM_P(value)) put_text(out, digits, (size_t)snprintf(digits, sizeof(digits), "%ld", FIX2LONG(value)));
    else if (!RB_TYPE_P(value, T_STRING)) put_text(out, value == Qtrue ? "t" : "f", 1);
    else if (RSTRING_LEN(value) > INT32_MAX) out->state = RPG_OUT_TOO_LONG;
    else put_text(out, RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
}

/* Bytes that are no text. */
static bool is_binary(VALUE value) { return RB_TYPE_P(value, T_STRING) && rb_enc_get_index(value) == rb_ascii8bit_encindex(); }

void rpg_put_params(rpg_out *out, VALUE params) {
    long count = RARRAY_LEN(params);
    rpg_put_u16(out, (uint16_t)count);
    for (long i = 0; i < count; i++) rpg_put_u16(out, is_binary(RARRAY_AREF(params, i)));
    rpg_put_u16(out, (uint16_t)count);
    for (long i = 0; i < count; i++) put_value(out, RARRAY_AREF(params, i));
}
