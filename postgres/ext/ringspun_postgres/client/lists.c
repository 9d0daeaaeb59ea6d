#include "client/lists.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_of_name(char c) { return isalnum((unsigned char)c) || strchr("_.\"", c) || (unsigned char)c >= 0x80; }

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && isspace((unsigned char)*at)) at++;
    return at;
}

static const char *back_over_blanks(const char *at, const char *begin) {
    while (at > begin && isspace((unsigned char)at[-1])) at--;
    return at;
}

/* any($1), and others that take nothing else. */
static bool stands_in_call(const char *at, const char *begin) {
    static const char *const words[] = {"any", "all", "some", "unnest"};
    at = back_over_blanks(at, begin);
    if (at == begin || *--at != '(') return false;
    const char *end = at = back_over_blanks(at, begin);
    while (at > begin && isalpha((unsigned char)at[-1])) at--;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i]) == (size_t)(end - at) && strncasecmp(words[i], at, (size_t)(end - at)) == 0) return true;
    }
    return false;
}

/* $1::int[], whose name has no blanks in it. */
static bool is_cast_to_array(const char *at, const char *end) {
    at = skip_blanks(at, end);
    if (end - at < 2 || at[0] != ':' || at[1] != ':') return false;
    at = skip_blanks(at + 2, end);
    while (at < end && is_of_name(*at)) at++;
    return at < end && *at == '[';
}

bool rpg_shows_array(const char *sql, size_t len, long number) {
    char name[24];
    size_t size = (size_t)snprintf(name, sizeof(name), "$%ld", number);
    const char *end = sql + len;
    for (const char *at = sql; (at = memchr(at, '$', (size_t)(end - at))); at++) {
        if ((size_t)(end - at) < size || memcmp(at, name, size) != 0) continue;
        const char *behind = at + size;
        if (behind < end && isdigit((unsigned char)*behind)) continue;
        if (stands_in_call(at, sql) || is_cast_to_array(behind, end)) return true;
    }
    return false;
}
