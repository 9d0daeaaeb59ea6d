#include "client/postgres.h"

#include <math.h>
#include <ruby/util.h>

static ID id_call, id_jd, id_decimal, id_json, id_interval, id_interval_of, id_address;
static VALUE rpg_cDate, rpg_mValues, gregorian;

NORETURN(static void fail(const char *type, rpg_span value));
static void fail(const char *type, rpg_span value) {
    size_t shown = value.len < 64 ? value.len : 64;
    VALUE bytes = rb_str_inspect(rb_str_new((const char *)value.bytes, (long)shown));
    rb_raise(rpg_eProtocol, "no value of type %s, %" PRIuSIZE " bytes: %" PRIsVALUE, type, value.len, bytes);
}

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
    if (value.len != 1 || (value.bytes[0] != 't' && value.bytes[0] != 'f')) fail("bool", value);
    return value.bytes[0] == 't' ? Qtrue : Qfalse;
}

static VALUE bool_of_binary(rpg_span value) {
    if (value.len != 1) fail("bool", value);
    return value.bytes[0] ? Qtrue : Qfalse;
}

/* Up to 19 digits have room. */
static VALUE integer_of_text(rpg_span value) {
    const uint8_t *at = value.bytes, *end = at + value.len;
    bool negative = at < end && *at == '-';
    if (negative) at++;
    if (at == end || end - at > 19) fail("integer", value);
    uint64_t number = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') fail("integer", value);
        number = number * 10 + (uint64_t)(*at - '0');
    }
    if (number > (uint64_t)INT64_MAX + negative) fail("integer", value);
    return LL2NUM(negative ? (int64_t)(0 - number) : (int64_t)number);
}

static VALUE int2_of_binary(rpg_span value) {
    if (value.len != 2) fail("int2", value);
    return INT2FIX((int16_t)rpg_load_u16(value.bytes));
}

static VALUE int4_of_binary(rpg_span value) {
    if (value.len != 4) fail("int4", value);
    return INT2NUM((int32_t)rpg_load_u32(value.bytes));
}

static VALUE oid_of_binary(rpg_span value) {
    if (value.len != 4) fail("oid", value);
    return UINT2NUM(rpg_load_u32(value.bytes));
}

static VALUE int8_of_binary(rpg_span value) {
    if (value.len != 8) fail("int8", value);
    return LL2NUM((int64_t)rpg_load_u64(value.bytes));
}

static bool is(rpg_span value, const char *text) { return value.len == strlen(text) && memcmp(value.bytes, text, value.len) == 0; }

static VALUE float_of_text(rpg_span value) {
    char digits[64], *end;
    if (is(value, "NaN")) return rb_float_new(NAN);
    if (is(value, "Infinity")) return rb_float_new(INFINITY);
    if (is(value, "-Infinity")) return rb_float_new(-INFINITY);
    if (value.len == 0 || value.len >= sizeof(digits)) fail("float", value);
    memcpy(digits, value.bytes, value.len);
    digits[value.len] = '\0';
    double number = ruby_strtod(digits, &end);
    if (end != digits + value.len) fail("float", value);
    return rb_float_new(number);
}

static VALUE float8_of_binary(rpg_span value) {
    union { uint64_t bits; double number; } as;
    if (value.len != 8) fail("float8", value);
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
static VALUE bytes_of_text(rpg_span value) {
    if (value.len < 2 || value.len % 2 || value.bytes[0] != '\\' || value.bytes[1] != 'x') fail("bytea", value);
    VALUE bytes = rb_str_new(NULL, (long)(value.len / 2 - 1));
    char *out = RSTRING_PTR(bytes);
    for (size_t at = 2; at < value.len; at += 2) {
        int high = digit_of(value.bytes[at]), low = digit_of(value.bytes[at + 1]);
        if (high < 0 || low < 0) fail("bytea", value);
        *out++ = (char)(high << 4 | low);
    }
    return bytes;
}

static VALUE uuid_of_binary(rpg_span value) {
    static const char digits[] = "0123456789abcdef";
    if (value.len != 16) fail("uuid", value);
    char text[36], *out = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
        *out++ = digits[value.bytes[i] >> 4];
        *out++ = digits[value.bytes[i] & 15];
    }
    return rb_utf8_str_new(text, sizeof(text));
}

/* --- times --- */

#define DAY_US 86400000000
#define EPOCH_DAYS 10957        /* from 1970-01-01 to 2000-01-01, from which the server counts */
#define EPOCH_JD 2440588        /* of 1970-01-01 */

static VALUE infinite(bool negative) { return rb_float_new(negative ? -INFINITY : INFINITY); }

