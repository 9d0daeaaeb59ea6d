#include "client/history.h"

/* Runs before a text is known. This and what follows: docs/decisions/26. */
#define KNOWN 16u

/* Of the last 32 runs four may have taken long: a pause of this program looks like one of the server, and a busy disk is one. What
 * takes very long now and then has a mean that says so. */
#define SLOW_MAX 4

/* What took this many times as long as it may counts as two. */
#define VERY 20

/* Texts that a pool knows at most. A program that writes values into its texts has a new one each time. */
#define TEXTS_MAX 4096u

static VALUE cHistory, cHistories;
static ID id_texts;

static const rb_data_type_t history_type = {
    .wrap_struct_name = "Ringspun::Postgres::History",
    .function = {.dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE history_new(VALUE sql) {
    rpg_history *history;
    VALUE self = TypedData_Make_Struct(cHistory, rpg_history, &history_type, history);
    history->kind = rpg_kind_of(RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql));
    return self;
}

rpg_history *rpg_history_get(VALUE self) { return rb_check_typeddata(self, &history_type); }

VALUE rpg_histories_find(VALUE histories, VALUE sql) {
    if (NIL_P(histories)) return history_new(sql);
    VALUE texts = rb_ivar_get(histories, id_texts), history = rb_hash_lookup(texts, sql);
    if (!NIL_P(history)) return history;
    while (RHASH_SIZE(texts) >= TEXTS_MAX) rb_funcall(texts, rb_intern("shift"), 0);
    history = history_new(sql);
    rb_hash_aset(texts, sql, history);
    return history;
}

void rpg_history_note(rpg_history *history, int64_t took) {
    if (history->runs < UINT8_MAX) history->runs++;
    history->slow = history->slow << 1 | (took > RPG_SLOW);
    if (took > VERY * RPG_SLOW) history->slow = history->slow << 1 | 1;
    history->mean += (took - history->mean) / 8;
}

bool rpg_history_is_quick(const rpg_history *history) {
    if (history->runs < KNOWN || history->mean > RPG_SLOW) return false;
    return history->slow == 0 || __builtin_popcount(history->slow) <= SLOW_MAX; /* a call, where there is no such instruction */
}

static VALUE histories_initialize(VALUE self) {
    rb_ivar_set(self, id_texts, rb_hash_new());
    return self;
}

/* As if it had run once more. For tests, in which the clock is to decide nothing.
 *
 * @param seconds [Numeric] */
static VALUE histories_note(VALUE self, VALUE sql, VALUE seconds) {
    rpg_history_note(rpg_history_get(rpg_histories_find(self, sql)), (int64_t)(NUM2DBL(seconds) * 1e9));
    return Qnil;
}

void rpg_init_histories(void) {
    id_texts = rb_intern("texts"); /* no name that Ruby code could use */
    cHistory = rb_define_class_under(rpg_mPostgres, "History", rb_cObject);
    rb_undef_alloc_func(cHistory);
    cHistories = rb_define_class_under(rpg_mPostgres, "Histories", rb_cObject);
    rb_define_method(cHistories, "initialize", histories_initialize, 0);
    rb_define_method(cHistories, "note", histories_note, 2);
    rb_global_variable(&cHistory);
    rb_global_variable(&cHistories);
}
