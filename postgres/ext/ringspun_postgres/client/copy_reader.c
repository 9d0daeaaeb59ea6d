/* copy_reader: the rows of a COPY TO STDOUT as Arrays: Ringspun::Postgres::CopyReader. Each CopyData is a row, with a header before
 * the first where the format has one: https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-COPY */
#include "client/copy_format.h"
#include "client/inits.h"
#include "client/result.h"

enum { JSON = 114, JSONB = 3802 };

/* How a binary COPY begins: https://www.postgresql.org/docs/17/sql-copy.html#id-1.9.3.55.9.4 */
#define SIGNATURE "PGCOPY\n\377\r\n\0"
#define SIGNATURE_LEN 11u

typedef struct {
    rpg_copy_format format;
    VALUE columns;              /* Columns, or nil: all values are given as text, or as bytes */
    VALUE scratch;              /* String, of a value that is written with escapes */
    bool header;                /* the next row is none */
    bool ended;                 /* the trailer has come */
} copy_reader;

static VALUE cCopyReader;

static void reader_mark(void *data) {
    rb_gc_mark(((copy_reader *)data)->columns);
    rb_gc_mark(((copy_reader *)data)->scratch);
}

static const rb_data_type_t reader_type = {
    .wrap_struct_name = "Ringspun::Postgres::CopyReader",
    .function = {.dmark = reader_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static bool has_binary(const rpg_type *type) {
    return rpg_type_is_binary(type) || type->oid == 0 || type->oid == JSON || type->oid == JSONB;
}

static void check_binary(const rpg_columns *columns) {
    for (uint16_t i = 0; i < columns->count; i++) {
        if (has_binary(columns->types[i])) continue;
        rb_raise(rpg_eUsage, "column %" PRIsVALUE " has a type whose binary values are not read; use the text format",
                 rb_ary_entry(columns->names, i));
    }
}

/* @param options [Array] as those of CopyRows
 * @param header [Boolean] whether one comes before the first row
 * @param columns [Columns, nil] */
static VALUE reader_new(VALUE class, VALUE options, VALUE header, VALUE columns) {
    copy_reader *reader;
    VALUE self = TypedData_Make_Struct(class, copy_reader, &reader_type, reader);
    reader->columns = columns;
    reader->scratch = Qnil;
    reader->scratch = rb_str_buf_new(64);
    reader->header = RTEST(header);
    if (!rpg_copy_format_read(&reader->format, options)) rb_raise(rpg_eUsage, "what stands for NULL has at most 64 bytes");
    if (reader->format.kind == RPG_COPY_BINARY && !NIL_P(columns)) check_binary(rpg_columns_get(columns));
    return self;
}

NORETURN(static void fail(const char *why));
static void fail(const char *why) { rb_raise(rpg_eProtocol, "the server sent a row of a COPY that is none: %s", why); }

/* --- values --- */

static VALUE decode(const rpg_columns *columns, long place, bool binary, rpg_span value) {
    if (!columns && binary) return rb_str_new((const char *)value.bytes, (long)value.len);
    if (!columns) return rb_utf8_str_new((const char *)value.bytes, (long)value.len);
    if (place >= columns->count) fail("it has more values than there are columns");
    const rpg_type *type = columns->types[place];
    if (!binary) return rpg_decode(type, false, value);
    if (type->oid == 0) return rb_str_new((const char *)value.bytes, (long)value.len);
    if (type->oid == JSONB) {
        if (value.len == 0 || value.bytes[0] != 1) fail("a jsonb of another version");
        value = (rpg_span){value.bytes + 1, value.len - 1};
    }
    return rpg_decode(type, true, value);
}

static void check_width(const rpg_columns *columns, VALUE row) {
    if (columns && RARRAY_LEN(row) != columns->count) fail("it has fewer values than there are columns");
}

/* --- text --- */

static bool is_null(const rpg_copy_format *format, const uint8_t *bytes, size_t len) {
    return len == format->null_len && memcmp(bytes, format->null, len) == 0;
}

/* What a letter behind a backslash means; the server writes no numbers. */
static char meant_by(uint8_t letter) {
    switch (letter) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'v': return '\v';
    default: return (char)letter;
    }
}

static rpg_span unescape(VALUE scratch, const uint8_t *at, const uint8_t *end) {
    rb_str_set_len(scratch, 0);
    while (at < end) {
        const uint8_t *begin = at;
        while (at < end && *at != '\\') at++;
        rb_str_cat(scratch, (const char *)begin, at - begin);
        if (at + 1 >= end) break;
        char byte = meant_by(at[1]);
        rb_str_cat(scratch, &byte, 1);
        at += 2;
    }
    return (rpg_span){(const uint8_t *)RSTRING_PTR(scratch), (size_t)RSTRING_LEN(scratch)};
}

static VALUE text_row(const copy_reader *reader, const rpg_columns *columns, rpg_span body) {
    const uint8_t *at = body.bytes, *end = body.bytes + body.len - 1;
    if (body.len == 0 || *end != '\n') fail("it does not end with a line's end");
    VALUE row = rb_ary_new_capa(columns ? columns->count : 8);
    if (columns && columns->count == 0) return row;
    for (bool more = true; more; at++) {
        const uint8_t *begin = at;
        bool escaped = false;
        for (; at < end && *at != reader->format.delimiter; at++) {
            if (*at == '\n') fail("there are several lines in it");
            if (*at != '\\') continue;
            escaped = true;
            if (at + 1 < end) at++;
        }
        more = at < end;
        rpg_span value = {begin, (size_t)(at - begin)};
        bool null = is_null(&reader->format, begin, value.len);
        if (escaped && !null) value = unescape(reader->scratch, begin, at);
        rb_ary_push(row, null ? Qnil : decode(columns, RARRAY_LEN(row), false, value));
    }
    check_width(columns, row);
    return row;
}

/* --- CSV --- */

/* Behind the quote that ends it; what it means is in the scratch. */
static const uint8_t *unquote(const copy_reader *reader, const uint8_t *at, const uint8_t *end) {
    const rpg_copy_format *format = &reader->format;
    rb_str_set_len(reader->scratch, 0);
    for (;; at++) {
        const uint8_t *begin = at;
        while (at < end && *at != format->quote && *at != format->escape) at++;
        rb_str_cat(reader->scratch, (const char *)begin, at - begin);
        if (at == end) fail("a quote is open at its end");
        bool escapes = *at == format->escape && at + 1 < end && (at[1] == format->quote || at[1] == format->escape);
        if (escapes) at++;
        else if (*at == format->quote) return at + 1;
        rb_str_cat(reader->scratch, (const char *)at, 1);
    }
}

static VALUE csv_row(const copy_reader *reader, const rpg_columns *columns, rpg_span body) {
    const uint8_t *at = body.bytes, *end = body.bytes + body.len - 1;
    if (body.len == 0 || *end != '\n') fail("it does not end with a line's end");
    VALUE row = rb_ary_new_capa(columns ? columns->count : 8);
    if (columns && columns->count == 0) return row;
    for (bool more = true; more; at++) {
        const uint8_t *begin = at;
        bool quoted = at < end && *at == reader->format.quote;
        rpg_span value;
        if (quoted) {
            at = unquote(reader, at + 1, end);
            value = (rpg_span){(const uint8_t *)RSTRING_PTR(reader->scratch), (size_t)RSTRING_LEN(reader->scratch)};
            if (at < end && *at != reader->format.delimiter) fail("something is behind a quoted value");
        } else {
            while (at < end && *at != reader->format.delimiter) at++;
            value = (rpg_span){begin, (size_t)(at - begin)};
        }
        more = at < end;
        bool null = !quoted && is_null(&reader->format, value.bytes, value.len);
        rb_ary_push(row, null ? Qnil : decode(columns, RARRAY_LEN(row), false, value));
    }
    check_width(columns, row);
    return row;
}

/* --- binary --- */

static void skip_header(rpg_reader *reader) {
    const uint8_t *signature = rpg_read_bytes(reader, SIGNATURE_LEN);
    if (!signature || memcmp(signature, SIGNATURE, SIGNATURE_LEN) != 0) fail("the header is another one");
    if (rpg_read_u32(reader) & 0xffff0000u) fail("the header has flags that are not known");
    rpg_read_bytes(reader, rpg_read_u32(reader));
}

/* nil: that was the trailer, or the header alone. */
static VALUE binary_row(copy_reader *self, const rpg_columns *columns, rpg_span body) {
    rpg_reader reader = rpg_reader_over(body.bytes, body.len);
    if (self->header) skip_header(&reader);
    self->header = false;
    if (!reader.bad && rpg_left(&reader) == 0) return Qnil;
    uint16_t width = rpg_read_u16(&reader);
    self->ended |= width == UINT16_MAX;
    if (width == UINT16_MAX && rpg_reader_is_done(&reader)) return Qnil;
    if (reader.bad || self->ended) fail("there is something behind the trailer");
    VALUE row = rb_ary_new_capa(width);
    for (uint16_t i = 0; i < width; i++) {
        rpg_span value;
        if (!rpg_read_value(&reader, &value)) fail("it is too short");
        rb_ary_push(row, value.bytes ? decode(columns, i, true, value) : Qnil);
    }
    if (!rpg_reader_is_done(&reader)) fail("something is left of it");
    check_width(columns, row);
    return row;
}

static VALUE row_of(copy_reader *reader, rpg_span body) {
    const rpg_columns *columns = NIL_P(reader->columns) ? NULL : rpg_columns_get(reader->columns);
    if (reader->format.kind == RPG_COPY_BINARY) return binary_row(reader, columns, body);
    if (reader->header) {
        reader->header = false;
        return Qnil;
    }
    return reader->format.kind == RPG_COPY_CSV ? csv_row(reader, columns, body) : text_row(reader, columns, body);
}

/* --- of a Result --- */

/* @yieldparam row [Array] */
static VALUE reader_each(VALUE self, VALUE result) {
    copy_reader *reader = rb_check_typeddata(self, &reader_type);
    rpg_cursor cursor = {.rows = rpg_result_rows(result)};
    rpg_message message;
    while (rpg_rows_next(&cursor, &message)) {
        VALUE row = row_of(reader, (rpg_span){message.body, message.len});
        if (!NIL_P(row)) rb_yield(row);
    }
    RB_GC_GUARD(result);
    return Qnil;
}

/* @return [String] the bytes of all rows of a Result */
static VALUE reader_bytes(VALUE class, VALUE result) {
    const rpg_rows *rows = rpg_result_rows(result);
    VALUE bytes = rb_str_buf_new((long)rpg_rows_size(rows));
    rpg_cursor cursor = {.rows = rows};
    rpg_message message;
    char *at = RSTRING_PTR(bytes);
    for (; rpg_rows_next(&cursor, &message); at += message.len) memcpy(at, message.body, message.len);
    rb_str_set_len(bytes, at - RSTRING_PTR(bytes));
    RB_GC_GUARD(result);
    return bytes;
}

/* @return [Integer] of those bytes */
static VALUE reader_size(VALUE class, VALUE result) {
    const rpg_rows *rows = rpg_result_rows(result);
    size_t size = 0;
    for (uint32_t i = 0; i < rows->len; i++) size += rows->pieces[i].len;
    return SIZET2NUM(size - RPG_HEADER * (size_t)rows->count);
}

void rpg_init_copy_reader(void) {
    cCopyReader = rb_define_class_under(rpg_mPostgres, "CopyReader", rb_cObject);
    rb_undef_alloc_func(cCopyReader);
    rb_define_singleton_method(cCopyReader, "new", reader_new, 3);
    rb_define_singleton_method(cCopyReader, "bytes", reader_bytes, 1);
    rb_define_singleton_method(cCopyReader, "size", reader_size, 1);
    rb_define_method(cCopyReader, "each", reader_each, 1);
    rb_global_variable(&cCopyReader);
}
