#include "client/statement.h"

#include <stdlib.h>

static VALUE cStatement;

static void statement_mark(void *data) {
    rb_gc_mark(((rpg_statement *)data)->sql);
    rb_gc_mark(((rpg_statement *)data)->declared);
    rb_gc_mark(((rpg_statement *)data)->history_of);
    rb_gc_mark(((rpg_statement *)data)->decoders);
    rb_gc_mark(((rpg_statement *)data)->columns);
    rb_gc_mark(((rpg_statement *)data)->older);
}

static void statement_free(void *data) {
    free(((rpg_statement *)data)->description);
    free(((rpg_statement *)data)->parameters);
    xfree(data);
}

static size_t statement_size(const void *data) { return sizeof(rpg_statement) + ((const rpg_statement *)data)->description_len; }

static const rb_data_type_t statement_type = {
    .wrap_struct_name = "Ringspun::Postgres::Statement",
    .function = {.dmark = statement_mark, .dfree = statement_free, .dsize = statement_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

uint32_t rpg_schema;

VALUE rpg_statement_new(VALUE sql, VALUE declared, VALUE decoders) {
    rpg_statement *statement;
    VALUE self = TypedData_Make_Struct(cStatement, rpg_statement, &statement_type, statement);
    statement->columns = statement->older = statement->sql = statement->declared = statement->history_of = Qnil;
    statement->sql = sql;
    statement->declared = declared;
    statement->decoders = decoders;
    statement->verdict = rpg_verdict_of(RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql));
    return self;
}

static bool is_known(const rpg_statement *statement, rpg_span description) {
    if (statement->description_len != description.len) return false;
    return description.len == 0 || memcmp(statement->description, description.bytes, description.len) == 0;
}

/* A request that has its answer is known to nobody but its strand, which keeps the statement alive. */
static void retire_columns(rpg_statement *statement) {
    if (NIL_P(statement->columns)) return;
    if (NIL_P(statement->older)) statement->older = rb_ary_new();
    rb_ary_push(statement->older, statement->columns);
    statement->columns = Qnil;
}

void rpg_statement_describe(rpg_statement *statement, rpg_span description) {
    if (statement->described && is_known(statement, description)) return;
    uint8_t *copy = description.len > 0 ? malloc(description.len) : NULL;
    if (copy) memcpy(copy, description.bytes, description.len);
    statement->described = copy || description.len == 0; /* else whoever needs it asks again */
    free(statement->description);
    statement->description = copy;
    statement->description_len = copy ? description.len : 0;
    retire_columns(statement);
}

static void forget_types(rpg_statement *statement) {
    free(statement->parameters);
    statement->parameters = NULL;
    statement->parameters_len = 0;
    statement->typed = false;
}

/* Without memory it is as if nothing was said. */
bool rpg_statement_type(rpg_statement *statement, const rpg_message *message) {
    rpg_reader reader;
    uint16_t count;
    if (!rpg_read_parameters(message, &reader, &count)) return false;
    forget_types(statement);
    uint32_t *types = count > 0 ? malloc(sizeof(*types) * count) : NULL;
    statement->typed = types || count == 0;
    statement->parameters_len = types ? count : 0;
    for (uint16_t i = 0; i < statement->parameters_len; i++) types[i] = rpg_read_u32(&reader);
    statement->parameters = types;
    return true;
}

rpg_kind rpg_statement_kind(const rpg_statement *statement, long place, uint32_t *type) {
    if (!statement->typed) return RPG_UNKNOWN_KIND;
    if (place >= statement->parameters_len) return RPG_TEXT_KIND; /* the server says that there are too many */
    *type = statement->parameters[place];
    return rpg_decoders_kind(statement->decoders, *type);
}

void rpg_statement_forget_name(rpg_statement *statement) {
    statement->used = false;
    statement->name_len = 0;
    forget_types(statement);
}

void rpg_statement_know(rpg_statement *statement, VALUE history) {
    statement->history_of = history;
    statement->history = rpg_history_get(history);
}

const char *rpg_statement_what(rpg_statement *statement) {
    if (!statement->what[0]) rpg_what_of(statement->what, RSTRING_PTR(statement->sql), (size_t)RSTRING_LEN(statement->sql));
    return statement->what;
}

VALUE rpg_statement_columns(rpg_statement *statement) {
    if (NIL_P(statement->columns) && statement->description) {
        rpg_span description = {statement->description, statement->description_len};
        statement->columns = rpg_columns_new(description, statement->decoders);
    }
    return statement->columns;
}

void rpg_init_statement(void) {
    cStatement = rb_define_class_under(rpg_mPostgres, "Statement", rb_cObject);
    rb_undef_alloc_func(cStatement);
    rb_global_variable(&cStatement);
}
