#include "client/texts.h"
#include "client/calendar.h"
#include "client/float_text.h"

/* Dimensions of an array: MAXDIM in array.h of PostgreSQL. */
#define DEPTH_MAX 6

/* Of a String up to this length room is made for twice as much, instead of counting what has to be escaped. */
#define COUNTED_FROM 4096u

static ID id_encode, id_jd, id_bytes, id_to_a;
static VALUE cDate, cDateTime, cBytes, cSet;

/* --- writing --- */

rpg_text rpg_text_new(long place, rpg_bytes_are bytes_are) {
    rpg_text text = {.string = rb_utf8_str_new(NULL, 0), .place = place, .bytes_are = bytes_are};
    text.bytes = RSTRING_PTR(text.string);
    return text;
}

static void grow(rpg_text *text, size_t len) {
    size_t wanted = text->len + len, twice = text->capacity * 2, capacity = wanted > twice ? wanted : twice;
    if (capacity < 64) capacity = 64;
    rb_str_set_len(text->string, (long)text->len);
    rb_str_modify_expand(text->string, (long)(capacity - text->len));
    text->bytes = RSTRING_PTR(text->string);
    text->capacity = capacity;
}

static char *room(rpg_text *text, size_t len) {
    if (RB_UNLIKELY(text->capacity - text->len < len)) grow(text, len);
    return text->bytes + text->len;
}

VALUE rpg_text_end(rpg_text *text) {
    rb_str_set_len(text->string, (long)text->len);
    return text->string;
}

static void put(rpg_text *text, const char *bytes, size_t len) {
    memcpy(room(text, len), bytes, len);
    text->len += len;
}

static void put_char(rpg_text *text, char one) {
    *room(text, 1) = one;
    text->len++;
}

static void put_number(rpg_text *text, int64_t number) {
    char digits[24], *end = digits + sizeof(digits), *at = end;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + left % 10); while (left /= 10);
    if (number < 0) *--at = '-';
    put(text, at, (size_t)(end - at));
}

static void put_float(rpg_text *text, VALUE number) {
    size_t len = rpg_float_text(RFLOAT_VALUE(number), room(text, RPG_FLOAT_TEXT_MAX));
    text->len += len;
    if (len > 0) return;
    VALUE string = rb_obj_as_string(number);
    put(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

/* --- Strings --- */

bool rpg_is_utf8(VALUE string) {
    int index = rb_enc_get_index(string);
    return index == rb_utf8_encindex() || index == rb_ascii8bit_encindex() || index == rb_usascii_encindex();
}

bool rpg_is_binary(VALUE string) { return rb_enc_get_index(string) == rb_ascii8bit_encindex(); }

bool rpg_is_plain(VALUE string) {
    size_t len = (size_t)RSTRING_LEN(string);
    const char *bytes = RSTRING_PTR(string);
    return rb_enc_str_asciionly_p(string) && !memchr(bytes, '\\', len) && !memchr(bytes, 0, len);
}

static bool is_valid(VALUE string) {
    int range = 0;
    if (!rpg_is_binary(string)) return rb_enc_str_coderange(string) != ENC_CODERANGE_BROKEN;
    const char *begin = RSTRING_PTR(string), *end = RSTRING_END(string);
    return rb_str_coderange_scan_restartable(begin, end, rb_utf8_encoding(), &range) == end - begin && range != ENC_CODERANGE_BROKEN;
}

NORETURN(static void refuse(const char *what, long place, uint32_t type));
static void refuse(const char *what, long place, uint32_t type) {
    VALUE to_server = type ? rb_sprintf(", and text to the server (type %u)", type) : rb_utf8_str_new_cstr("");
    rb_raise(rpg_eUsage, "parameter %ld %s%" PRIsVALUE "; for bytea, bytes are Strings whose encoding is BINARY, or "
             "Ringspun::Postgres::Bytes", place, what, to_server);
}

void rpg_check_text(VALUE string, long place, uint32_t type) {
    if (!is_valid(string)) refuse("is no valid UTF-8", place, type);
    if (memchr(RSTRING_PTR(string), 0, (size_t)RSTRING_LEN(string))) refuse("has a NUL", place, type);
}

bool rpg_is_bytes(VALUE value) { return !RB_SPECIAL_CONST_P(value) && rb_obj_class(value) == cBytes; }

VALUE rpg_string_of_bytes(VALUE bytes) { return rb_funcall(bytes, id_bytes, 0); }

static size_t quoted_max(const char *bytes, size_t len) {
    size_t more = 2;
    if (len < COUNTED_FROM) return len * 2 + more;
    for (size_t i = 0; i < len; i++) more += bytes[i] == '"' || bytes[i] == '\\';
    return len + more;
}

static void put_quoted(rpg_text *text, const char *bytes, size_t len) {
    char *out = room(text, quoted_max(bytes, len));
    *out++ = '"';
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') *out++ = '\\';
        *out++ = bytes[i];
    }
    *out++ = '"';
    text->len = (size_t)(out - text->bytes);
}

/* The backslash is one of the array's as well. */
static void put_hex(rpg_text *text, VALUE string) {
    static const char digits[] = "0123456789abcdef";
    size_t len = (size_t)RSTRING_LEN(string);
    char *out = room(text, len * 2 + 5);
    memcpy(out, "\"\\\\x", 4);
    out += 4;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)RSTRING_PTR(string)[i];
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    *out++ = '"';
    text->len = (size_t)(out - text->bytes);
}

