#include "client/copy_text.h"
#include "client/calendar.h"

enum { BYTEA = 17, JSON = 114, JSONB = 3802, NUMBER_MAX = 24, TIME_MAX = 48 };

/* --- numbers and times --- */

static size_t digits_of(char *text, int64_t number) {
    char reversed[NUMBER_MAX];
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    size_t count = 0, len = 0;
    do reversed[count++] = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0) text[len++] = '-';
    while (count > 0) text[len++] = reversed[--count];
    return len;
}

static void put_padded(char **at, int64_t number, int digits) {
    for (int i = digits - 1; i >= 0; i--, number /= 10) (*at)[i] = (char)('0' + number % 10);
    *at += digits;
}

/* True: the year is one before Christ, and the text is to say so. */
static bool put_date(char **at, int64_t days) {
    rpg_date date = rpg_date_of(days);
    bool before_christ = date.year <= 0;
    int64_t year = before_christ ? 1 - date.year : date.year;
    put_padded(at, year, year > 99999 ? 6 : year > 9999 ? 5 : 4);
    *(*at)++ = '-';
    put_padded(at, date.month, 2);
    *(*at)++ = '-';
    put_padded(at, date.day, 2);
    return before_christ;
}

static size_t time_text(char *text, int64_t us) {
    char *at = text;
    int64_t seconds = us / 1000000, rest = us % 1000000;
    if (rest < 0) rest += 1000000, seconds--;
    int64_t days = seconds / 86400, of_day = seconds % 86400;
    if (of_day < 0) of_day += 86400, days--;
    bool before_christ = put_date(&at, days);
    *at++ = ' ';
    put_padded(&at, of_day / 3600, 2);
    *at++ = ':';
    put_padded(&at, of_day / 60 % 60, 2);
    *at++ = ':';
    put_padded(&at, of_day % 60, 2);
    *at++ = '.';
    put_padded(&at, rest, 6);
    memcpy(at, before_christ ? "+00 BC" : "+00", before_christ ? 6 : 3);
    return (size_t)(at - text) + (before_christ ? 6 : 3);
}

/* --- strings --- */

NORETURN(static void fail_text(const rpg_copy_rows *rows, const char *why));
static void fail_text(const rpg_copy_rows *rows, const char *why) { rpg_copy_fail(rows, rb_utf8_str_new_cstr(why)); }

/* Its bytes can be sent as they are; else Ruby code makes a String of it that has them. */
static VALUE as_utf8(const rpg_copy_rows *rows, VALUE string) {
    int index = rb_enc_get_index(string);
    if (index != rb_utf8_encindex() && index != rb_usascii_encindex()) string = rpg_copy_text(rows, string, false);
    if (rb_enc_str_coderange(string) == ENC_CODERANGE_BROKEN) fail_text(rows, "is no valid UTF-8; bytes are Strings whose encoding is BINARY");
    return string;
}

static bool is_utf8_all_the_same(VALUE string) {
    VALUE copy = rb_enc_str_new_static(RSTRING_PTR(string), RSTRING_LEN(string), rb_utf8_encoding());
    bool valid = rb_enc_str_coderange(copy) != ENC_CODERANGE_BROKEN;
    RB_GC_GUARD(string);
    return valid;
}

static VALUE hex_of(VALUE bytes) {
    static const char digits[] = "0123456789abcdef";
    long len = RSTRING_LEN(bytes);
    VALUE text = rb_str_new(NULL, 2 + 2 * len);
    char *out = RSTRING_PTR(text);
    *out++ = '\\';
    *out++ = 'x';
    for (long i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)RSTRING_PTR(bytes)[i];
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    return text;
}

/* What is in BINARY are the bytes of a bytea, and the text of any other type. Where the type is not known, text and bytea read
 * the same from most bytes, and what is no text can be meant for a bytea alone. */
static VALUE of_bytes(const rpg_copy_rows *rows, VALUE bytes, uint32_t type) {
    bool text = is_utf8_all_the_same(bytes) && !memchr(RSTRING_PTR(bytes), 0, (size_t)RSTRING_LEN(bytes));
    bool known = rows->layout && type != 0;
    if (type == BYTEA || (!known && !text)) return hex_of(bytes);
    if (!text) fail_text(rows, "is in BINARY, and no text in UTF-8 without NUL, as the column has it");
    if (!known && memchr(RSTRING_PTR(bytes), '\\', (size_t)RSTRING_LEN(bytes))) {
        fail_text(rows, "is in BINARY and has a backslash, which a text and a bytea read differently, and the type of the column is not "
                        "known; for a text, force_encoding(\"UTF-8\")");
    }
    return bytes;
}