/* Microseconds since 1970. */
static VALUE time_of_us(int64_t us) {
    int64_t seconds = us / 1000000, rest = us % 1000000;
    if (rest < 0) {
        rest += 1000000;
        seconds--;
    }
    struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)rest * 1000};
    return rb_time_timespec_new(&time, INT_MAX - 1); /* UTC */
}

/* In one calendar for all times, as the server has it. */
static VALUE date_of_days(int64_t days) { return rb_funcall(rpg_cDate, id_jd, 2, LL2NUM(days + EPOCH_JD), gregorian); }

static VALUE time_of_binary(rpg_span value) {
    if (value.len != 8) fail("timestamp", value);
    int64_t us = (int64_t)rpg_load_u64(value.bytes);
    if (us == INT64_MAX || us == INT64_MIN) return infinite(us < 0);
    return time_of_us(us + EPOCH_DAYS * DAY_US);
}

static VALUE date_of_binary(rpg_span value) {
    if (value.len != 4) fail("date", value);
    int32_t days = (int32_t)rpg_load_u32(value.bytes);
    if (days == INT32_MAX || days == INT32_MIN) return infinite(days < 0);
    return date_of_days((int64_t)days + EPOCH_DAYS);
}

/* What is left of a text. */
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
} scanner;

static bool skip(scanner *s, char byte) {
    if (s->at == s->end || *s->at != (uint8_t)byte) return false;
    s->at++;
    return true;
}

static void must_skip(scanner *s, char byte) { s->bad |= !skip(s, byte); }

static int64_t number(scanner *s, int digits_min, int digits_max) {
    int64_t value = 0;
    int digits = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9' && digits < digits_max; digits++) value = value * 10 + (*s->at++ - '0');
    s->bad |= digits < digits_min;
    return value;
}

/* Days since 1970, of the proleptic Gregorian calendar: http://howardhinnant.github.io/date_algorithms.html#days_from_civil */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

typedef struct { int64_t year, month, day; } civil;

static civil scan_date(scanner *s) {
    civil date;
    date.year = number(s, 4, 7);
    must_skip(s, '-');
    date.month = number(s, 2, 2);
    must_skip(s, '-');
    date.day = number(s, 2, 2);
    return date;
}

/* The year before 1 is 1 BC. */
static int64_t end_date(scanner *s, civil date) {
    static const uint8_t bc[] = " BC";
    if (s->end - s->at == 3 && memcmp(s->at, bc, 3) == 0) {
        date.year = 1 - date.year;
        s->at += 3;
    }
    s->bad |= s->at != s->end || date.month < 1 || date.month > 12 || date.day < 1 || date.day > 31;
    return days_of(date.year, date.month, date.day);
}

static int64_t scan_fraction(scanner *s) {
    if (!skip(s, '.')) return 0;
    const uint8_t *begin = s->at;
    int64_t us = number(s, 1, 6);
    for (long digits = s->at - begin; digits < 6; digits++) us *= 10;
    return us;
}

static int64_t scan_clock(scanner *s) {
    int64_t hours = number(s, 2, 2);
    must_skip(s, ':');
    int64_t minutes = number(s, 2, 2);
    must_skip(s, ':');
    int64_t seconds = number(s, 2, 2);
    return ((hours * 60 + minutes) * 60 + seconds) * 1000000 + scan_fraction(s);
}

/* +hh, +hh:mm or +hh:mm:ss; none is UTC. */
static int64_t scan_zone(scanner *s) {
    bool east = skip(s, '+');
    if (!east && !skip(s, '-')) return 0;
    int64_t seconds = number(s, 2, 2) * 3600;
    if (skip(s, ':')) seconds += number(s, 2, 2) * 60;
    if (skip(s, ':')) seconds += number(s, 2, 2);
    return (east ? seconds : -seconds) * 1000000;
}

static bool is_infinite(rpg_span value) { return is(value, "infinity") || is(value, "-infinity"); }

static VALUE time_of_text(rpg_span value) {
    if (is_infinite(value)) return infinite(value.bytes[0] == '-');
    scanner s = {value.bytes, value.bytes + value.len, false};
    civil date = scan_date(&s);
    must_skip(&s, ' ');
    int64_t us = scan_clock(&s);
    us -= scan_zone(&s);
    int64_t days = end_date(&s, date);
    if (s.bad) fail("timestamp", value);
    return time_of_us(days * DAY_US + us);
}

static VALUE date_of_text(rpg_span value) {
    if (is_infinite(value)) return infinite(value.bytes[0] == '-');
    scanner s = {value.bytes, value.bytes + value.len, false};
    int64_t days = end_date(&s, scan_date(&s));
    if (s.bad) fail("date", value);
    return date_of_days(days);
}

/* --- what Ruby makes --- */

