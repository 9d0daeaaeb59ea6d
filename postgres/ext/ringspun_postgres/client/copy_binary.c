#include "client/copy_binary.h"
#include "client/copy_text.h"

enum {
    BOOL = 16, BYTEA = 17, INT8 = 20, INT2 = 21, INT4 = 23, TEXT = 25, OID = 26, JSON = 114, FLOAT4 = 700, FLOAT8 = 701, BPCHAR = 1042,
    VARCHAR = 1043, DATE = 1082, TIMESTAMP = 1114, TIMESTAMPTZ = 1184, UUID = 2950, JSONB = 3802
};

#define EPOCH_DAYS 10957        /* from 1970-01-01 to 2000-01-01, from which the server counts */
#define DAY_US 86400000000      /* microseconds, in which it counts */

static bool is_known(uint32_t oid) {
    switch (oid) {
    case BOOL: case BYTEA: case INT8: case INT2: case INT4: case TEXT: case OID: case JSON: case FLOAT4: case FLOAT8: case BPCHAR:
    case VARCHAR: case DATE: case TIMESTAMP: case TIMESTAMPTZ: case UUID: case JSONB: return true;
    default: return false;
    }
}

void rpg_copy_check_binary(const rpg_columns *columns) {
    for (uint16_t i = 0; i < columns->count; i++) {
        if (is_known(columns->types[i]->oid)) continue;
        rb_raise(rpg_eUsage, "column %" PRIsVALUE " has a type of which no binary value can be made here; use the text format",
                 rb_ary_entry(columns->names, i));
    }
}