static VALUE string_value(const rpg_copy_rows *rows, VALUE string, uint32_t type) {
    if (rb_enc_get_index(string) == rb_ascii8bit_encindex()) return of_bytes(rows, string, type);
    string = as_utf8(rows, string);
    if (memchr(RSTRING_PTR(string), 0, (size_t)RSTRING_LEN(string))) fail_text(rows, "has a NUL, which no text of Postgres has");
    return string;
}

/* --- arrays --- */

static void put_array(rpg_copy_rows *rows, rpg_out *out, VALUE array, uint32_t element, int depth);

static void put_quoted(rpg_out *out, VALUE text) {
    const char *bytes = RSTRING_PTR(text);
    rpg_put_u8(out, '"');
    for (long i = 0, len = RSTRING_LEN(text); i < len; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') rpg_put_u8(out, '\\');
        rpg_put_u8(out, (uint8_t)bytes[i]);
    }
    rpg_put_u8(out, '"');
    RB_GC_GUARD(text);
}

static void put_element(rpg_copy_rows *rows, rpg_out *out, VALUE value, uint32_t element, int depth) {
    char text[TIME_MAX];
    if (NIL_P(value)) rpg_put_bytes(out, "NULL", 4);
    else if (FIXNUM_P(value)) rpg_put_bytes(out, text, digits_of(text, FIX2LONG(value)));
    else if (RB_TYPE_P(value, T_ARRAY)) put_array(rows, out, value, element, depth + 1);
    else if (value == Qtrue || value == Qfalse) rpg_put_u8(out, value == Qtrue ? 't' : 'f');
    else put_quoted(out, RB_TYPE_P(value, T_STRING) ? string_value(rows, value, element) : rpg_copy_text(rows, value, false));
}

static void put_array(rpg_copy_rows *rows, rpg_out *out, VALUE array, uint32_t element, int depth) {
    if (depth > 6) fail_text(rows, "has more than 6 dimensions");
    rpg_put_u8(out, '{');
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        if (i > 0) rpg_put_u8(out, ',');
        put_element(rows, out, RARRAY_AREF(array, i), element, depth);
    }
    rpg_put_u8(out, '}');
}

typedef struct {
    rpg_copy_rows *rows;
    VALUE array;
    rpg_out out;
} array_text;

static VALUE write_array(VALUE argument) {
    array_text *a = (array_text *)argument;
    const rpg_copy_rows *rows = a->rows;
    uint32_t element = rpg_copy_type(rows) ? rows->layout->types[rows->place]->element : 0;
    put_array(a->rows, &a->out, a->array, element, 1);
    return rb_str_new((const char *)a->out.bytes, (long)a->out.len);
}

static VALUE free_array(VALUE argument) {
    rpg_out_free(&((array_text *)argument)->out);
    return Qnil;
}

static VALUE text_of_array(rpg_copy_rows *rows, VALUE array) {
    array_text a = {rows, array, {0}};
    return rb_ensure(write_array, (VALUE)&a, free_array, (VALUE)&a);
}

/* --- what a value is --- */

static bool is_json(uint32_t type) { return type == JSON || type == JSONB; }

/* Of a value that is no number. */
VALUE rpg_copy_utf8(rpg_copy_rows *rows, VALUE value) {
    uint32_t type = rpg_copy_type(rows);
    if (RB_TYPE_P(value, T_STRING)) return string_value(rows, value, type);
    if (is_json(type)) return rpg_copy_text(rows, value, true);
    if (RB_TYPE_P(value, T_ARRAY)) return text_of_array(rows, value);
    return rpg_copy_text(rows, value, false);
}

/* The text of one that has no special byte in it. 0: it is another one. */
static size_t plain_of(const rpg_copy_rows *rows, VALUE value, char *text) {
    if (FIXNUM_P(value)) return digits_of(text, FIX2LONG(value));
    if (value == Qtrue || value == Qfalse) {
        if (is_json(rpg_copy_type(rows))) return 0;
        text[0] = value == Qtrue ? 't' : 'f';
        return 1;
    }
    if (rb_obj_class(value) == rb_cTime && !is_json(rpg_copy_type(rows))) return time_text(text, rpg_copy_time(rows, value));
    return 0;
}