static VALUE decimal_of_text(rpg_span value) { return made_by(id_decimal, value); }
static VALUE json_of_text(rpg_span value) { return made_by(id_json, value); }
static VALUE interval_of_text(rpg_span value) { return made_by(id_interval, value); }
static VALUE address_of_text(rpg_span value) { return made_by(id_address, value); }

static VALUE interval_of_binary(rpg_span value) {
    if (value.len != 16) fail("interval", value);
    int64_t us = (int64_t)rpg_load_u64(value.bytes);
    int32_t days = (int32_t)rpg_load_u32(value.bytes + 8), months = (int32_t)rpg_load_u32(value.bytes + 12);
    return rb_funcall(rpg_mValues, id_interval_of, 3, INT2NUM(months), INT2NUM(days), LL2NUM(us));
}

/* --- the table --- */

static const rpg_type types[] = {
    {16, 0, bool_of_text, bool_of_binary, 0, NULL},
    {17, 0, bytes_of_text, bytes_of_binary, 0, NULL},
    {20, 0, integer_of_text, int8_of_binary, 0, NULL},
    {21, 0, integer_of_text, int2_of_binary, 0, NULL},
    {23, 0, integer_of_text, int4_of_binary, 0, NULL},
    {25, 0, text_of, text_of, 0, NULL},
    {26, 0, integer_of_text, oid_of_binary, 0, NULL},
    {114, 0, json_of_text, NULL, 0, NULL},
    {199, 114, NULL, NULL, 0, NULL},
    {650, 0, address_of_text, NULL, 0, NULL},
    {651, 650, NULL, NULL, 0, NULL},
    {700, 0, float_of_text, NULL, 0, NULL}, /* 1.1 is 1.1, and not the double that is nearest to the float */
    {701, 0, float_of_text, float8_of_binary, 0, NULL},
    {869, 0, address_of_text, NULL, 0, NULL},
    {1000, 16, NULL, NULL, 0, NULL},
    {1001, 17, NULL, NULL, 0, NULL},
    {1005, 21, NULL, NULL, 0, NULL},
    {1007, 23, NULL, NULL, 0, NULL},
    {1009, 25, NULL, NULL, 0, NULL},
    {1014, 1042, NULL, NULL, 0, NULL},
    {1015, 1043, NULL, NULL, 0, NULL},
    {1016, 20, NULL, NULL, 0, NULL},
    {1021, 700, NULL, NULL, 0, NULL},
    {1022, 701, NULL, NULL, 0, NULL},
    {1028, 26, NULL, NULL, 0, NULL},
    {1041, 869, NULL, NULL, 0, NULL},
    {1042, 0, text_of, text_of, 0, NULL},
    {1043, 0, text_of, text_of, 0, NULL},
    {1082, 0, date_of_text, date_of_binary, 0, NULL},
    {1114, 0, time_of_text, time_of_binary, 0, NULL},
    {1115, 1114, NULL, NULL, 0, NULL},
    {1182, 1082, NULL, NULL, 0, NULL},
    {1184, 0, time_of_text, time_of_binary, 0, NULL},
    {1185, 1184, NULL, NULL, 0, NULL},
    {1186, 0, interval_of_text, interval_of_binary, 0, NULL},
    {1187, 1186, NULL, NULL, 0, NULL},
    {1231, 1700, NULL, NULL, 0, NULL},
    {1700, 0, decimal_of_text, NULL, 0, NULL},
    {2950, 0, text_of, uuid_of_binary, 0, NULL},
    {2951, 2950, NULL, NULL, 0, NULL},
    {3802, 0, json_of_text, NULL, 0, NULL},
    {3807, 3802, NULL, NULL, 0, NULL},
};
static const rpg_type unknown = {0, 0, text_of, NULL, 0, NULL};

const rpg_type *rpg_type_of(uint32_t oid) {
    size_t low = 0, high = sizeof(types) / sizeof(*types);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (types[middle].oid == oid) return &types[middle];
        if (types[middle].oid < oid) low = middle + 1;
        else high = middle;
    }
    return &unknown;
}

uint32_t rpg_array_of(uint32_t oid) {
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if (types[i].element == oid) return types[i].oid;
    }
    return 0;
}

/* --- arrays --- */

#define DEPTH_MAX 6             /* dimensions of an array: MAXDIM in array.h of PostgreSQL */

static VALUE element_of(scanner *s, const rpg_type *element, rpg_span whole, VALUE scratch) {
    rb_str_set_len(scratch, 0);
    bool quoted = skip(s, '"');
    const uint8_t *begin = s->at;
    while (s->at < s->end && (quoted ? *s->at != '"' : *s->at != ',' && *s->at != '}')) {
        if (*s->at == '\\' && s->at + 1 < s->end) s->at++;
        rb_str_cat(scratch, (const char *)s->at++, 1);
    }
    if (quoted) must_skip(s, '"');
    if (s->bad) fail("array", whole);
    rpg_span value = {(const uint8_t *)RSTRING_PTR(scratch), (size_t)RSTRING_LEN(scratch)};
    if (!quoted && s->at - begin == 4 && is(value, "NULL")) return Qnil;
    return rpg_decode(element, false, value);
}

