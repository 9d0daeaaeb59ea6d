#include "codec/verdict.h"

#include <stdint.h>
#include <string.h>

/* --- tokens --- */

/* As the server has them, whatever the locale. */

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static char small(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool is_same_word(const char *a, const char *b, size_t len) {
    while (len > 0 && small(*a) == small(*b)) a++, b++, len--;
    return len == 0;
}

typedef enum { END, WORD, QUOTED, TEXT, OTHER } token_kind;

typedef struct {
    token_kind kind;
    const char *text;           /* of a quoted name or a text: without its quotes */
    size_t len;
} token;

typedef struct {
    const char *at;
    const char *end;
} scanner;

static bool two(const scanner *s, char a, char b) { return s->end - s->at > 1 && s->at[0] == a && s->at[1] == b; }

/* Comments nest. */
static void skip_comment(scanner *s) {
    int depth = 0;
    while (s->at < s->end) {
        if (two(s, '/', '*')) depth++, s->at += 2;
        else if (!two(s, '*', '/')) s->at++;
        else if (s->at += 2, --depth == 0) return;
    }
}

static void skip_line(scanner *s) {
    while (s->at < s->end && *s->at != '\n' && *s->at != '\r') s->at++;
}

static void skip_blanks(scanner *s) {
    while (s->at < s->end) {
        if (is_blank(*s->at)) s->at++;
        else if (two(s, '-', '-')) skip_line(s);
        else if (two(s, '/', '*')) skip_comment(s);
        else return;
    }
}

static bool begins_word(char c) { return is_letter(c) || c == '_' || (unsigned char)c >= 0x80; }

static bool is_of_word(char c) { return begins_word(c) || is_digit(c) || c == '$'; }

/* Up to the quote behind which no second one stands. */
static token quoted(scanner *s, token_kind kind, bool escapes) {
    char quote = *s->at++;
    const char *begin = s->at;
    while (s->at < s->end && (*s->at != quote || two(s, quote, quote))) {
        bool pair = *s->at == quote || (escapes && *s->at == '\\' && s->end - s->at > 1);
        s->at += pair ? 2 : 1;
    }
    token found = {kind, begin, (size_t)(s->at - begin)};
    if (s->at < s->end) s->at++;
    return found;
}

static bool ends_dollars(const scanner *s, const char *tag, size_t len) {
    return (size_t)(s->end - s->at) >= len && memcmp(s->at, tag, len) == 0;
}

/* $tag$ ... $tag$, or a parameter. */
static token dollars(scanner *s) {
    const char *tag = s->at++, *begin;
    if (s->at < s->end && is_digit(*s->at)) return (token){OTHER, tag, 1};
    while (s->at < s->end && *s->at != '$' && is_of_word(*s->at)) s->at++;
    if (s->at == s->end || *s->at != '$') return (token){OTHER, tag, 1};
    size_t len = (size_t)(++s->at - tag);
    begin = s->at;
    while (s->at < s->end && !ends_dollars(s, tag, len)) s->at++;
    token found = {TEXT, begin, (size_t)(s->at - begin)};
    if (s->at < s->end) s->at += len;
    return found;
}

static token word(scanner *s) {
    const char *begin = s->at;
    while (s->at < s->end && is_of_word(*s->at)) s->at++;
    size_t len = (size_t)(s->at - begin);
    bool escapes = len == 1 && (*begin == 'e' || *begin == 'E') && s->at < s->end && *s->at == '\'';
    return escapes ? quoted(s, TEXT, true) : (token){WORD, begin, len};
}

/* A number goes as one, so that 1e5 has no word in it. */
static token other(scanner *s) {
    const char *begin = s->at++;
    if (is_digit(*begin)) {
        while (s->at < s->end && (is_of_word(*s->at) || *s->at == '.')) s->at++;
    }
    return (token){OTHER, begin, (size_t)(s->at - begin)};
}

static token next(scanner *s) {
    skip_blanks(s);
    if (s->at >= s->end) return (token){END, s->end, 0};
    if (begins_word(*s->at)) return word(s);
    if (*s->at == '"') return quoted(s, QUOTED, false);
    if (*s->at == '\'') return quoted(s, TEXT, false);
    return *s->at == '$' ? dollars(s) : other(s);
}

static token peek(const scanner *s) {
    scanner ahead = *s;
    return next(&ahead);
}

static bool is_sign(token t, char sign) { return t.kind == OTHER && t.len == 1 && *t.text == sign; }

static bool is_among(token t, const char *const *words) {
    for (; *words; words++) {
        if (strlen(*words) != t.len) continue;
        if (t.kind == WORD && is_same_word(*words, t.text, t.len)) return true;
        if (t.kind == QUOTED && memcmp(*words, t.text, t.len) == 0) return true;
    }
    return false;
}

static bool is_word(token t, const char *name) {
    const char *const words[] = {name, NULL};
    return t.kind == WORD && is_among(t, words);
}

static bool is_name(token t, const char *name) {
    const char *const words[] = {name, NULL};
    return is_among(t, words);
}

/* --- what leaves something --- */

static bool takes_word(scanner *s, const char *const *words) {
    if (peek(s).kind != WORD || !is_among(peek(s), words)) return false;
    next(s);
    return true;
}

static const char *const temporary[] = {"temp", "temporary", NULL};
static const char *const wherever[] = {"local", "global", NULL};

/* SELECT ... INTO TEMP name. A table may be called temp as well: then no name follows. */
static bool is_into_temporary(scanner s) {
    static const char *const table[] = {"table", NULL};
    static const char *const no_name[] = {"from", "where", "group", "having", "window", "union", "intersect", "except", "order", "limit",
                                          "offset", "fetch", "for", NULL};
    if (is_name(peek(&s), "pg_temp")) return true;
    takes_word(&s, wherever);
    if (!takes_word(&s, temporary)) return false;
    takes_word(&s, table);
    token name = peek(&s);
    return name.kind == QUOTED || (name.kind == WORD && !is_among(name, no_name));
}

static bool takes_lock(token name) {
    static const char *const locks[] = {"pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock",
                                        "pg_try_advisory_lock_shared", "pg_advisory_unlock", "pg_advisory_unlock_shared",
                                        "pg_advisory_unlock_all", NULL};
    return is_among(name, locks);
}

/* An argument that says that a setting is for the transaction alone. */
static bool says_local(token last, uint32_t tokens, bool named) {
    return is_word(last, "true") && (named || tokens == 1);
}

/* set_config(name, value, is_local): true for `true` alone, as no other text tells what it will be. */
static bool sets_locally(scanner s) {
    uint32_t depth = 0, argument = 0, tokens = 0;
    bool named = false, local = false;
    token last = {END, NULL, 0};
    for (token t = next(&s); t.kind != END; t = next(&s)) {
        bool ends = depth == 1 && (is_sign(t, ',') || is_sign(t, ')'));
        if (ends) {
            if (named || argument == 2) local |= says_local(last, tokens, named);
            if (is_sign(t, ')')) return local;
            argument++, tokens = 0, named = false;
            continue;
        }
        if (is_sign(t, '(')) depth++;
        else if (is_sign(t, ')')) depth--;
        if (depth == 1 && is_sign(t, '(') && argument == 0 && tokens == 0) continue; /* that of the call */
        named |= depth == 1 && is_name(t, "is_local");
        tokens++;
        last = t;
    }
    return local;
}

static bool leaves_by_call(token name, const scanner *s) {
    if ((name.kind != WORD && name.kind != QUOTED) || !is_sign(peek(s), '(')) return false;
    return takes_lock(name) || (is_name(name, "set_config") && !sets_locally(*s));
}

static bool leaves_by_rest(token before, scanner s) {
    for (token t = next(&s); t.kind != END; before = t, t = next(&s)) {
        if (leaves_by_call(t, &s)) return true;
        bool selects = is_word(t, "into") && !is_word(before, "insert") && !is_word(before, "merge");
        if (selects && is_into_temporary(s)) return true;
    }
    return false;
}

static bool drops_on_commit(scanner s) {
    static const char *const words[] = {"on", "commit", "drop"};
    uint32_t met = 0;
    for (token t = next(&s); t.kind != END && met < 3; t = next(&s)) met = is_word(t, words[met]) ? met + 1 : is_word(t, "on");
    return met == 3;
}

static bool is_in_temporary(scanner s) {
    for (token t = next(&s); t.kind != END; t = next(&s)) {
        if (is_name(t, "pg_temp") && is_sign(peek(&s), '.')) return true;
    }
    return false;
}

/* What a function, a view or a rule does, it does when it is used. */
static void judge_create(rpg_verdict *verdict, scanner s) {
    static const char *const executed[] = {"table", "materialized", NULL};
    static const char *const or_replace[] = {"or", "replace", NULL};
    while (takes_word(&s, or_replace)) {}
    takes_word(&s, wherever);
    bool is_temporary = takes_word(&s, temporary);
    takes_word(&s, (const char *const[]){"unlogged", NULL});
    bool executes = is_among(peek(&s), executed);
    is_temporary |= is_in_temporary(s);
    verdict->leaves = (is_temporary && !drops_on_commit(s)) || (executes && leaves_by_rest(peek(&s), s));
    verdict->of_session |= is_temporary;
}

/* Without ANALYZE nothing is executed. */
static bool executes_explained(scanner s) {
    static const char *const analyze[] = {"analyze", "analyse", NULL};
    for (token t = next(&s); t.kind != END; t = next(&s)) {
        if (t.kind == WORD && is_among(t, analyze)) return true;
    }
    return false;
}

static bool ends_with_transaction(scanner s) {
    static const char *const words[] = {"local", "transaction", "constraints", NULL};
    return takes_word(&s, words);
}

/* A ROLLBACK TO goes back to a savepoint, and the transaction goes on. */
static bool ends_transaction(token first, scanner s) {
    static const char *const ends[] = {"commit", "end", "abort", NULL}, *const noise[] = {"work", "transaction", NULL};
    if (is_among(first, ends)) return true;
    if (is_word(first, "prepare")) return is_word(next(&s), "transaction") && peek(&s).kind == TEXT;
    if (!is_word(first, "rollback")) return false;
    takes_word(&s, noise);
    return !is_word(peek(&s), "to");
}

rpg_verdict rpg_verdict_of(const char *sql, size_t len) {
    static const char *const session[] = {"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set", "reset",
                                          "listen", "unlisten", "prepare", "deallocate", "declare", "discard", "load", "lock", NULL};
    scanner s = {sql, sql + len};
    rpg_verdict verdict = {0};
    token first = next(&s);
    while (is_sign(first, ';') || is_sign(first, '(')) first = next(&s);
    verdict.copies = is_word(first, "copy");
    verdict.of_session = first.kind == WORD && is_among(first, session);
    verdict.ends_transaction = verdict.of_session && ends_transaction(first, s);
    if (is_word(first, "set")) verdict.ends_with_transaction = ends_with_transaction(s);
    else if (is_word(first, "create")) judge_create(&verdict, s);
    else if (!is_word(first, "explain") || executes_explained(s)) verdict.leaves = leaves_by_rest(first, s);
    verdict.of_session |= verdict.leaves;
    return verdict;
}