void rpg_copy_put_binary_header(rpg_out *out) {
    rpg_put_bytes(out, "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
}

NORETURN(static void expect(const rpg_copy_rows *rows, VALUE value, const char *what));
static void expect(const rpg_copy_rows *rows, VALUE value, const char *what) {
    rpg_copy_fail(rows, rb_sprintf("expected %s, got %" PRIsVALUE, what, rb_inspect(value)));
}

static void put_u64(rpg_out *out, uint64_t value) {
    uint8_t bytes[8];
    rpg_store_u64(bytes, value);
    rpg_put_bytes(out, bytes, sizeof(bytes));
}

#define AS_HERE (INTEGER_PACK_NATIVE_BYTE_ORDER | INTEGER_PACK_2COMP)

static void put_integer(rpg_copy_rows *rows, VALUE value, uint32_t bytes, int64_t min, int64_t max) {
    int64_t number = 0;
    bool fits = RB_INTEGER_TYPE_P(value);
    if (fits && FIXNUM_P(value)) number = FIX2LONG(value);
    else if (fits) fits = abs(rb_integer_pack(value, &number, 1, sizeof(number), 0, AS_HERE)) < 2 && number != 0;
    if (!fits || number < min || number > max) expect(rows, value, "an Integer that the column can have");
    rpg_put_u32(&rows->out, bytes);
    if (bytes == 8) put_u64(&rows->out, (uint64_t)number);
    else if (bytes == 4) rpg_put_u32(&rows->out, (uint32_t)number);
    else rpg_put_u16(&rows->out, (uint16_t)number);
}

static void put_float(rpg_copy_rows *rows, VALUE value, bool single) {
    union { double number; uint64_t bits; } wide;
    union { float number; uint32_t bits; } narrow;
    if (!RB_FLOAT_TYPE_P(value) && !RB_INTEGER_TYPE_P(value)) expect(rows, value, "a Float");
    wide.number = NUM2DBL(value);
    narrow.number = (float)wide.number;
    rpg_put_u32(&rows->out, single ? 4 : 8);
    if (single) rpg_put_u32(&rows->out, narrow.bits);
    else put_u64(&rows->out, wide.bits);
}

static void put_time(rpg_copy_rows *rows, VALUE value) {
    if (!rb_obj_is_kind_of(value, rb_cTime) && rb_respond_to(value, rb_intern("to_time"))) value = rb_funcall(value, rb_intern("to_time"), 0);
    if (!rb_obj_is_kind_of(value, rb_cTime)) expect(rows, value, "a Time");
    int64_t us = rpg_copy_time(rows, value) - EPOCH_DAYS * DAY_US;
    rpg_put_u32(&rows->out, 8);
    put_u64(&rows->out, (uint64_t)us);
}

static int64_t part_of(const rpg_copy_rows *rows, VALUE date, const char *part) {
    VALUE number = rb_respond_to(date, rb_intern(part)) ? rb_funcall(date, rb_intern(part), 0) : Qnil;
    if (!FIXNUM_P(number)) expect(rows, date, "a Date");
    return FIX2LONG(number);
}

/* The day of that name, as the text of the Date would be read: http://howardhinnant.github.io/date_algorithms.html#days_from_civil */
static void put_date(rpg_copy_rows *rows, VALUE value) {
    int64_t year = part_of(rows, value, "year"), month = part_of(rows, value, "month"), day = part_of(rows, value, "day");
    if (year < -4712 || year > 5874897) expect(rows, value, "a Date that Postgres has");
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468 - EPOCH_DAYS;
    rpg_put_u32(&rows->out, 4);
    rpg_put_u32(&rows->out, (uint32_t)days);
}

static void put_bool(rpg_copy_rows *rows, VALUE value) {
    if (value != Qtrue && value != Qfalse) expect(rows, value, "true or false");
    rpg_put_u32(&rows->out, 1);
    rpg_put_u8(&rows->out, value == Qtrue);
}

static int digit_of(char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 32;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* 32 digits, and hyphens anywhere. */
static void put_uuid(rpg_copy_rows *rows, VALUE value) {
    uint8_t bytes[16] = {0};
    int digits = 0;
    if (!RB_TYPE_P(value, T_STRING)) expect(rows, value, "a uuid, a String");
    for (long i = 0; i < RSTRING_LEN(value); i++) {
        char byte = RSTRING_PTR(value)[i];
        if (byte == '-') continue;
        int digit = digit_of(byte);
        if (digit < 0 || digits == 32) expect(rows, value, "a uuid");
        bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
        digits++;
    }
    if (digits != 32) expect(rows, value, "a uuid");
    rpg_put_u32(&rows->out, 16);
    rpg_put_bytes(&rows->out, bytes, 16);
}

static void put_string(rpg_copy_rows *rows, VALUE string, bool versioned) {
    if (RSTRING_LEN(string) >= INT32_MAX) rpg_copy_fail(rows, rb_str_new_cstr("is too long"));
    rpg_put_u32(&rows->out, (uint32_t)RSTRING_LEN(string) + versioned);
    if (versioned) rpg_put_u8(&rows->out, 1);
    rpg_put_bytes(&rows->out, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

static void put_bytes(rpg_copy_rows *rows, VALUE value) {
    if (!RB_TYPE_P(value, T_STRING)) expect(rows, value, "the bytes of a bytea, a String");
    put_string(rows, value, false);
}

void rpg_copy_put_binary(rpg_copy_rows *rows, VALUE value) {
    if (NIL_P(value)) {
        rpg_put_u32(&rows->out, UINT32_MAX);
        return;
    }
    uint32_t type = rpg_copy_type(rows);
    switch (type) {
    case BOOL: put_bool(rows, value); return;
    case BYTEA: put_bytes(rows, value); return;
    case INT2: put_integer(rows, value, 2, INT16_MIN, INT16_MAX); return;
    case INT4: put_integer(rows, value, 4, INT32_MIN, INT32_MAX); return;
    case INT8: put_integer(rows, value, 8, INT64_MIN, INT64_MAX); return;
    case OID: put_integer(rows, value, 4, 0, UINT32_MAX); return;
    case FLOAT4: case FLOAT8: put_float(rows, value, type == FLOAT4); return;
    case DATE: put_date(rows, value); return;
    case TIMESTAMP: case TIMESTAMPTZ: put_time(rows, value); return;
    case UUID: put_uuid(rows, value); return;
    default: put_string(rows, rpg_copy_utf8(rows, value), type == JSONB);
    }
}
