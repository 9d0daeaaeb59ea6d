#include "client/row.h"

typedef struct {
    VALUE columns;
    const rpg_columns *layout;
    rpg_block *block;
    bool binary;
} rpg_shared;

typedef struct {
    VALUE shared;
    const uint8_t *body;
    uint32_t len;
    uint32_t at;                /* where the value of `place` lies in the body; 0: nothing was read yet */
    uint16_t place;
} rpg_row;

static VALUE cShared, cRow;

/* --- the objects --- */

static void shared_mark(void *data) { rb_gc_mark(((rpg_shared *)data)->columns); }

static void shared_free(void *data) {
    rpg_shared *shared = data;
    if (shared->block) rpg_block_drop(shared->block);
    xfree(shared);
}

static const rb_data_type_t shared_type = {
    .wrap_struct_name = "Ringspun::Postgres::SharedByRows",
    .function = {.dmark = shared_mark, .dfree = shared_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static void row_mark(void *data) { rb_gc_mark(((rpg_row *)data)->shared); }

static const rb_data_type_t row_type = {
    .wrap_struct_name = "Ringspun::Postgres::Row",
    .function = {.dmark = row_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_EMBEDDABLE,
};

/* Nothing but rpg_row_lazy makes one, so its type is known. */
static rpg_row *get(VALUE self) { return RTYPEDDATA_GET_DATA(self); }

static const rpg_shared *shared_by(const rpg_row *row) { return RTYPEDDATA_GET_DATA(row->shared); }

static VALUE shared_new(const rpg_row_maker *maker, rpg_block *block) {
    rpg_shared *shared;
    VALUE self = TypedData_Make_Struct(cShared, rpg_shared, &shared_type, shared);
    RB_OBJ_WRITE(self, &shared->columns, maker->columns);
    shared->layout = maker->layout;
    shared->binary = maker->binary;
    shared->block = block;
    block->refs++;
    return self;
}

/* --- decoding --- */

NORETURN(static void fail_row(void));
static void fail_row(void) { rb_raise(rpg_eDecode, "the server sent a row that is none, or not one of these columns"); }

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

rpg_row_maker rpg_row_maker_new(VALUE columns, bool binary) {
    return (rpg_row_maker){.columns = columns, .layout = rpg_columns_get(columns), .binary = binary, .shared = Qnil};
}

/* Of a row with as many columns the values are made on the stack, and put into their Array at once. */
#define FEW_COLUMNS 32

static VALUE array_of_few(rpg_reader *reader, const rpg_columns *columns, bool binary) {
    VALUE values[FEW_COLUMNS];
    for (uint16_t i = 0; i < columns->count; i++) values[i] = next_value(reader, columns, i, binary);
    return rb_ary_new_from_values(columns->count, values);
}

static VALUE array_of_many(rpg_reader *reader, const rpg_columns *columns, bool binary) {
    VALUE values = rb_ary_new_capa(columns->count);
    for (uint16_t i = 0; i < columns->count; i++) rb_ary_push(values, next_value(reader, columns, i, binary));
    return values;
}

static VALUE array_of(const rpg_columns *columns, bool binary, const rpg_message *message) {
    rpg_reader reader = begin_row(columns, message);
    bool few = columns->count <= FEW_COLUMNS;
    VALUE values = few ? array_of_few(&reader, columns, binary) : array_of_many(&reader, columns, binary);
    end_row(&reader);
    return values;
}

static VALUE hash_of(const rpg_columns *columns, bool binary, const rpg_message *message) {
    rpg_reader reader = begin_row(columns, message);
    VALUE values = rb_hash_new_capa(columns->count);
    for (uint16_t i = 0; i < columns->count; i++) {
        rb_hash_aset(values, RARRAY_AREF(columns->names, i), next_value(&reader, columns, i, binary));
    }
    end_row(&reader);
    return values;
}

VALUE rpg_row_array(rpg_row_maker *maker, rpg_block *block, const rpg_message *message) {
    return array_of(maker->layout, maker->binary, message);
}

VALUE rpg_row_hash(rpg_row_maker *maker, rpg_block *block, const rpg_message *message) {
    return hash_of(maker->layout, maker->binary, message);
}

static bool shares(VALUE shared, const rpg_block *block) {
    return !NIL_P(shared) && ((const rpg_shared *)RTYPEDDATA_GET_DATA(shared))->block == block;
}

VALUE rpg_row_lazy(rpg_row_maker *maker, rpg_block *block, const rpg_message *message) {
    if (RB_UNLIKELY(!shares(maker->shared, block))) maker->shared = shared_new(maker, block);
    rpg_row *row;
    VALUE self = TypedData_Make_Struct(cRow, rpg_row, &row_type, row);
    RB_OBJ_WRITE(self, &row->shared, maker->shared);
    row->body = message->body;
    row->len = (uint32_t)message->len;
    return self;
}

VALUE rpg_row_first(const rpg_row_maker *maker, const rpg_message *message) {
    if (maker->layout->count == 0) return Qnil;
    rpg_reader reader = begin_row(maker->layout, message);
    return next_value(&reader, maker->layout, 0, maker->binary);
}

/* --- methods --- */

static rpg_message message_of(const rpg_row *row) { return (rpg_message){RPG_ROW, row->body, row->len}; }

/* From the last one that was read, so that who reads them in order passes each once. */
static rpg_reader reader_at(rpg_row *row, const rpg_columns *columns, uint16_t place) {
    rpg_message message = message_of(row);
    rpg_reader reader = rpg_reader_over(row->body + row->at, row->len - row->at);
    uint16_t i = row->place;
    if (row->at == 0 || place < i) {
        reader = begin_row(columns, &message);
        i = 0;
    }
    rpg_span passed;
    for (; i < place; i++) {
        if (!rpg_read_value(&reader, &passed)) fail_row();
    }
    row->place = place;
    row->at = (uint32_t)(reader.at - row->body);
    return reader;
}

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
 * @param key [Integer, String, Symbol] the place of the column, from the end where it is negative, or its name; of several of one
 *   name the last
 * @return [Object, nil] nil: it is NULL, or there is no column at that place
 * @raise [UsageError] there is no column of that name
 * @since 0.1.0 */
static VALUE row_aref(VALUE self, VALUE key) {
    rpg_row *row = get(self);
    const rpg_shared *shared = shared_by(row);
    long place = place_of(shared->layout, key);
    if (place < 0) return Qnil;
    rpg_reader reader = reader_at(row, shared->layout, (uint16_t)place);
    VALUE value = next_value(&reader, shared->layout, (uint16_t)place, shared->binary);
    RB_GC_GUARD(self);
    return value;
}

/* @return [Array] the values
 * @since 0.1.0 */
static VALUE row_to_a(VALUE self) {
    const rpg_shared *shared = shared_by(get(self));
    rpg_message message = message_of(get(self));
    VALUE values = array_of(shared->layout, shared->binary, &message);
    RB_GC_GUARD(self);
    return values;
}

/* @return [Hash{String => Object}] the values by the names of their columns; of several of one name the last
 * @since 0.1.0 */
static VALUE row_to_h(VALUE self) {
    const rpg_shared *shared = shared_by(get(self));
    rpg_message message = message_of(get(self));
    VALUE values = hash_of(shared->layout, shared->binary, &message);
    RB_GC_GUARD(self);
    return values;
}

/* @return [Array<String>] the names of the columns
 * @since 0.1.0 */
static VALUE row_columns(VALUE self) { return shared_by(get(self))->layout->names; }

void rpg_init_row(void) {
    cShared = rb_define_class_under(rpg_mPostgres, "SharedByRows", rb_cObject);
    rb_undef_alloc_func(cShared);
    cRow = rb_define_class_under(rpg_mPostgres, "Row", rb_cObject);
    rb_undef_alloc_func(cRow);
    rb_define_method(cRow, "[]", row_aref, 1);
    rb_define_method(cRow, "to_a", row_to_a, 0);
    rb_define_method(cRow, "to_h", row_to_h, 0);
    rb_define_method(cRow, "columns", row_columns, 0);
    rb_global_variable(&cShared);
    rb_global_variable(&cRow);
}
