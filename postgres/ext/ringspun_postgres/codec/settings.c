#include "codec/settings.h"

#include <stdlib.h>

/* The bytes of all that may differ. A server reports some fifteen settings. */
#define CHANGED_MAX ((size_t)1 << 16)

/* What the server's configuration and its role decide: a session that differs from its beginning has not changed them. */
static const char *const of_server[] = {"in_hot_standby", "default_transaction_read_only", "server_version", "server_encoding", NULL};

static rpg_span text_at(const rpg_out *out, size_t at) {
    return (rpg_span){out->bytes + at, strlen((const char *)out->bytes + at)};
}

static bool is_same(rpg_span a, rpg_span b) { return a.len == b.len && (a.len == 0 || memcmp(a.bytes, b.bytes, a.len) == 0); }

static bool is_text(rpg_span a, const char *text) { return is_same(a, (rpg_span){(const uint8_t *)text, strlen(text)}); }

/* A name and its value. */
typedef struct {
    size_t at;
    rpg_span name;
    rpg_span value;
} entry;

static bool entry_at(const rpg_out *out, size_t at, entry *found) {
    if (at >= out->len) return false;
    rpg_span name = text_at(out, at);
    *found = (entry){at, name, text_at(out, at + name.len + 1)};
    return true;
}

static size_t behind(const entry *each) { return each->at + each->name.len + each->value.len + 2; }

static bool find(const rpg_out *out, rpg_span name, entry *found) {
    for (size_t at = 0; entry_at(out, at, found); at = behind(found)) {
        if (is_same(found->name, name)) return true;
    }
    return false;
}

static void take_out(rpg_out *out, rpg_span name) {
    entry found;
    if (!find(out, name, &found)) return;
    size_t next = behind(&found);
    memmove(out->bytes + found.at, out->bytes + next, out->len - next);
    out->len -= next - found.at;
}

static bool put(rpg_out *out, rpg_span name, rpg_span value) {
    size_t before = out->len;
    rpg_put_text(out, name.bytes, name.len);
    rpg_put_text(out, value.bytes, value.len);
    if (out->state == RPG_OUT_FINE) return true;
    rpg_out_cut(out, before);
    return false;
}

void rpg_settings_free(rpg_settings *settings) {
    rpg_out_free(&settings->begun);
    rpg_out_free(&settings->changed);
}

bool rpg_settings_begin(rpg_settings *settings, rpg_span name, rpg_span value) {
    take_out(&settings->begun, name);
    return put(&settings->begun, name, value);
}

static bool is_of_server(rpg_span name) {
    for (const char *const *each = of_server; *each; each++) {
        if (is_text(name, *each)) return true;
    }
    return false;
}

bool rpg_settings_note(rpg_settings *settings, rpg_span name, rpg_span value) {
    entry begun;
    if (is_of_server(name)) return true;
    take_out(&settings->changed, name);
    if (find(&settings->begun, name, &begun) && is_same(begun.value, value)) return true;
    return settings->changed.len + name.len + value.len < CHANGED_MAX && put(&settings->changed, name, value);
}

static bool is_unreadable(const entry *each) {
    if (is_text(each->name, "client_encoding")) return !is_text(each->value, "UTF8");
    if (is_text(each->name, "DateStyle")) return each->value.len < 3 || memcmp(each->value.bytes, "ISO", 3) != 0;
    return is_text(each->name, "IntervalStyle") && !is_text(each->value, "iso_8601");
}

rpg_span rpg_settings_unreadable(const rpg_settings *settings) {
    entry each;
    for (size_t at = 0; entry_at(&settings->changed, at, &each); at = behind(&each)) {
        if (is_unreadable(&each)) return each.name;
    }
    return (rpg_span){NULL, 0};
}
