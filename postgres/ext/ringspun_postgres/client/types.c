#include "client/types.h"
#include "client/scanner.h"
#include "client/times.h"
#include "client/wrong_value.h"

#include <math.h>
#include <ruby/util.h>

static ID id_call, id_decimal, id_json, id_interval, id_interval_of, id_address;
static VALUE rpg_mValues;

static int utf8_index;

/* As rb_utf8_str_new, which first looks at what encoding the new String has. That is a fifth of what a short one costs. */
static VALUE utf8(rpg_span value) {
    VALUE string = rb_str_new((const char *)value.bytes, (long)value.len);
    RB_ENCODING_SET_INLINED(string, utf8_index);
    return string;
}

/* A value of those types is made by Ruby code: Ringspun::Postgres::Values. */
static VALUE made_by(ID method, rpg_span value) { return rb_funcall(rpg_mValues, method, 1, utf8(value)); }

/* --- numbers --- */

static VALUE bool_of_text(rpg_span value) {
    if (value.len != 1 || (value.bytes[0] != 't' && value.bytes[0] != 'f')) rpg_wrong_value("bool", value);
    return value.bytes[0] == 't' ? Qtrue : Qfalse;
}

static VALUE bool_of_binary(rpg_span value) {
    if (value.len != 1) rpg_wrong_value("bool", value);
    return value.bytes[0] ? Qtrue : Qfalse;
}

/* Up to 19 digits have room. */
static VALUE integer_of_text(rpg_span value) {
    const uint8_t *at = value.bytes, *end = at + value.len;
    bool negative = at < end && *at == '-';
    if (negative) at++;
    if (at == end || end - at > 19) rpg_wrong_value("integer", value);
    uint64_t number = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') rpg_wrong_value("integer", value);
        number = number * 10 + (uint64_t)(*at - '0');
    }
    if (number > (uint64_t)INT64_MAX + negative) rpg_wrong_value("integer", value);
    return LL2NUM(negative ? (int64_t)(0 - number) : (int64_t)number);
}

static VALUE int2_of_binary(rpg_span value) {
    if (value.len != 2) rpg_wrong_value("int2", value);
    return INT2FIX((int16_t)rpg_load_u16(value.bytes));
}

static VALUE int4_of_binary(rpg_span value) {
    if (value.len != 4) rpg_wrong_value("int4", value);
    return INT2NUM((int32_t)rpg_load_u32(value.bytes));
}

static VALUE oid_of_binary(rpg_span value) {
    if (value.len != 4) rpg_wrong_value("oid", value);
    return UINT2NUM(rpg_load_u32(value.bytes));
}

static VALUE int8_of_binary(rpg_span value) {
    if (value.len != 8) rpg_wrong_value("int8", value);
    return LL2NUM((int64_t)rpg_load_u64(value.bytes));
}

static VALUE float_of_text(rpg_span value) {
    char digits[64], *end;
    if (rpg_is_text(value, "NaN")) return rb_float_new(NAN);
    if (rpg_is_text(value, "Infinity")) return rb_float_new(INFINITY);
    if (rpg_is_text(value, "-Infinity")) return rb_float_new(-INFINITY);
    if (value.len == 0 || value.len >= sizeof(digits)) rpg_wrong_value("float", value);
    memcpy(digits, value.bytes, value.len);
    digits[value.len] = '\0';
    double number = ruby_strtod(digits, &end);
    if (end != digits + value.len) rpg_wrong_value("float", value);
    return rb_float_new(number);
}

static VALUE float8_of_binary(rpg_span value) {
    union { uint64_t bits; double number; } as;
    if (value.len != 8) rpg_wrong_value("float8", value);
    as.bits = rpg_load_u64(value.bytes);
    return rb_float_new(as.number);
}

/* --- texts and bytes --- */

static VALUE text_of(rpg_span value) { return utf8(value); }

static VALUE bytes_of_binary(rpg_span value) { return rb_str_new((const char *)value.bytes, (long)value.len); }