/* --- times --- */

static char *two_digits(char *out, int64_t number) {
    *out++ = (char)('0' + number / 10);
    *out++ = (char)('0' + number % 10);
    return out;
}

static void put_days(rpg_text *text, int64_t days, bool *before_christ) {
    rpg_date date = rpg_date_of(days);
    *before_christ = date.year <= 0;
    int64_t year = *before_christ ? 1 - date.year : date.year;
    for (int64_t least = 1000; least > year && least > 1; least /= 10) put_char(text, '0');
    put_number(text, year);
    char *out = room(text, 6);
    *out++ = '-';
    out = two_digits(out, date.month);
    *out++ = '-';
    two_digits(out, date.day);
    text->len += 6;
}

static void end_days(rpg_text *text, bool before_christ) {
    if (before_christ) put(text, " BC", 3);
}

/* In UTC, and without what is less than a microsecond. */
static void put_time(rpg_text *text, VALUE time) {
    struct timespec at = rb_time_timespec(time);
    int64_t days = at.tv_sec / RPG_DAY_SECONDS, seconds = at.tv_sec % RPG_DAY_SECONDS, us = at.tv_nsec / 1000;
    bool before_christ;
    if (seconds < 0) {
        seconds += RPG_DAY_SECONDS;
        days--;
    }
    put_days(text, days, &before_christ);
    char *begin = room(text, 19), *out = begin;
    *out++ = ' ';
    out = two_digits(out, seconds / 3600);
    *out++ = ':';
    out = two_digits(out, seconds / 60 % 60);
    *out++ = ':';
    out = two_digits(out, seconds % 60);
    *out++ = '.';
    out = two_digits(two_digits(two_digits(out, us / 10000), us / 100 % 100), us % 100);
    memcpy(out, "+00", 3);
    text->len += (size_t)(out + 3 - begin);
    end_days(text, before_christ);
}

/* In the calendar of the server, whatever calendar the Date is in. */
static void put_date(rpg_text *text, VALUE date) {
    VALUE day = rb_funcall(date, id_jd, 0);
    bool before_christ;
    if (!FIXNUM_P(day)) rb_raise(rpg_eUsage, "parameter %ld is a Date that is too far away for Postgres", text->place);
    put_days(text, FIX2LONG(day) - RPG_EPOCH_JD, &before_christ);
    end_days(text, before_christ);
}

/* --- arrays --- */

VALUE rpg_elements_of(VALUE value) {
    if (RB_TYPE_P(value, T_ARRAY)) return value;
    if (RB_SPECIAL_CONST_P(value) || !RTEST(rb_obj_is_kind_of(value, cSet))) return Qnil;
    VALUE elements = rb_funcall(value, id_to_a, 0);
    Check_Type(elements, T_ARRAY);
    return elements;
}

static void put_array(rpg_text *text, VALUE array, int depth);