static VALUE array_at(scanner *s, const rpg_type *element, rpg_span whole, VALUE scratch, int depth) {
    VALUE array = rb_ary_new();
    must_skip(s, '{');
    if (s->bad || depth > DEPTH_MAX) fail("array", whole);
    if (skip(s, '}')) return array;
    do {
        bool nested = s->at < s->end && *s->at == '{';
        rb_ary_push(array, nested ? array_at(s, element, whole, scratch, depth + 1) : element_of(s, element, whole, scratch));
    } while (skip(s, ','));
    must_skip(s, '}');
    if (s->bad) fail("array", whole);
    return array;
}

/* Where an array begins with another index than 1, its bounds come first: [0:1]={a,b}. */
static VALUE array_of_text(const rpg_type *element, rpg_span value) {
    scanner s = {value.bytes, value.bytes + value.len, false};
    const uint8_t *equals = value.len > 0 && value.bytes[0] == '[' ? memchr(value.bytes, '=', value.len) : NULL;
    if (equals) s.at = equals + 1;
    VALUE scratch = rb_str_buf_new(64), array = array_at(&s, element, value, scratch, 1);
    if (s.at != s.end) fail("array", value);
    RB_GC_GUARD(scratch);
    return array;
}

static VALUE elements_of(rpg_reader *reader, const rpg_type *element, const uint32_t *lengths, int depth, rpg_span whole) {
    uint32_t len = lengths[0];
    VALUE array = rb_ary_new_capa(len);
    for (uint32_t i = 0; i < len; i++) {
        rpg_span value;
        if (depth > 1) rb_ary_push(array, elements_of(reader, element, lengths + 1, depth - 1, whole));
        else if (!rpg_read_value(reader, &value)) fail("array", whole);
        else rb_ary_push(array, value.bytes ? element->binary(value) : Qnil);
    }
    return array;
}

static VALUE array_of_binary(const rpg_type *element, rpg_span value) {
    rpg_reader reader = rpg_reader_over(value.bytes, value.len);
    uint32_t depth = rpg_read_u32(&reader), lengths[DEPTH_MAX];
    rpg_read_u32(&reader); /* whether there is a NULL */
    if (rpg_read_u32(&reader) != element->oid || depth > DEPTH_MAX) fail("array", value);
    for (uint32_t i = 0; i < depth; i++) {
        lengths[i] = rpg_read_u32(&reader);
        rpg_read_u32(&reader); /* its first index */
        if (lengths[i] == 0 || lengths[i] > value.len / 4) fail("array", value); /* each element has a length of 4 bytes */
    }
    VALUE array = depth == 0 ? rb_ary_new() : elements_of(&reader, element, lengths, (int)depth, value);
    if (!rpg_reader_is_done(&reader)) fail("array", value);
    return array;
}

static const rpg_type *of_what(const rpg_type *array) { return array->decoded ? array->decoded : rpg_type_of(array->element); }

bool rpg_type_is_binary(const rpg_type *type) { return (type->element ? of_what(type) : type)->binary != NULL; }

static VALUE decode_array(const rpg_type *type, bool binary, rpg_span value) {
    const rpg_type *element = of_what(type);
    return binary && element->binary ? array_of_binary(element, value) : array_of_text(element, value);
}

VALUE rpg_decode(const rpg_type *type, bool binary, rpg_span value) {
    VALUE (*decode)(rpg_span value) = binary && type->binary ? type->binary : type->text;
    if (RB_LIKELY(decode != NULL)) return decode(value);
    return type->decoder ? rb_funcall(type->decoder, id_call, 1, utf8(value)) : decode_array(type, binary, value);
}

void rpg_init_types(void) {
    utf8_index = rb_utf8_encindex();
    id_call = rb_intern("call");
    id_jd = rb_intern("jd");
    id_decimal = rb_intern("decimal");
    id_json = rb_intern("json");
    id_interval = rb_intern("interval");
    id_interval_of = rb_intern("interval_of");
    id_address = rb_intern("address");
    rpg_cDate = rb_path2class("Date");
    rpg_mValues = rb_path2class("Ringspun::Postgres::Values");
    gregorian = rb_const_get(rpg_cDate, rb_intern("GREGORIAN"));
    rb_global_variable(&rpg_cDate);
    rb_global_variable(&gregorian);
    rb_global_variable(&rpg_mValues);
}