static int digit_of(uint8_t byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    return -1;
}

/* \x and two digits a byte, as bytea_output has it by default. */
static VALUE bytes_of_digits(rpg_span value) {
    if (value.len % 2) rpg_wrong_value("bytea", value);
    VALUE bytes = rb_str_new(NULL, (long)(value.len / 2 - 1));
    char *out = RSTRING_PTR(bytes);
    for (size_t at = 2; at < value.len; at += 2) {
        int high = digit_of(value.bytes[at]), low = digit_of(value.bytes[at + 1]);
        if (high < 0 || low < 0) rpg_wrong_value("bytea", value);
        *out++ = (char)(high << 4 | low);
    }
    return bytes;
}

static int octal_of(const uint8_t *digits) {
    int number = 0;
    for (int i = 0; i < 3; i++) {
        if (digits[i] < '0' || digits[i] > '7') return -1;
        number = number * 8 + (digits[i] - '0');
    }
    return number <= 255 ? number : -1;
}

/* Under bytea_output=escape: bytes that can be printed are themselves, a backslash is two, and others are one and three octal digits.
 * A backslash before an x never comes so. */
static VALUE bytes_of_escapes(rpg_span value) {
    VALUE bytes = rb_str_new(NULL, (long)value.len);
    const uint8_t *at = value.bytes, *end = at + value.len;
    char *begin = RSTRING_PTR(bytes), *out = begin;
    while (at < end) {
        int byte = *at++;
        if (byte == '\\') {
            bool twice = at < end && *at == '\\';
            byte = twice ? '\\' : end - at < 3 ? -1 : octal_of(at);
            if (byte < 0) rpg_wrong_value("bytea", value);
            at += twice ? 1 : 3;
        }
        *out++ = (char)byte;
    }
    rb_str_set_len(bytes, out - begin);
    return bytes;
}

static VALUE bytes_of_text(rpg_span value) {
    bool digits = value.len >= 2 && value.bytes[0] == '\\' && value.bytes[1] == 'x';
    return digits ? bytes_of_digits(value) : bytes_of_escapes(value);
}

static VALUE uuid_of_binary(rpg_span value) {
    static const char digits[] = "0123456789abcdef";
    if (value.len != 16) rpg_wrong_value("uuid", value);
    char text[36], *out = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
        *out++ = digits[value.bytes[i] >> 4];
        *out++ = digits[value.bytes[i] & 15];
    }
    return rb_utf8_str_new(text, sizeof(text));
}

/* --- what Ruby makes --- */

static VALUE decimal_of_text(rpg_span value) { return made_by(id_decimal, value); }
static VALUE json_of_text(rpg_span value) { return made_by(id_json, value); }

static VALUE interval_of_text(rpg_span value) {
    return rpg_is_infinite(value) ? rpg_infinite(value.bytes[0] == '-') : made_by(id_interval, value);
}
static VALUE address_of_text(rpg_span value) { return made_by(id_address, value); }

static VALUE interval_of_binary(rpg_span value) {
    if (value.len != 16) rpg_wrong_value("interval", value);
    int64_t us = (int64_t)rpg_load_u64(value.bytes);
    int32_t days = (int32_t)rpg_load_u32(value.bytes + 8), months = (int32_t)rpg_load_u32(value.bytes + 12);
    if (us == INT64_MAX && days == INT32_MAX && months == INT32_MAX) return rpg_infinite(false);
    if (us == INT64_MIN && days == INT32_MIN && months == INT32_MIN) return rpg_infinite(true);
    return rb_funcall(rpg_mValues, id_interval_of, 3, INT2NUM(months), INT2NUM(days), LL2NUM(us));
}

/* --- the table --- */

