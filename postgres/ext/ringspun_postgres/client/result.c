#include "client/result.h"
#include "client/row.h"

static VALUE cResult;

static void result_mark(void *data) {
    const rpg_result *result = data;
    rb_gc_mark(result->columns);
    rb_gc_mark(result->seen);
}

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
    (*result)->columns = (*result)->seen = Qnil;
    return self;
}

static rpg_result *get(VALUE self) { return rb_check_typeddata(self, &result_type); }

VALUE rpg_result_take_seen(VALUE self) {
    VALUE seen = get(self)->seen;
    get(self)->seen = Qnil;
    return seen;
}
const rpg_rows *rpg_result_rows(VALUE self) { return &get(self)->rows; }

/* @return [Columns, nil] */
static VALUE result_layout(VALUE self) { return get(self)->columns; }

/* --- the memory of rows that have passed --- */

/* From here on what is made of a row weighs more than the objects by which Ruby's collector judges how much there is to collect. */
#define WIDE_ROW 65536u

/* Of rows that are not wide only the blocks count that they still have, and there are more bytes to each collection: it takes some
 * 6 ns for each object that lives, and to receive and to decode a byte takes half a nanosecond. */
#define BYTES_AN_OBJECT 36u
#define WIDE_WEIGHT 3u

static size_t passed; /* bytes since the last collection for them */

/* A user that has turned the collector off does not want one. */
static bool may_collect(void) {
    bool off = RTEST(rb_gc_disable());
    if (!off) rb_gc_enable();
    return !off;
}

/* Whether anybody has kept a row, or what was made of it, only a collection tells. Of those that nobody has kept, the memory goes
 * back. */
static void note_passed(size_t bytes) {
    passed += bytes;
    if (passed < rb_gc_stat(ID2SYM(rb_intern("heap_live_slots"))) * BYTES_AN_OBJECT || !may_collect()) return;
    passed = 0;
    VALUE options = rb_hash_new();
    rb_hash_aset(options, ID2SYM(rb_intern("full_mark")), Qfalse);
    rb_funcallv_kw(rb_mGC, rb_intern("start"), 1, &options, RB_PASS_KEYWORDS);
}

static size_t weight_of(const rpg_rows *rows) {
    size_t size = rpg_rows_size(rows);
    if (rows->count > 0 && size / rows->count >= WIDE_ROW) return size * WIDE_WEIGHT;
    return rpg_rows_are_shared(rows) ? size : 0;
}

typedef VALUE (*rpg_form)(rpg_row_maker *maker, rpg_block *block, const rpg_message *message);

static VALUE all_of(VALUE self, rpg_form form) {
    rpg_result *result = get(self);
    VALUE rows = rb_ary_new_capa((long)result->rows.count);
    if (NIL_P(result->columns)) return rows;
    rpg_row_maker maker = rpg_row_maker_new(result->columns, result->binary);
    rpg_cursor cursor = {.rows = &result->rows};
    rpg_message row;
    while (rpg_rows_next(&cursor, &row)) rb_ary_push(rows, form(&maker, rpg_cursor_block(&cursor), &row));
    RB_GC_GUARD(self);
    return rows;
}

static VALUE number_of_rows(VALUE self, VALUE arguments, VALUE each) { return ULL2NUM(get(self)->rows.count); }

static VALUE each_as(VALUE self, rpg_form form) {
    rpg_result *result = get(self);
    if (NIL_P(result->columns)) return self;
    rpg_row_maker maker = rpg_row_maker_new(result->columns, result->binary);
    rpg_cursor cursor = {.rows = &result->rows};
    rpg_message row;
    while (rpg_rows_next(&cursor, &row)) rb_yield(form(&maker, rpg_cursor_block(&cursor), &row));
    return self;
}

/* The rows. Each is decoded when it is asked for a value.
 *
 * @yieldparam row [Row]
 * @return [self, Enumerator] the latter without a block
 * @since 0.1.0 */
static VALUE result_each(VALUE self) {
    RETURN_SIZED_ENUMERATOR(self, 0, 0, number_of_rows);
    return each_as(self, rpg_row_lazy);
}

/* The rows as their values.
 *
 * @yieldparam row [Array]
 * @return [self, Enumerator] the latter without a block
 * @since 0.1.0 */
