#include "client/result.h"

static VALUE cResult;

static void result_mark(void *data) { rb_gc_mark(((rpg_result *)data)->columns); }

static void result_free(void *data) {
    rpg_rows_free(&((rpg_result *)data)->rows);
    xfree(data);
}

static size_t result_size(const void *data) { return sizeof(rpg_result) + rpg_rows_size(&((const rpg_result *)data)->rows); }

static const rb_data_type_t result_type = {
    .wrap_struct_name = "Ringspun::Postgres::Result",
    .function = {.dmark = result_mark, .dfree = result_free, .dsize = result_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

VALUE rpg_result_new(rpg_result **result) {
    VALUE self = TypedData_Make_Struct(cResult, rpg_result, &result_type, *result);
    (*result)->columns = Qnil;
    return self;
}

static rpg_result *get(VALUE self) { return rb_check_typeddata(self, &result_type); }

NORETURN(static void fail_row(void));
static void fail_row(void) { rb_raise(rpg_eProtocol, "the server sent a row that is none, or not one of these columns"); }

static rpg_reader begin_row(const rpg_columns *columns, const rpg_message *row) {
    rpg_reader reader;
    uint16_t count;
    if (!rpg_read_row(row, &reader, &count) || count != columns->count) fail_row();
    return reader;
}

static VALUE next_value(rpg_reader *reader, const rpg_columns *columns, uint16_t place, bool binary) {
    rpg_span value;
    if (RB_UNLIKELY(!rpg_read_value(reader, &value))) fail_row();
    return value.bytes ? rpg_decode(columns->types[place], binary, value) : Qnil;
}

static VALUE array_of(const rpg_result *result, const rpg_columns *columns, const rpg_message *row) {
    rpg_reader reader = begin_row(columns, row);
    VALUE values = rb_ary_new_capa(columns->count);
    for (uint16_t i = 0; i < columns->count; i++) rb_ary_push(values, next_value(&reader, columns, i, result->binary));
    if (!rpg_reader_is_done(&reader)) fail_row();
    return values;
}

static VALUE hash_of(const rpg_result *result, const rpg_columns *columns, const rpg_message *row) {
    rpg_reader reader = begin_row(columns, row);
    VALUE values = rb_hash_new_capa(columns->count);
    for (uint16_t i = 0; i < columns->count; i++) {
        rb_hash_aset(values, RARRAY_AREF(columns->names, i), next_value(&reader, columns, i, result->binary));
    }
    if (!rpg_reader_is_done(&reader)) fail_row();
    return values;
}

static VALUE all_of(VALUE self, VALUE (*one_of)(const rpg_result *, const rpg_columns *, const rpg_message *)) {
    rpg_result *result = get(self);
    VALUE rows = rb_ary_new_capa((long)result->rows.count);
    if (NIL_P(result->columns)) return rows;
    const rpg_columns *columns = rpg_columns_get(result->columns);
    rpg_cursor cursor = {.rows = &result->rows};
    rpg_message row;
    while (rpg_rows_next(&cursor, &row)) rb_ary_push(rows, one_of(result, columns, &row));
    RB_GC_GUARD(self);
    return rows;
}

/* @return [Array<Array>] the rows, each as its values
 * @since 0.1.0 */
static VALUE result_rows(VALUE self) { return all_of(self, array_of); }

/* @return [Array<Hash>] the rows, each by the names of its columns
 * @since 0.1.0 */
static VALUE result_hashes(VALUE self) { return all_of(self, hash_of); }

/* @return [Array<String>] the names of the columns; empty where there are none
 * @since 0.1.0 */
static VALUE result_columns(VALUE self) {
    const rpg_result *result = get(self);
    return NIL_P(result->columns) ? rb_ary_freeze(rb_ary_new()) : rpg_columns_get(result->columns)->names;
}

/* @return [Integer] how many rows it has
 * @since 0.1.0 */
static VALUE result_size_of(VALUE self) { return ULL2NUM(get(self)->rows.count); }

/* @return [String] what the server says that it has done, as INSERT 0 1
 * @since 0.1.0 */
static VALUE result_tag(VALUE self) {
    const rpg_result *result = get(self);
    return rb_obj_freeze(rb_utf8_str_new(result->tag, result->tag_len));
}

/* The number at the end of the tag.
 *
 * @return [Integer] how many rows were inserted, changed, deleted or returned; 0 where none is told
 * @since 0.1.0 */
static VALUE result_affected(VALUE self) {
    const rpg_result *result = get(self);
    uint8_t at = result->tag_len;
    uint64_t number = 0;
    while (at > 0 && result->tag[at - 1] >= '0' && result->tag[at - 1] <= '9') at--;
    for (; at < result->tag_len; at++) number = number * 10 + (uint64_t)(result->tag[at] - '0');
    return ULL2NUM(number);
}

void rpg_init_result(void) {
    cResult = rb_define_class_under(rpg_mPostgres, "Result", rb_cObject);
    rb_undef_alloc_func(cResult);
    rb_define_method(cResult, "rows", result_rows, 0);
    rb_define_method(cResult, "hashes", result_hashes, 0);
    rb_define_method(cResult, "columns", result_columns, 0);
    rb_define_method(cResult, "size", result_size_of, 0);
    rb_define_method(cResult, "tag", result_tag, 0);
    rb_define_method(cResult, "affected", result_affected, 0);
    rb_global_variable(&cResult);
}