#define VALUES_OF(its_oid, of, from_text, from_binary) {.oid = (its_oid), .element = (of), .text = (from_text), .binary = (from_binary)}
static const rpg_type types[] = {
    VALUES_OF(16, 0, bool_of_text, bool_of_binary),
    VALUES_OF(17, 0, bytes_of_text, bytes_of_binary),
    VALUES_OF(20, 0, integer_of_text, int8_of_binary),
    VALUES_OF(21, 0, integer_of_text, int2_of_binary),
    VALUES_OF(23, 0, integer_of_text, int4_of_binary),
    VALUES_OF(25, 0, text_of, text_of),
    VALUES_OF(26, 0, integer_of_text, oid_of_binary),
    VALUES_OF(114, 0, json_of_text, NULL),
    VALUES_OF(199, 114, NULL, NULL),
    VALUES_OF(650, 0, address_of_text, NULL),
    VALUES_OF(651, 650, NULL, NULL),
    VALUES_OF(700, 0, float_of_text, NULL), /* 1.1 is 1.1, and not the double that is nearest to the float */
    VALUES_OF(701, 0, float_of_text, float8_of_binary),
    VALUES_OF(869, 0, address_of_text, NULL),
    VALUES_OF(1000, 16, NULL, NULL),
    VALUES_OF(1001, 17, NULL, NULL),
    VALUES_OF(1005, 21, NULL, NULL),
    VALUES_OF(1007, 23, NULL, NULL),
    VALUES_OF(1009, 25, NULL, NULL),
    VALUES_OF(1014, 1042, NULL, NULL),
    VALUES_OF(1015, 1043, NULL, NULL),
    VALUES_OF(1016, 20, NULL, NULL),
    VALUES_OF(1021, 700, NULL, NULL),
    VALUES_OF(1022, 701, NULL, NULL),
    VALUES_OF(1028, 26, NULL, NULL),
    VALUES_OF(1041, 869, NULL, NULL),
    VALUES_OF(1042, 0, text_of, text_of),
    VALUES_OF(1043, 0, text_of, text_of),
    VALUES_OF(1082, 0, rpg_date_of_text, rpg_date_of_binary),
    VALUES_OF(1114, 0, rpg_time_of_text, rpg_time_of_binary),
    VALUES_OF(1115, 1114, NULL, NULL),
    VALUES_OF(1182, 1082, NULL, NULL),
    VALUES_OF(1184, 0, rpg_time_of_text, rpg_time_of_binary),
    VALUES_OF(1185, 1184, NULL, NULL),
    VALUES_OF(1186, 0, interval_of_text, interval_of_binary),
    VALUES_OF(1187, 1186, NULL, NULL),
    VALUES_OF(1231, 1700, NULL, NULL),
    VALUES_OF(1700, 0, decimal_of_text, NULL),
    VALUES_OF(2950, 0, text_of, uuid_of_binary),
    VALUES_OF(2951, 2950, NULL, NULL),
    VALUES_OF(3802, 0, json_of_text, NULL),
    VALUES_OF(3807, 3802, NULL, NULL),
};
/* Arrays of what is a String in Ruby. */
#define TEXTS(array, of) {.oid = (array), .element = (of)}
static const rpg_type text_arrays[] = {
    TEXTS(143, 142), TEXTS(210, 71), TEXTS(270, 75), TEXTS(271, 5069), TEXTS(272, 81), TEXTS(273, 83),
    TEXTS(629, 628), TEXTS(719, 718), TEXTS(775, 774), TEXTS(791, 790), TEXTS(1002, 18), TEXTS(1003, 19),
    TEXTS(1006, 22), TEXTS(1008, 24), TEXTS(1010, 27), TEXTS(1011, 28), TEXTS(1012, 29), TEXTS(1013, 30),
    TEXTS(1017, 600), TEXTS(1018, 601), TEXTS(1019, 602), {.oid = 1020, .element = 603, .delimiter = ';'},
    TEXTS(1027, 604), TEXTS(1034, 1033), TEXTS(1040, 829), TEXTS(1183, 1083), TEXTS(1263, 2275), TEXTS(1270, 1266),
    TEXTS(1561, 1560), TEXTS(1563, 1562), TEXTS(2201, 1790), TEXTS(2207, 2202), TEXTS(2208, 2203), TEXTS(2209, 2204),
    TEXTS(2210, 2205), TEXTS(2211, 2206), TEXTS(2287, 2249), TEXTS(2949, 2970), TEXTS(3221, 3220), TEXTS(3643, 3614),
    TEXTS(3644, 3642), TEXTS(3645, 3615), TEXTS(3735, 3734), TEXTS(3770, 3769), TEXTS(3905, 3904), TEXTS(3907, 3906),
    TEXTS(3909, 3908), TEXTS(3911, 3910), TEXTS(3913, 3912), TEXTS(3927, 3926), TEXTS(4073, 4072), TEXTS(4090, 4089),
    TEXTS(4097, 4096), TEXTS(4192, 4191), TEXTS(5039, 5038), TEXTS(6150, 4451), TEXTS(6151, 4532), TEXTS(6152, 4533),
    TEXTS(6153, 4534), TEXTS(6155, 4535), TEXTS(6157, 4536),
};
static const rpg_type unknown = {.text = text_of};

