#include "client/columns.h"
#include "client/decoders.h"

static VALUE cColumns;

static void columns_mark(void *data) {
    const rpg_columns *columns = data;
    if (!columns) return;
    rb_gc_mark(columns->names);
    rb_gc_mark(columns->places);
    rb_gc_mark(columns->oids);
    rb_gc_mark(columns->tables);
    rb_gc_mark(columns->decoders);
    rb_gc_mark(columns->unknown);
}

static size_t columns_size(const void *data) {
    const rpg_columns *columns = data;
    return columns ? sizeof(*columns) + sizeof(*columns->types) * columns->count : 0;
}

static const rb_data_type_t columns_type = {
    .wrap_struct_name = "Ringspun::Postgres::Columns",
    .function = {.dmark = columns_mark, .dfree = RUBY_DEFAULT_FREE, .dsize = columns_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

const rpg_columns *rpg_columns_get(VALUE self) { return rb_check_typeddata(self, &columns_type); }

NORETURN(static void fail(void));
static void fail(void) { rb_raise(rpg_eDecode, "the server describes columns that are none"); }

/* Asked for as text, and so also where it turns out to be of an array. */
static void set_type(rpg_columns *columns, uint16_t place, uint32_t oid) {
    columns->types[place] = rpg_decoders_type(columns->decoders, oid);
    if (columns->types[place]) return;
    columns->types[place] = rpg_type_of(oid);
    if (NIL_P(columns->unknown)) columns->unknown = rb_hash_new();
    rb_hash_aset(columns->unknown, INT2FIX(place), UINT2NUM(oid));
}

static void note_table(VALUE tables, VALUE name, uint32_t table) {
    VALUE known = rb_hash_lookup(tables, name);
    if (NIL_P(known)) rb_hash_aset(tables, name, known = rb_ary_new());
    rb_ary_push(known, UINT2NUM(table));
}

static void add_column(rpg_columns *columns, rpg_reader *reader, uint16_t place, VALUE all_tables) {
    rpg_column column;
    if (!rpg_read_column(reader, &column)) fail();
    VALUE name = rb_enc_interned_str((const char *)column.name.bytes, (long)column.name.len, rb_utf8_encoding());
    set_type(columns, place, column.type);
    rb_ary_push(columns->names, name);
    rb_ary_push(columns->oids, UINT2NUM(column.type));
    rb_hash_aset(columns->places, name, INT2FIX(place));
    if (RTEST(ruby_verbose) && column.table) note_table(all_tables, name, column.table);
}

static int is_of_one(VALUE name, VALUE tables, VALUE unused) { return RARRAY_LEN(tables) > 1 ? ST_CONTINUE : ST_DELETE; }

static void keep_shared_names(rpg_columns *columns, VALUE tables) {
    rb_hash_foreach(tables, is_of_one, Qnil);
    if (RHASH_SIZE(tables) > 0) columns->tables = tables;
}

VALUE rpg_columns_take_tables(VALUE self) {
    rpg_columns *columns = rb_check_typeddata(self, &columns_type);
    VALUE tables = columns->tables;
    columns->tables = Qnil;
    return tables;
}

VALUE rpg_columns_new(rpg_span description, VALUE decoders) {
    rpg_reader reader;
    uint16_t count;
    rpg_message message = {RPG_ROW_DESCRIPTION, description.bytes, description.len};
    if (!rpg_read_columns(&message, &reader, &count)) fail();
    VALUE self = TypedData_Wrap_Struct(cColumns, &columns_type, NULL);
    rpg_columns *columns = ruby_xcalloc(1, sizeof(*columns) + sizeof(*columns->types) * count);
    columns->names = columns->places = columns->oids = columns->unknown = columns->tables = Qnil;
    columns->decoders = decoders;
    RTYPEDDATA_DATA(self) = columns;
    columns->names = rb_ary_new_capa(count);
    columns->places = rb_hash_new();
    columns->oids = rb_ary_new_capa(count);
    VALUE tables = RTEST(ruby_verbose) ? rb_hash_new() : Qnil;
    for (; columns->count < count; columns->count++) add_column(columns, &reader, columns->count, tables);
    if (!NIL_P(tables)) keep_shared_names(columns, tables);
    if (!rpg_reader_is_done(&reader)) fail();
    rb_ary_freeze(columns->names);
    rb_ary_freeze(columns->oids);
    return self;
}

static int note_type(VALUE place, VALUE oid, VALUE argument) {
    rpg_columns *columns = (rpg_columns *)argument;
    const rpg_type *type = rpg_decoders_type(columns->decoders, NUM2UINT(oid));
    if (!type) return ST_CONTINUE;
    columns->types[FIX2INT(place)] = type;
    return ST_DELETE;
}

VALUE rpg_columns_unknown(VALUE self) {
    rpg_columns *columns = rb_check_typeddata(self, &columns_type);
    if (RB_LIKELY(NIL_P(columns->unknown))) return Qnil;
    rb_hash_foreach(columns->unknown, note_type, (VALUE)columns);
    if (RHASH_SIZE(columns->unknown) > 0) return rb_funcall(columns->unknown, rb_intern("values"), 0);
    return columns->unknown = Qnil;
}

void rpg_init_columns(void) {
    cColumns = rb_define_class_under(rpg_mPostgres, "Columns", rb_cObject);
    rb_undef_alloc_func(cColumns);
    rb_global_variable(&cColumns);
}
