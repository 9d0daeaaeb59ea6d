#include "client/row.h"

typedef struct {
    VALUE columns;
    rpg_block *block;
    const uint8_t *body;
    size_t len;
    bool binary;
} rpg_row;

static VALUE cRow;

static void row_mark(void *data) { rb_gc_mark(((rpg_row *)data)->columns); }

static void row_free(void *data) {
    rpg_row *row = data;
    if (row->block) rpg_block_drop(row->block);
    xfree(row);
}

static const rb_data_type_t row_type = {
    .wrap_struct_name = "Ringspun::Postgres::Row",
    .function = {.dmark = row_mark, .dfree = row_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static const rpg_row *get(VALUE self) { return rb_check_typeddata(self, &row_type); }

/* --- decoding --- */

NORETURN(static void fail_row(void));
static void fail_row(void) { rb_raise(rpg_eProtocol, "the server sent a row that is none, or not one of these columns"); }

static rpg_reader begin_row(const rpg_columns *columns, const rpg_message *message) {
    rpg_reader reader;
    uint16_t count;
    if (!rpg_read_row(message, &reader, &count) || count != columns->count) fail_row();
    return reader;
}

static VALUE next_value(rpg_reader *reader, const rpg_columns *columns, uint16_t place, bool binary) {
    rpg_span value;
    if (RB_UNLIKELY(!rpg_read_value(reader, &value))) fail_row();
    return value.bytes ? rpg_decode(columns->types[place], binary, value) : Qnil;
}

static void end_row(const rpg_reader *reader) {
    if (!rpg_reader_is_done(reader)) fail_row();
}

VALUE rpg_row_array(VALUE self, bool binary, rpg_block *block, const rpg_message *message) {
    const rpg_columns *columns = rpg_columns_get(self);
    rpg_reader reader = begin_row(columns, message);
    VALUE values = rb_ary_new_capa(columns->count);
    for (uint16_t i = 0; i < columns->count; i++) rb_ary_push(values, next_value(&reader, columns, i, binary));
    end_row(&reader);
    return values;
}

VALUE rpg_row_hash(VALUE self, bool binary, rpg_block *block, const rpg_message *message) {
    const rpg_columns *columns = rpg_columns_get(self);
    rpg_reader reader = begin_row(columns, message);
    VALUE values = rb_hash_new_capa(columns->count);
    for (uint16_t i = 0; i < columns->count; i++) {
        rb_hash_aset(values, RARRAY_AREF(columns->names, i), next_value(&reader, columns, i, binary));
    }
    end_row(&reader);
    return values;
}

VALUE rpg_row_lazy(VALUE columns, bool binary, rpg_block *block, const rpg_message *message) {
    rpg_row *row;
    VALUE self = TypedData_Make_Struct(cRow, rpg_row, &row_type, row);
    RB_OBJ_WRITE(self, &row->columns, columns);
    row->block = block;
    block->refs++;
    row->body = message->body;
    row->len = message->len;
    row->binary = binary;
    return self;
}

static VALUE value_at(VALUE self, const rpg_message *message, bool binary, uint16_t place) {
    const rpg_columns *columns = rpg_columns_get(self);
    rpg_reader reader = begin_row(columns, message);
    rpg_span passed;
    for (uint16_t i = 0; i < place; i++) {
        if (!rpg_read_value(&reader, &passed)) fail_row();
    }
    return next_value(&reader, columns, place, binary);
}

VALUE rpg_row_first(VALUE columns, bool binary, const rpg_message *message) {
    return rpg_columns_get(columns)->count > 0 ? value_at(columns, message, binary, 0) : Qnil;
}

/* --- methods --- */

static rpg_message message_of(const rpg_row *row) { return (rpg_message){RPG_ROW, row->body, row->len}; }

NORETURN(static void fail_name(const rpg_columns *columns, VALUE name));
static void fail_name(const rpg_columns *columns, VALUE name) {
    VALUE known = rb_ary_join(columns->names, rb_utf8_str_new_cstr(", "));
    rb_raise(rpg_eUsage, "there is no column %" PRIsVALUE "; there are %" PRIsVALUE, rb_inspect(name), known);
}

/* -1: there is none at that place. */
static long place_of(const rpg_columns *columns, VALUE key) {
    if (RB_INTEGER_TYPE_P(key)) {
        long place = NUM2LONG(key);
        if (place < 0) place += columns->count;
        return place < columns->count ? place : -1;
    }
    VALUE name = RB_SYMBOL_P(key) ? rb_sym2str(key) : key, place = rb_hash_lookup(columns->places, name);
    if (NIL_P(place)) fail_name(columns, key);
    return FIX2LONG(place);
}

/* One value, which is decoded each time.
 *
 * @param key [Integer, String, Symbol] the place of the column, from the end where it is negative, or its name
 * @return [Object, nil] nil: it is NULL, or there is no column at that place
 * @raise [UsageError] there is no column of that name
 * @since 0.1.0 */
static VALUE row_aref(VALUE self, VALUE key) {
    const rpg_row *row = get(self);
    long place = place_of(rpg_columns_get(row->columns), key);
    rpg_message message = message_of(row);
    VALUE value = place < 0 ? Qnil : value_at(row->columns, &message, row->binary, (uint16_t)place);
    RB_GC_GUARD(self);
    return value;
}

/* @return [Array] the values
 * @since 0.1.0 */
static VALUE row_to_a(VALUE self) {
    const rpg_row *row = get(self);
    rpg_message message = message_of(row);
    VALUE values = rpg_row_array(row->columns, row->binary, row->block, &message);
    RB_GC_GUARD(self);
    return values;
}

/* @return [Hash{String => Object}] the values by the names of their columns; of several of one name the last
 * @since 0.1.0 */
static VALUE row_to_h(VALUE self) {
    const rpg_row *row = get(self);
    rpg_message message = message_of(row);
    VALUE values = rpg_row_hash(row->columns, row->binary, row->block, &message);
    RB_GC_GUARD(self);
    return values;
}

/* @return [Array<String>] the names of the columns
 * @since 0.1.0 */
static VALUE row_columns(VALUE self) { return rpg_columns_get(get(self)->columns)->names; }

void rpg_init_row(void) {
    cRow = rb_define_class_under(rpg_mPostgres, "Row", rb_cObject);
    rb_undef_alloc_func(cRow);
    rb_define_method(cRow, "[]", row_aref, 1);
    rb_define_method(cRow, "to_a", row_to_a, 0);
    rb_define_method(cRow, "to_h", row_to_h, 0);
    rb_define_method(cRow, "columns", row_columns, 0);
    rb_global_variable(&cRow);
}