static bool is_null_text(const rpg_copy_format *format, rpg_span text) {
    return text.len == format->null_len && memcmp(text.bytes, format->null, text.len) == 0;
}

/* --- text --- */

static void put_special(rpg_out *out, uint8_t byte) {
    static const char letters[] = "btnvfr"; /* 8 to 13 */
    rpg_put_u8(out, '\\');
    rpg_put_u8(out, byte >= 8 && byte <= 13 ? (uint8_t)letters[byte - 8] : byte);
}

static void put_escaped(rpg_out *out, const rpg_copy_format *format, rpg_span text) {
    const uint8_t *at = text.bytes, *end = at + text.len;
    while (at < end) {
        const uint8_t *begin = at;
        while (at < end && !format->special[*at]) at++;
        rpg_put_bytes(out, begin, (size_t)(at - begin));
        if (at < end) put_special(out, *at++);
    }
}

/* A value that would be read as NULL: its first byte as its number. */
static void put_no_null(rpg_out *out, const rpg_copy_format *format, rpg_span text) {
    char first[5];
    if (text.len == 0) return; /* where an empty text is NULL there is no other way to write it: see check_empty */
    snprintf(first, sizeof(first), "\\%03o", text.bytes[0]);
    rpg_put_bytes(out, first, 4);
    put_escaped(out, format, (rpg_span){text.bytes + 1, text.len - 1});
}

/* Both formats: `put_bytes` writes a text that may need an escape or quotes. */
static inline void put_value(rpg_copy_rows *rows, VALUE value, void (*put_bytes)(rpg_copy_rows *, rpg_span)) {
    char plain[TIME_MAX];
    if (NIL_P(value)) {
        rpg_put_bytes(&rows->out, rows->format.null, rows->format.null_len);
        return;
    }
    size_t len = plain_of(rows, value, plain);
    if (len > 0 && rows->format.simple) {
        rpg_put_bytes(&rows->out, plain, len);
        return;
    }
    if (len > 0) {
        put_bytes(rows, (rpg_span){(const uint8_t *)plain, len});
        return;
    }
    VALUE text = rpg_copy_utf8(rows, value);
    put_bytes(rows, (rpg_span){(const uint8_t *)RSTRING_PTR(text), (size_t)RSTRING_LEN(text)});
    RB_GC_GUARD(text);
}

static void put_text_bytes(rpg_copy_rows *rows, rpg_span text) {
    const rpg_copy_format *format = &rows->format;
    if (text.len == 0 && format->null_len == 0) fail_text(rows, "is empty, which this COPY reads as NULL; leave NULL '' out");
    if (!is_null_text(format, text) || memchr(text.bytes, '\\', text.len)) put_escaped(&rows->out, format, text);
    else put_no_null(&rows->out, format, text);
}

void rpg_copy_put_text(rpg_copy_rows *rows, VALUE value) { put_value(rows, value, put_text_bytes); }

/* --- CSV --- */

static bool is_end_of_data(rpg_span text) { return text.len == 2 && memcmp(text.bytes, "\\.", 2) == 0; }

static bool needs_quotes(rpg_copy_rows *rows, rpg_span text) {
    bool needs = text.len == 0 || is_null_text(&rows->format, text) || is_end_of_data(text);
    for (size_t i = 0; i < text.len; i++) {
        needs |= rows->format.special[text.bytes[i]];
        rows->breaks |= text.bytes[i] == '\n' || text.bytes[i] == '\r';
    }
    return needs;
}

static void put_csv_bytes(rpg_copy_rows *rows, rpg_span text) {
    const rpg_copy_format *format = &rows->format;
    rpg_out *out = &rows->out;
    if (!needs_quotes(rows, text)) {
        rpg_put_bytes(out, text.bytes, text.len);
        return;
    }
    rpg_put_u8(out, format->quote);
    for (size_t i = 0; i < text.len; i++) {
        if (text.bytes[i] == format->quote || text.bytes[i] == format->escape) rpg_put_u8(out, format->escape);
        rpg_put_u8(out, text.bytes[i]);
    }
    rpg_put_u8(out, format->quote);
}

void rpg_copy_put_csv(rpg_copy_rows *rows, VALUE value) { put_value(rows, value, put_csv_bytes); }
