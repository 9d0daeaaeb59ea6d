#include "client/copy_binary.h"
#include "client/copy_text.h"
#include "client/inits.h"

/* What is worth a message. */
#define FULL ((size_t)65536)

static VALUE cCopyRows;

static void rows_mark(void *data) { rb_gc_mark(((rpg_copy_rows *)data)->columns); }

static void rows_free(void *data) {
    rpg_out_free(&((rpg_copy_rows *)data)->out);
    xfree(data);
}

static size_t rows_size(const void *data) { return sizeof(rpg_copy_rows) + ((const rpg_copy_rows *)data)->out.capacity; }

static const rb_data_type_t rows_type = {
    .wrap_struct_name = "Ringspun::Postgres::CopyRows",
    .function = {.dmark = rows_mark, .dfree = rows_free, .dsize = rows_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static rpg_copy_rows *get(VALUE self) { return rb_check_typeddata(self, &rows_type); }

/* @param options [Array] the kind, and as Strings the delimiter, what NULL is, the quote and its escape
 * @param width [Integer] values of a row
 * @param columns [Result, nil] which has the columns */
static VALUE rows_new(VALUE class, VALUE options, VALUE width, VALUE columns) {
    rpg_copy_rows *rows;
    VALUE self = TypedData_Make_Struct(class, rpg_copy_rows, &rows_type, rows);
    rows->columns = columns;
    rows->width = NUM2UINT(width);
    if (!rpg_copy_format_read(&rows->format, options)) rb_raise(rpg_eUsage, "what stands for NULL has at most 64 bytes");
    if (!NIL_P(columns)) rows->layout = rpg_columns_get(columns);
    if (rows->layout && rows->layout->count != rows->width) rows->layout = NULL; /* the table has changed in between */
    return self;
}

/* --- rows --- */

static void check_mixture(const rpg_copy_rows *rows, bool raw) {
    if (rows->format.kind != RPG_COPY_BINARY || !(raw ? rows->encoded : rows->raw)) return;
    rb_raise(rpg_eUsage, "a COPY in binary is of rows, or of bytes that have a header of their own, and not of both");
}

static void check_memory(rpg_copy_rows *rows) {
    rpg_out_state state = rows->out.state;
    if (RB_LIKELY(state == RPG_OUT_FINE)) return;
    rpg_out_cut(&rows->out, rows->whole);
    if (state == RPG_OUT_TOO_LONG) rpg_copy_fail_row(rows, rb_str_new_cstr("is too long"));
    rb_memerror();
}

static void put_value(rpg_copy_rows *rows, VALUE value) {
    switch (rows->format.kind) {
    case RPG_COPY_TEXT: rpg_copy_put_text(rows, value); return;
    case RPG_COPY_CSV: rpg_copy_put_csv(rows, value); return;
    default: rpg_copy_put_binary(rows, value);
    }
}

static void begin_row(rpg_copy_rows *rows) {
    rpg_out_cut(&rows->out, rows->whole);
    if (rows->format.kind != RPG_COPY_BINARY) return;
    if (!rows->encoded) {
        if (!rows->layout) rb_raise(rpg_eUsage, "rows in binary need the types of the columns, which are not known; use the text format");
        rpg_copy_check_binary(rows->layout);
        rpg_copy_put_binary_header(&rows->out);
    }
    rpg_put_u16(&rows->out, (uint16_t)rows->width);
}

static void put_row(rpg_copy_rows *rows, VALUE row) {
    if (RARRAY_LEN(row) != (long)rows->width) {
        rpg_copy_fail_row(rows, rb_sprintf("has %ld values, and there are %u columns", RARRAY_LEN(row), rows->width));
    }
    uint64_t serial = ++rows->serial;
    begin_row(rows);
    for (uint32_t i = 0; i < rows->width; i++) {
        if (i > 0 && rows->format.kind != RPG_COPY_BINARY) rpg_put_u8(&rows->out, rows->format.delimiter);
        rows->place = (uint16_t)i;
        put_value(rows, rb_ary_entry(row, (long)i));
        if (rows->serial != serial) rb_raise(rpg_eUsage, "a row was added while another one was encoded");
    }
    if (rows->format.kind != RPG_COPY_BINARY) rpg_put_u8(&rows->out, '\n');
    check_memory(rows);
    rows->encoded = true;
    rows->rows++;
    rows->whole = rows->out.len;
}

/* Adds a row, or bytes.
 *
 * @param item [Array, String]
 * @return [Boolean] whether there is enough for a message */
static VALUE rows_add(VALUE self, VALUE item) {
    rpg_copy_rows *rows = get(self);
    if (RB_TYPE_P(item, T_ARRAY)) {
        check_mixture(rows, false);
        put_row(rows, item);
    } else if (RB_TYPE_P(item, T_STRING)) {
        check_mixture(rows, true);
        rows->serial++;
        rpg_out_cut(&rows->out, rows->whole);
        rpg_put_bytes(&rows->out, RSTRING_PTR(item), (size_t)RSTRING_LEN(item));
        check_memory(rows);
        rows->raw |= RSTRING_LEN(item) > 0;
        rows->whole = rows->out.len;
    } else {
        rpg_copy_fail_row(rows, rb_sprintf("is of %" PRIsVALUE ": give a row as an Array of its values, or bytes as a String", rb_obj_class(item)));
    }
    return rows->whole >= FULL ? Qtrue : Qfalse;
}

/* @return [String] what is there, and is not any more */
static VALUE rows_take(VALUE self) {
    rpg_copy_rows *rows = get(self);
    VALUE bytes = rb_str_new((const char *)rows->out.bytes, (long)rows->whole);
    rows->serial++;
    rpg_out_cut(&rows->out, 0);
    rows->whole = 0;
    return bytes;
}

/* All rows were added. */
static VALUE rows_finish(VALUE self) {
    rpg_copy_rows *rows = get(self);
    if (rows->format.kind != RPG_COPY_BINARY || rows->raw) return Qnil;
    rpg_out_cut(&rows->out, rows->whole);
    if (!rows->encoded) rpg_copy_put_binary_header(&rows->out);
    rpg_put_u16(&rows->out, UINT16_MAX);
    check_memory(rows);
    rows->whole = rows->out.len;
    return Qnil;
}

static VALUE rows_count(VALUE self) { return ULL2NUM(get(self)->rows); }

/* @return [Boolean] whether a line that the server names is the row of that number */
static VALUE rows_are_lines(VALUE self) { return get(self)->breaks || get(self)->raw ? Qfalse : Qtrue; }

void rpg_init_copy_rows(void) {
    cCopyRows = rb_define_class_under(rpg_mPostgres, "CopyRows", rb_cObject);
    rb_undef_alloc_func(cCopyRows);
    rb_define_singleton_method(cCopyRows, "new", rows_new, 3);
    rb_define_method(cCopyRows, "add", rows_add, 1);
    rb_define_method(cCopyRows, "take", rows_take, 0);
    rb_define_method(cCopyRows, "finish", rows_finish, 0);
    rb_define_method(cCopyRows, "count", rows_count, 0);
    rb_define_method(cCopyRows, "lines?", rows_are_lines, 0);
    rb_global_variable(&cCopyRows);
}