static VALUE result_each_array(VALUE self) {
    RETURN_SIZED_ENUMERATOR(self, 0, 0, number_of_rows);
    return each_as(self, rpg_row_array);
}

/* The rows by the names of their columns.
 *
 * @yieldparam row [Hash{String => Object}]
 * @return [self, Enumerator] the latter without a block
 * @since 0.1.0 */
static VALUE result_each_hash(VALUE self) {
    RETURN_SIZED_ENUMERATOR(self, 0, 0, number_of_rows);
    return each_as(self, rpg_row_hash);
}

/* @return [Array<Array>] the rows, each as its values
 * @since 0.1.0 */
static VALUE result_rows(VALUE self) { return all_of(self, rpg_row_array); }

/* @return [Array<Hash{String => Object}>] the rows, each by the names of its columns
 * @since 0.1.0 */
static VALUE result_hashes(VALUE self) { return all_of(self, rpg_row_hash); }

/* @return [Object, nil] the first value of the first row; nil: it is NULL, or there is no row
 * @since 0.1.0 */
static VALUE result_value(VALUE self) {
    rpg_result *result = get(self);
    rpg_cursor cursor = {.rows = &result->rows};
    rpg_message row;
    if (NIL_P(result->columns) || !rpg_rows_next(&cursor, &row)) return Qnil;
    rpg_row_maker maker = rpg_row_maker_new(result->columns, result->binary);
    VALUE value = rpg_row_first(&maker, &row);
    RB_GC_GUARD(self);
    return value;
}

bool rpg_result_is_complete(VALUE self) {
    VALUE columns = get(self)->columns;
    return NIL_P(columns) || (NIL_P(rpg_columns_unknown(columns)) && NIL_P(rpg_columns_get(columns)->tables));
}

/* @return [Array<Integer>, nil] the OIDs of types that have to be looked up before the rows are decoded */
static VALUE result_unknown_types(VALUE self) {
    VALUE columns = get(self)->columns;
    return NIL_P(columns) ? Qnil : rpg_columns_unknown(columns);
}

/* @return [Hash{String => Array<Integer>}, nil] the OIDs of tables which have columns of one name; once for each statement, and only
 *   under $VERBOSE */
static VALUE result_take_tables(VALUE self) {
    VALUE columns = get(self)->columns;
    return NIL_P(columns) ? Qnil : rpg_columns_take_tables(columns);
}

/* Its rows are not needed any more. Those that were handed out keep what they need. */
static VALUE result_release(VALUE self) {
    rpg_rows *rows = &get(self)->rows;
    size_t weight = weight_of(rows);
    rpg_rows_free(rows);
    if (weight > 0) note_passed(weight);
    return Qnil;
}

/* @return [Array<String>] the names of the columns; empty where there are none
 * @since 0.1.0 */
static VALUE result_columns(VALUE self) {
    const rpg_result *result = get(self);
    return NIL_P(result->columns) ? rb_ary_freeze(rb_ary_new()) : rpg_columns_get(result->columns)->names;
}

/* @return [Array<Integer>] the OIDs of the types of the columns */
static VALUE result_oids(VALUE self) {
    const rpg_result *result = get(self);
    return NIL_P(result->columns) ? rb_ary_freeze(rb_ary_new()) : rpg_columns_get(result->columns)->oids;
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
    rb_include_module(cResult, rb_mEnumerable);
    rb_define_method(cResult, "each", result_each, 0);
    rb_define_method(cResult, "each_array", result_each_array, 0);
    rb_define_method(cResult, "each_hash", result_each_hash, 0);
    rb_define_method(cResult, "value", result_value, 0);
    rb_define_private_method(cResult, "layout", result_layout, 0);
    rb_define_private_method(cResult, "release", result_release, 0);
    rb_define_private_method(cResult, "oids", result_oids, 0);
    rb_define_private_method(cResult, "unknown_types", result_unknown_types, 0);
    rb_define_private_method(cResult, "take_tables", result_take_tables, 0);
    rb_define_method(cResult, "rows", result_rows, 0);
    rb_define_method(cResult, "hashes", result_hashes, 0);
    rb_define_method(cResult, "columns", result_columns, 0);
    rb_define_method(cResult, "size", result_size_of, 0);
    rb_define_method(cResult, "tag", result_tag, 0);
    rb_define_method(cResult, "affected", result_affected, 0);
    rb_global_variable(&cResult);
}
