#include "client/params.h"

#include <stdio.h>

typedef struct {
    VALUE values;               /* Array */
    VALUE declared;             /* String or nil */
    VALUE untyped;              /* Array of places, or nil */
    VALUE lists;                /* Hash: places => Arrays as they were given; or nil */
    VALUE jsons;                /* Hash: of these, places => json, where that is made; or nil */
} rpg_params;

static VALUE cParams;
static ID id_json_of;

static void params_mark(void *data) {
    const rpg_params *params = data;
    rb_gc_mark(params->values);
    rb_gc_mark(params->declared);
    rb_gc_mark(params->untyped);
    rb_gc_mark(params->lists);
    rb_gc_mark(params->jsons);
}

static const rb_data_type_t params_type = {
    .wrap_struct_name = "Ringspun::Postgres::Params",
    .function = {.dmark = params_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static bool is_array(VALUE params) { return RB_TYPE_P(params, T_ARRAY); }

static const rpg_params *get(VALUE params) { return rb_check_typeddata(params, &params_type); }

static VALUE values_of(VALUE params) { return is_array(params) ? params : get(params)->values; }

/* --- encoding --- */

/* Those of one statement, while they are encoded. */
typedef struct {
    VALUE given;
    VALUE values;               /* a copy of `given` as soon as one differs */
    VALUE declared;
    VALUE untyped;
    VALUE lists;
} encoding;

static void replace(encoding *e, long place, VALUE value) {
    if (e->values == e->given) e->values = rb_ary_dup(e->given);
    rb_ary_store(e->values, place, value);
}

static void declare(encoding *e, long place, uint32_t type) {
    size_t len = (size_t)RARRAY_LEN(e->given) * sizeof(type);
    if (NIL_P(e->declared)) {
        e->declared = rb_str_new(NULL, (long)len);
        memset(RSTRING_PTR(e->declared), 0, len);
    }
    memcpy(RSTRING_PTR(e->declared) + (size_t)place * sizeof(type), &type, sizeof(type));
}

static void note_untyped(encoding *e, long place) {
    if (NIL_P(e->untyped)) e->untyped = rb_ary_new();
    rb_ary_push(e->untyped, LONG2FIX(place));
}

/* `array` may be changed by its owner while it is asked for the type. */
static void note_list(encoding *e, long place, VALUE array) {
    if (NIL_P(e->lists)) e->lists = rb_hash_new();
    rb_hash_aset(e->lists, LONG2FIX(place), rb_ary_dup(array));
}

/* What needs Ruby code to become text is text afterwards, and nobody else has the Arrays. */
static VALUE prepared(VALUE array, long place) {
    VALUE copy = rb_ary_new_capa(RARRAY_LEN(array));
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        VALUE value = RARRAY_AREF(array, i), elements = rpg_elements_of(value);
        if (!NIL_P(elements)) {
            value = prepared(elements, place);
        } else if (!RB_TYPE_P(value, T_STRING) && !FIXNUM_P(value) && !NIL_P(value) && value != Qtrue && value != Qfalse) {
            rpg_text text = rpg_text_new(place, RPG_BYTES_ARE_TEXT);
            rpg_put_object(&text, value);
            value = rpg_text_end(&text);
        }
        rb_ary_push(copy, value);
    }
    return copy;
}

VALUE rpg_text_of(VALUE value, long place) {
    rpg_text text = rpg_text_new(place, RPG_BYTES_ARE_TEXT);
    rpg_put_object(&text, value);
    return rpg_text_end(&text);
}

static VALUE text_of(VALUE value, long place, rpg_bytes_are bytes_are) {
    rpg_text text = rpg_text_new(place + 1, bytes_are);
    rpg_put_object(&text, value);
    return rpg_text_end(&text);
}

static void encode_array(encoding *e, long place, VALUE array) {
    rpg_kinds found = {false, false};
    rpg_look_for_bytes(array, place + 1, &found);
    if (found.bytes) {
        declare(e, place, RPG_BYTEA_ARRAY);
        replace(e, place, text_of(array, place, RPG_BYTES_ARE_BYTEA));
        return;
    }
    note_list(e, place, array);
    if (found.untyped) note_untyped(e, place);
    replace(e, place, found.untyped ? prepared(array, place + 1) : text_of(array, place, RPG_BYTES_ARE_TEXT));
}

static void encode_string(encoding *e, long place, VALUE string) {
    if (!rpg_is_utf8(string)) replace(e, place, text_of(string, place, RPG_BYTES_ARE_TEXT));
    else if (!rpg_is_binary(string)) rpg_check_text(string, place + 1, 0);
    else if (!rpg_is_plain(string)) note_untyped(e, place);
}

static void encode(encoding *e, long place, VALUE value) {
    VALUE elements;
    if (NIL_P(value) || FIXNUM_P(value) || value == Qtrue || value == Qfalse) return;
    if (RB_TYPE_P(value, T_STRING)) {
        encode_string(e, place, value);
    } else if (!NIL_P(elements = rpg_elements_of(value))) {
        encode_array(e, place, elements);
    } else if (rpg_is_bytes(value)) {
        declare(e, place, RPG_BYTEA);
        replace(e, place, rpg_string_of_bytes(value));
    } else {
        replace(e, place, text_of(value, place, RPG_BYTES_ARE_TEXT));
    }
}

static void check_size(VALUE values) {
    size_t size = 0;
    for (long i = 0; i < RARRAY_LEN(values); i++) {
        VALUE value = RARRAY_AREF(values, i);
        if (!RB_SPECIAL_CONST_P(value) && RB_TYPE_P(value, T_STRING)) size += (size_t)RSTRING_LEN(value);
    }
    if (RB_LIKELY(size <= RPG_MESSAGE_MAX)) return;
    rb_raise(rpg_eUsage, "the parameters of a statement have %ld bytes together at most, these have %zu", RPG_MESSAGE_MAX, size);
}

VALUE rpg_encode_params(VALUE params) {
    if (!is_array(params)) return params;
    if (RARRAY_LEN(params) > UINT16_MAX) {
        rb_raise(rpg_eUsage, "a statement has up to 65535 parameters, got %ld", RARRAY_LEN(params));
    }
    encoding e = {params, params, Qnil, Qnil, Qnil};
    for (long i = 0; i < RARRAY_LEN(params); i++) encode(&e, i, RARRAY_AREF(params, i));
    check_size(e.values);
    if (NIL_P(e.declared) && NIL_P(e.untyped) && NIL_P(e.lists)) return e.values;
    rpg_params *own;
    VALUE self = TypedData_Make_Struct(cParams, rpg_params, &params_type, own);
    *own = (rpg_params){e.values == params ? rb_ary_dup(params) : e.values, e.declared, e.untyped, e.lists, Qnil};
    return self;
}

/* --- types --- */

VALUE rpg_params_declared(VALUE params) { return is_array(params) ? Qnil : get(params)->declared; }

bool rpg_params_are_untyped(VALUE params) { return !is_array(params) && !(NIL_P(get(params)->untyped) && NIL_P(get(params)->lists)); }

static bool has(VALUE hash, long place) { return !NIL_P(hash) && !NIL_P(rb_hash_lookup(hash, LONG2FIX(place))); }

static bool is_noted(const rpg_params *params, long place) {
    return !NIL_P(params->untyped) && RTEST(rb_ary_includes(params->untyped, LONG2FIX(place)));
}

bool rpg_param_is_untyped(VALUE params, long place) {
    return !is_array(params) && (has(get(params)->lists, place) || is_noted(get(params), place));
}

bool rpg_param_is_list(VALUE params, long place) {
    return !is_array(params) && has(get(params)->lists, place) && !is_noted(get(params), place);
}

bool rpg_param_lacks_json(VALUE params, long place) {
    return !is_array(params) && has(get(params)->lists, place) && !has(get(params)->jsons, place);
}

void rpg_make_json(VALUE params, long place) {
    rpg_params *own = rb_check_typeddata(params, &params_type);
    VALUE list = rb_hash_lookup(own->lists, LONG2FIX(place));
    VALUE json = rb_funcall(rpg_mPostgres, id_json_of, 2, list, LONG2FIX(place + 1));
    rpg_check_text(json, place + 1, 0);
    check_size(rb_ary_new_from_args(1, json));
    if (NIL_P(own->jsons)) own->jsons = rb_hash_new();
    rb_hash_aset(own->jsons, LONG2FIX(place), json);
}

long rpg_params_len(VALUE params) { return RARRAY_LEN(values_of(params)); }

static VALUE typed(VALUE value, long place, bool bytea, uint32_t type) {
    if (RB_TYPE_P(value, T_ARRAY)) return text_of(value, place, bytea ? RPG_BYTES_ARE_BYTEA : RPG_BYTES_ARE_TEXT);
    if (bytea) return value;
    rpg_check_text(value, place + 1, type);
    return rb_enc_associate(rb_str_dup(value), rb_utf8_encoding());
}

VALUE rpg_typed_params(VALUE params, rpg_kind_at kind_at, const void *data) {
    if (!rpg_params_are_untyped(params)) return values_of(params);
    const rpg_params *own = get(params);
    VALUE values = rb_ary_dup(own->values);
    for (long place = 0; place < RARRAY_LEN(values); place++) {
        if (!rpg_param_is_untyped(params, place)) continue;
        uint32_t type = 0;
        rpg_kind kind = kind_at(data, place, &type);
        if (kind == RPG_JSON_KIND && has(own->jsons, place)) {
            rb_ary_store(values, place, rb_hash_lookup(own->jsons, LONG2FIX(place)));
        } else if (is_noted(own, place)) {
            rb_ary_store(values, place, typed(RARRAY_AREF(values, place), place, kind == RPG_BYTEA_KIND, type));
        }
    }
    RB_GC_GUARD(params);
    return values;
}

/* --- writing --- */

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

/* What is plain is the same in either format. */
static bool is_bytes(VALUE value) { return RB_TYPE_P(value, T_STRING) && rpg_is_binary(value) && !rpg_is_plain(value); }

void rpg_put_params(rpg_out *out, VALUE typed) {
    long count = RARRAY_LEN(typed);
    rpg_put_u16(out, (uint16_t)count);
    for (long i = 0; i < count; i++) rpg_put_u16(out, is_bytes(RARRAY_AREF(typed, i)));
    rpg_put_u16(out, (uint16_t)count);
    for (long i = 0; i < count; i++) put_value(out, RARRAY_AREF(typed, i));
}

void rpg_init_params(void) {
    cParams = rb_define_class_under(rpg_mPostgres, "Params", rb_cObject);
    rb_undef_alloc_func(cParams);
    id_json_of = rb_intern("json_of");
    rb_global_variable(&cParams);
}
