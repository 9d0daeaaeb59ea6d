#include "client/copy_format.h"

static ID id_invalid_row, id_copy_text;

static VALUE name_of_place(const rpg_copy_rows *rows) {
    bool named = rows->layout && rows->place < rows->layout->count;
    return named ? rb_ary_entry(rows->layout->names, rows->place) : UINT2NUM(rows->place + 1u);
}

void rpg_copy_fail(const rpg_copy_rows *rows, VALUE reason) {
    rb_exc_raise(rb_funcall(rpg_mPostgres, id_invalid_row, 3, reason, ULL2NUM(rows->rows + 1), name_of_place(rows)));
}

void rpg_copy_fail_row(const rpg_copy_rows *rows, VALUE reason) {
    rb_exc_raise(rb_funcall(rpg_mPostgres, id_invalid_row, 3, reason, ULL2NUM(rows->rows + 1), Qnil));
}

VALUE rpg_copy_text(const rpg_copy_rows *rows, VALUE value, bool json) {
    VALUE row = ULL2NUM(rows->rows + 1);
    return rb_str_to_str(rb_funcall(rpg_mPostgres, id_copy_text, 4, value, json ? Qtrue : Qfalse, row, name_of_place(rows)));
}

static VALUE timespec_of(VALUE argument) {
    VALUE *pair = (VALUE *)argument;
    *(struct timespec *)pair[1] = rb_time_timespec(pair[0]);
    return Qtrue;
}

static VALUE out_of_range(VALUE unused, VALUE error) { return Qfalse; }

/* The server has no time beyond the year 294276, and none before 4714 BC:
 * https://www.postgresql.org/docs/17/datatype-datetime.html */
int64_t rpg_copy_time(const rpg_copy_rows *rows, VALUE time) {
    struct timespec at;
    VALUE pair[] = {time, (VALUE)&at};
    bool fine = RTEST(rb_rescue2(timespec_of, (VALUE)pair, out_of_range, Qnil, rb_eRangeError, (VALUE)0));
    if (!fine || at.tv_sec > 9224318015999 || at.tv_sec < -210866803200) {
        rpg_copy_fail(rows, rb_sprintf("is a time that Postgres does not have: %" PRIsVALUE, rb_inspect(time)));
    }
    return (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

/* --- formats --- */

static uint8_t byte_of(VALUE string) { return RSTRING_LEN(string) > 0 ? (uint8_t)RSTRING_PTR(string)[0] : 0; }

static void mark_special(rpg_copy_format *format) {
    static const uint8_t in_text[] = {'\b', '\f', '\n', '\r', '\t', '\v', '\\'};
    if (format->kind == RPG_COPY_TEXT) {
        for (size_t i = 0; i < sizeof(in_text); i++) format->special[in_text[i]] = true;
    } else {
        format->special['\n'] = format->special['\r'] = format->special[format->quote] = true;
    }
    format->special[format->delimiter] = true;
}

bool rpg_copy_format_read(rpg_copy_format *format, VALUE options) {
    VALUE null = rb_ary_entry(options, 2);
    if (RSTRING_LEN(null) > RPG_COPY_NULL_MAX) return false;
    format->kind = (uint8_t)NUM2UINT(rb_ary_entry(options, 0));
    format->delimiter = byte_of(rb_ary_entry(options, 1));
    format->null_len = (uint8_t)RSTRING_LEN(null);
    memcpy(format->null, RSTRING_PTR(null), format->null_len);
    format->quote = byte_of(rb_ary_entry(options, 3));
    format->escape = byte_of(rb_ary_entry(options, 4));
    bool usual = format->kind == RPG_COPY_CSV ? format->null_len == 0 : format->null_len == 2 && memcmp(format->null, "\\N", 2) == 0;
    format->simple = usual && format->delimiter && strchr("\t,;|", format->delimiter) && (!format->quote || strchr("\"'", format->quote));
    mark_special(format);
    return true;
}

void rpg_init_copy_format(void) {
    id_invalid_row = rb_intern("invalid_row");
    id_copy_text = rb_intern("copy_text");
}
