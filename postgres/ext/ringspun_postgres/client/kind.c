#include "client/kind.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* What is left of the text. */
typedef struct {
    const char *at;
    const char *end;
} text;

static bool comes(const text *t, const char *two) { return t->end - t->at >= 2 && t->at[0] == two[0] && t->at[1] == two[1]; }

static void skip_line(text *t) {
    while (t->at < t->end && *t->at != '\n' && *t->at != '\r') t->at++;
}

/* They nest: https://www.postgresql.org/docs/17/sql-syntax-lexical.html#SQL-SYNTAX-COMMENTS */
static void skip_comment(text *t) {
    int depth = 0;
    do {
        if (comes(t, "/*")) depth++, t->at += 2;
        else if (comes(t, "*/")) depth--, t->at += 2;
        else t->at++;
    } while (depth > 0 && t->at < t->end);
}

/* A quote that is doubled ends one string and begins the next. An escaped one ends it too early, and some of its words count. */
static void skip_quoted(text *t, char quote) {
    const char *end = memchr(t->at + 1, quote, (size_t)(t->end - t->at - 1));
    t->at = end ? end + 1 : t->end;
}

static bool is_of_word(char c) { return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80; }

/* $1, or a string between two $tag$. */
static void skip_dollar(text *t) {
    const char *tag = t->at, *at = t->at + 1;
    while (at < t->end && is_of_word(*at)) at++;
    size_t len = (size_t)(at - tag) + 1;
    t->at = at;
    if (at == t->end || *at != '$' || isdigit((unsigned char)tag[1])) return;
    for (t->at = at + 1; t->at < t->end; t->at++) {
        if (*t->at != '$' || (size_t)(t->end - t->at) < len || memcmp(t->at, tag, len) != 0) continue;
        t->at += len;
        return;
    }
}

/* The next word of SQL's own, or of a name without quotes. */
static bool next_word(text *t, const char **word, size_t *len) {
    while (t->at < t->end) {
        if (comes(t, "--")) skip_line(t);
        else if (comes(t, "/*")) skip_comment(t);
        else if (*t->at == '\'' || *t->at == '"') skip_quoted(t, *t->at);
        else if (*t->at == '$') skip_dollar(t);
        else if (is_of_word(*t->at)) break;
        else t->at++;
    }
    *word = t->at;
    while (t->at < t->end && (is_of_word(*t->at) || *t->at == '$')) t->at++;
    *len = (size_t)(t->at - *word);
    return *len > 0;
}

static bool is_called(const text *t) {
    const char *at = t->at;
    while (at < t->end && isspace((unsigned char)*at)) at++;
    return at < t->end && *at == '(';
}

static bool is_one_of(const char *word, size_t len, const char *const *words) {
    for (; *words; words++) {
        if (strlen(*words) == len && strncasecmp(*words, word, len) == 0) return true;
    }
    return false;
}

/* Each may stand before a parenthesis: words of SQL and types, and functions that neither write nor lock nor wait. */
static const char *const harmless[] = {
    "select", "from", "where", "and", "or", "not", "in", "any", "all", "some", "exists", "values", "as", "on", "using", "over", "filter",
    "within", "group", "by", "having", "limit", "offset", "join", "lateral", "union", "except", "intersect", "when", "then", "else",
    "case", "is", "like", "ilike", "between", "distinct", "partition", "order", "materialized", "with", "array", "row", "cast", "interval",
    "varchar", "char", "character", "varying", "numeric", "decimal", "bit", "time", "timestamp", "timestamptz", "float", "sets", "rollup",
    "cube", "coalesce", "nullif", "greatest", "least", "extract", "substring", "substr", "position", "overlay", "trim", "ltrim", "rtrim",
    "btrim", "count", "sum", "min", "max", "avg", "bool_and", "bool_or", "every", "array_agg", "string_agg", "json_agg", "jsonb_agg",
    "json_object_agg", "jsonb_object_agg", "json_build_object", "jsonb_build_object", "json_build_array", "jsonb_build_array", "to_json",
    "to_jsonb", "row_to_json", "row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "ntile", "now", "date_trunc",
    "date_part", "age", "to_char", "to_date", "to_timestamp", "to_number", "make_date", "lower", "upper", "initcap", "length", "char_length",
    "octet_length", "concat", "concat_ws", "replace", "regexp_replace", "regexp_match", "regexp_matches", "split_part", "left", "right",
    "lpad", "rpad", "repeat", "reverse", "strpos", "starts_with", "format", "md5", "encode", "decode", "abs", "round", "ceil", "ceiling",
    "floor", "trunc", "mod", "power", "sqrt", "random", "unnest", "generate_series", "array_length", "array_position", "array_remove",
    "array_append", "array_cat", "array_to_string", "string_to_array", "cardinality", "jsonb_array_elements", "jsonb_each", "jsonb_set",
    "jsonb_path_query", "jsonb_typeof", "json_array_elements", "gen_random_uuid", "plainto_tsquery", "websearch_to_tsquery", "to_tsvector",
    "to_tsquery", "ts_rank", "current_setting", "grouping", "percentile_cont", "similarity", "host", "pg_typeof", NULL};

static const char *const reading[] = {"select", "values", "table", "with", "show", "explain", NULL};

/* Wherever they stand: UPDATE and SHARE also behind FOR, and each in a WITH or behind EXPLAIN ANALYZE. */
static const char *const writing[] = {"insert", "update", "delete", "merge", "into", "share", "create", "refresh", "call", "execute", NULL};

/* https://www.postgresql.org/docs/17/sql-call.html, and others that cannot run inside of a transaction. */
static const char *const committing[] = {"call", "do", "vacuum", "reindex", "cluster", NULL};
static const char *const concurrently[] = {"concurrently", NULL};

rpg_effect rpg_kind_of(const char *sql, size_t len) {
    text t = {sql, sql + len};
    const char *word;
    size_t size;
    if (!next_word(&t, &word, &size)) return RPG_READS;
    if (is_one_of(word, size, committing)) return RPG_ALONE;
    rpg_effect kind = is_one_of(word, size, reading) ? RPG_READS : RPG_WRITES;
    bool utility = kind == RPG_WRITES && !is_one_of(word, size, writing);
    while (next_word(&t, &word, &size)) {
        if (utility && is_one_of(word, size, concurrently)) return RPG_ALONE;
        if (is_one_of(word, size, writing) || (is_called(&t) && !is_one_of(word, size, harmless))) kind = RPG_WRITES;
    }
    return kind;
}