#define LEN_OF(table) (sizeof(table) / sizeof(*(table)))

/* The table is in the order of the OIDs. */
static const rpg_type *find(const rpg_type *table, size_t len, uint32_t oid) {
    size_t low = 0, high = len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].oid == oid) return &table[middle];
        if (table[middle].oid < oid) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

const rpg_type *rpg_type_of(uint32_t oid) {
    const rpg_type *found = find(types, LEN_OF(types), oid);
    if (!found) found = find(text_arrays, LEN_OF(text_arrays), oid);
    return found ? found : &unknown;
}

static uint32_t array_in(const rpg_type *table, size_t len, uint32_t element) {
    for (size_t i = 0; i < len; i++) {
        if (table[i].element == element) return table[i].oid;
    }
    return 0;
}

uint32_t rpg_array_of(uint32_t oid) {
    uint32_t array = array_in(types, LEN_OF(types), oid);
    return array ? array : array_in(text_arrays, LEN_OF(text_arrays), oid);
}

/* --- arrays --- */

#define DEPTH_MAX 6             /* dimensions of an array: MAXDIM in array.h of PostgreSQL */

/* An array that is being read. */
typedef struct {
    rpg_scanner s;
    const rpg_type *element;
    rpg_span whole;
    VALUE scratch;              /* String, for the text of an element */
    char delimiter;
} array_text;

static rpg_span element_text(array_text *a, bool quoted) {
    rpg_scanner *s = &a->s;
    rb_str_set_len(a->scratch, 0);
    while (s->at < s->end && (quoted ? *s->at != '"' : *s->at != (uint8_t)a->delimiter && *s->at != '}')) {
        if (*s->at == '\\' && s->at + 1 < s->end) s->at++;
        rb_str_cat(a->scratch, (const char *)s->at++, 1);
    }
    if (quoted) rpg_must_skip(s, '"');
    if (s->bad) rpg_wrong_value("array", a->whole);
    return (rpg_span){(const uint8_t *)RSTRING_PTR(a->scratch), (size_t)RSTRING_LEN(a->scratch)};
}

static VALUE element_of(array_text *a) {
    bool quoted = rpg_skip(&a->s, '"');
    const uint8_t *begin = a->s.at;
    rpg_span value = element_text(a, quoted);
    if (!quoted && a->s.at - begin == 4 && rpg_is_text(value, "NULL")) return Qnil;
    return rpg_decode(a->element, false, value);
}

static VALUE array_at(array_text *a, int depth) {
    rpg_scanner *s = &a->s;
    VALUE array = rb_ary_new();
    rpg_must_skip(s, '{');
    if (s->bad || depth > DEPTH_MAX) rpg_wrong_value("array", a->whole);
    if (rpg_skip(s, '}')) return array;
    do {
        bool nested = s->at < s->end && *s->at == '{';
        rb_ary_push(array, nested ? array_at(a, depth + 1) : element_of(a));
    } while (rpg_skip(s, a->delimiter));
    rpg_must_skip(s, '}');
    if (s->bad) rpg_wrong_value("array", a->whole);
    return array;
}

