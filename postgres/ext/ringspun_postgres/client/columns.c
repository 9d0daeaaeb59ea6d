#include "client/columns.h"
#include "client/decoders.h"

static VALUE cColumns;

static void columns_mark(void *data) {
    const rpg_columns *columns = data;
    if (!columns) return;
    rb_gc_mark(columns->names);
    rb_gc_mark(columns->places);
    rb_gc_mark(columns->oids);
    rb_gc_mark(columns->decoders);
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
static void fail(void) { rb_raise(rpg_eProtocol, "the server describes columns that are none"); }

static void add_column(rpg_columns *columns, rpg_reader *reader, uint16_t place) {
    rpg_column column;
    if (!rpg_read_column(reader, &column)) fail();
    VALUE name = rb_enc_interned_str((const char *)column.name.bytes, (long)column.name.len, rb_utf8_encoding());
    columns->types[place] = rpg_decoders_type(columns->decoders, column.type);
    rb_ary_push(columns->names, name);
    rb_ary_push(columns->oids, UINT2NUM(column.type));
    if (NIL_P(rb_hash_lookup(columns->places, name))) rb_hash_aset(columns->places, name, INT2FIX(place));
}

VALUE rpg_columns_new(rpg_span description, VALUE decoders) {
    rpg_reader reader;
    uint16_t count;
    rpg_message message = {RPG_ROW_DESCRIPTION, description.bytes, description.len};
    if (!rpg_read_columns(&message, &reader, &count)) fail();
    VALUE self = TypedData_Wrap_Struct(cColumns, &columns_type, NULL);
    rpg_columns *columns = ruby_xcalloc(1, sizeof(*columns) + sizeof(*columns->types) * count);
    columns->names = columns->places = columns->oids = Qnil;
    columns->decoders = decoders;
    RTYPEDDATA_DATA(self) = columns;
    columns->names = rb_ary_new_capa(count);
    columns->places = rb_hash_new();
    columns->oids = rb_ary_new_capa(count);
    for (; columns->count < count; columns->count++) add_column(columns, &reader, columns->count);
    if (!rpg_reader_is_done(&reader)) fail();
    rb_ary_freeze(columns->names);
    rb_ary_freeze(columns->oids);
    return self;
}

void rpg_init_columns(void) {
    cColumns = rb_define_class_under(rpg_mPostgres, "Columns", rb_cObject);
    rb_undef_alloc_func(cColumns);
    rb_global_variable(&cColumns);
}