static void put_string_element(rpg_text *text, VALUE string) {
    if (!rpg_is_utf8(string)) string = rb_funcall(rpg_mPostgres, id_encode, 2, string, LONG2FIX(text->place));
    if (text->bytes_are == RPG_BYTES_ARE_BYTEA && rpg_is_binary(string) && !rpg_is_plain(string)) {
        put_hex(text, string);
        return;
    }
    rpg_check_text(string, text->place, 0);
    put_quoted(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

static void put_other_element(rpg_text *text, VALUE value) {
    rpg_text other = rpg_text_new(text->place, text->bytes_are);
    rpg_put_object(&other, value);
    put_quoted(text, other.bytes, other.len);
    RB_GC_GUARD(other.string);
}

static void put_element(rpg_text *text, VALUE value, int depth) {
    VALUE elements;
    if (FIXNUM_P(value)) put_number(text, FIX2LONG(value));
    else if (NIL_P(value)) put(text, "NULL", 4);
    else if (value == Qtrue || value == Qfalse) put_char(text, value == Qtrue ? 't' : 'f');
    else if (RB_TYPE_P(value, T_STRING)) put_string_element(text, value);
    else if (RB_FLOAT_TYPE_P(value)) put_float(text, value);
    else if (!NIL_P(elements = rpg_elements_of(value))) put_array(text, elements, depth + 1);
    else if (rpg_is_bytes(value)) put_hex(text, rpg_string_of_bytes(value));
    else put_other_element(text, value);
}

static void check_depth(int depth, long place) {
    if (depth > DEPTH_MAX) rb_raise(rpg_eUsage, "parameter %ld has more than six Arrays inside each other, which Postgres does not take", place);
}

static void look_in(VALUE array, long place, rpg_kinds *found, int depth) {
    check_depth(depth, place);
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        VALUE value = RARRAY_AREF(array, i), elements;
        if (RB_SPECIAL_CONST_P(value)) continue;
        if (RB_TYPE_P(value, T_STRING)) found->untyped |= rpg_is_binary(value) && !rpg_is_plain(value);
        else if (!NIL_P(elements = rpg_elements_of(value))) look_in(elements, place, found, depth + 1);
        else found->bytes |= rpg_is_bytes(value);
    }
}

void rpg_look_for_bytes(VALUE array, long place, rpg_kinds *found) { look_in(array, place, found, 1); }

static void put_array(rpg_text *text, VALUE array, int depth) {
    check_depth(depth, text->place);
    put_char(text, '{');
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        if (i > 0) put_char(text, ',');
        put_element(text, RARRAY_AREF(array, i), depth);
    }
    put_char(text, '}');
}

/* --- any object --- */

static void put_string(rpg_text *text, VALUE string) {
    rpg_check_text(string, text->place, 0);
    put(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

/* What Ruby code makes of it is a String, a Time or a Date. */
static void put_encoded(rpg_text *text, VALUE value) {
    VALUE encoded = rb_funcall(rpg_mPostgres, id_encode, 2, value, LONG2FIX(text->place));
    if (RB_TYPE_P(encoded, T_STRING)) put_string(text, encoded);
    else put_time(text, encoded);
}

static bool is_date(VALUE value) { return RTEST(rb_obj_is_kind_of(value, cDate)) && !RTEST(rb_obj_is_kind_of(value, cDateTime)); }

void rpg_put_object(rpg_text *text, VALUE value) {
    VALUE elements;
    if (FIXNUM_P(value)) put_number(text, FIX2LONG(value));
    else if (value == Qtrue || value == Qfalse) put_char(text, value == Qtrue ? 't' : 'f');
    else if (RB_FLOAT_TYPE_P(value)) put_float(text, value);
    else if (RB_TYPE_P(value, T_STRING) && rpg_is_utf8(value)) put_string(text, value);
    else if (RB_TYPE_P(value, T_BIGNUM)) put_string(text, rb_big2str(value, 10));
    else if (!NIL_P(elements = rpg_elements_of(value))) put_array(text, elements, 1);
    else if (rb_obj_class(value) == rb_cTime) put_time(text, value);
    else if (is_date(value)) put_date(text, value);
    else put_encoded(text, value);
}

void rpg_init_texts(void) {
    id_encode = rb_intern("encode");
    id_jd = rb_intern("jd");
    id_bytes = rb_intern("to_s");
    id_to_a = rb_intern("to_a");
    cDate = rb_path2class("Date");
    cDateTime = rb_path2class("DateTime");
    cSet = rb_path2class("Set");
    cBytes = rb_path2class("Ringspun::Postgres::Bytes");
    rb_global_variable(&cDate);
    rb_global_variable(&cDateTime);
    rb_global_variable(&cSet);
    rb_global_variable(&cBytes);
}