/* Where an array begins with another index than 1, its bounds come first: [0:1]={a,b}. */
static VALUE array_of_text(const rpg_type *type, const rpg_type *element, rpg_span value) {
    array_text a = {rpg_scanner_over(value), element, value, rb_str_buf_new(64), type->delimiter ? type->delimiter : ','};
    const uint8_t *equals = value.len > 0 && value.bytes[0] == '[' ? memchr(value.bytes, '=', value.len) : NULL;
    if (equals) a.s.at = equals + 1;
    VALUE array = array_at(&a, 1);
    if (a.s.at != a.s.end) rpg_wrong_value("array", value);
    RB_GC_GUARD(a.scratch);
    return array;
}

static VALUE elements_of(rpg_reader *reader, const rpg_type *element, const uint32_t *lengths, int depth, rpg_span whole) {
    uint32_t len = lengths[0];
    VALUE array = rb_ary_new_capa(len);
    for (uint32_t i = 0; i < len; i++) {
        rpg_span value;
        if (depth > 1) rb_ary_push(array, elements_of(reader, element, lengths + 1, depth - 1, whole));
        else if (!rpg_read_value(reader, &value)) rpg_wrong_value("array", whole);
        else rb_ary_push(array, value.bytes ? element->binary(value) : Qnil);
    }
    return array;
}

static VALUE array_of_binary(const rpg_type *element, rpg_span value) {
    rpg_reader reader = rpg_reader_over(value.bytes, value.len);
    uint32_t depth = rpg_read_u32(&reader), lengths[DEPTH_MAX];
    rpg_read_u32(&reader); /* whether there is a NULL */
    if (rpg_read_u32(&reader) != element->oid || depth > DEPTH_MAX) rpg_wrong_value("array", value);
    for (uint32_t i = 0; i < depth; i++) {
        lengths[i] = rpg_read_u32(&reader);
        rpg_read_u32(&reader); /* its first index */
        if (lengths[i] == 0 || lengths[i] > value.len / 4) rpg_wrong_value("array", value); /* each element has a length of 4 bytes */
    }
    VALUE array = depth == 0 ? rb_ary_new() : elements_of(&reader, element, lengths, (int)depth, value);
    if (!rpg_reader_is_done(&reader)) rpg_wrong_value("array", value);
    return array;
}

static const rpg_type *of_what(const rpg_type *array) { return array->decoded ? array->decoded : rpg_type_of(array->element); }

bool rpg_type_is_binary(const rpg_type *type) {
    return type->element ? !type->as_text && of_what(type)->binary != NULL : type->binary != NULL;
}

static VALUE decode_array(const rpg_type *type, bool binary, rpg_span value) {
    const rpg_type *element = of_what(type);
    return binary && rpg_type_is_binary(type) ? array_of_binary(element, value) : array_of_text(type, element, value);
}

VALUE rpg_decode(const rpg_type *type, bool binary, rpg_span value) {
    VALUE (*decode)(rpg_span value) = binary && type->binary ? type->binary : type->text;
    if (RB_LIKELY(decode != NULL)) return decode(value);
    return type->decoder ? rb_funcall(type->decoder, id_call, 1, utf8(value)) : decode_array(type, binary, value);
}

void rpg_init_types(void) {
    utf8_index = rb_utf8_encindex();
    id_call = rb_intern("call");
    id_decimal = rb_intern("decimal");
    id_json = rb_intern("json");
    id_interval = rb_intern("interval");
    id_interval_of = rb_intern("interval_of");
    id_address = rb_intern("address");
    rpg_mValues = rb_path2class("Ringspun::Postgres::Values");
    rb_global_variable(&rpg_mValues);
}
