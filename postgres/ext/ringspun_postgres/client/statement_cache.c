#include "client/statement_cache.h"

static void forget(rpg_lane *lane, rpg_statement *statement) {
    if (statement->name_len > 0) rpg_put_text(&lane->closes, statement->name, statement->name_len);
    rpg_statement_forget_name(statement);
}

/* A second chance for what was used since the last look: https://en.wikipedia.org/wiki/Page_replacement_algorithm#Second-chance */
static void make_room(rpg_lane *lane) {
    while (RHASH_SIZE(lane->statements) >= lane->cache) {
        VALUE pair = rb_funcall(lane->statements, rb_intern("shift"), 0);
        rpg_statement *statement = rpg_statement_get(RARRAY_AREF(pair, 1));
        if (statement->recent) {
            statement->recent = false;
            rb_hash_aset(lane->statements, RARRAY_AREF(pair, 0), RARRAY_AREF(pair, 1));
        } else {
            forget(lane, statement);
        }
    }
}

/* The same text with other types of parameters is another statement. No text has a NUL. */
static VALUE key_of(VALUE sql, VALUE declared) {
    if (RB_LIKELY(NIL_P(declared))) return sql;
    VALUE key = rb_str_new(RSTRING_PTR(sql), RSTRING_LEN(sql));
    rb_str_cat(key, "", 1);
    return rb_str_cat(key, RSTRING_PTR(declared), RSTRING_LEN(declared));
}

static uint32_t schema_of(const rpg_lane *lane) { return rpg_schema + lane->schema; }

/* One that was made before the schema has changed. Whoever is under way with it keeps the types by which its parameters were
 * written, and parses it anew. */
static VALUE drop_outdated(rpg_lane *lane, VALUE key, VALUE found) {
    rpg_statement *statement = rpg_statement_get(found);
    if (RB_LIKELY(statement->schema == schema_of(lane))) return found;
    if (statement->name_len > 0) rpg_put_text(&lane->closes, statement->name, statement->name_len);
    statement->name_len = 0;
    statement->used = false;
    rb_hash_delete(lane->statements, key);
    return Qnil;
}

VALUE rpg_lane_statement(rpg_lane *lane, VALUE sql, VALUE declared) {
    VALUE key = key_of(sql, declared), statement = rb_hash_lookup(lane->statements, key);
    if (!NIL_P(statement)) statement = drop_outdated(lane, key, statement);
    if (NIL_P(statement)) {
        sql = rb_str_new_frozen(sql);
        statement = rpg_statement_new(sql, declared, lane->decoders);
        rpg_statement_get(statement)->schema = schema_of(lane);
        rpg_statement_know(rpg_statement_get(statement), rpg_histories_find(lane->histories, sql));
        make_room(lane);
        rb_hash_aset(lane->statements, NIL_P(declared) ? rpg_statement_get(statement)->sql : key, statement);
    } else {
        rpg_statement_get(statement)->recent = true;
    }
    return statement;
}
