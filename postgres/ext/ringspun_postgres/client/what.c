#include "client/what.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define BEGINNING "an answer of Postgres to "
#define CUT "..."

static size_t blanks(const char *at, const char *end) {
    size_t len = 0;
    while (at + len < end && isspace((unsigned char)at[len])) len++;
    return len;
}

/* The text that follows PASSWORD in statements about roles. */
static bool is_before_secret(const char *at, const char *end) {
    static const char word[] = "password";
    if ((size_t)(end - at) < sizeof(word) || strncasecmp(at, word, sizeof(word) - 1) != 0) return false;
    at += sizeof(word) - 1;
    at += blanks(at, end);
    if (end - at > 1 && (*at == 'e' || *at == 'E' || *at == 'u' || *at == 'U')) at += at[1] == '&' ? 2 : 1;
    return at < end && (*at == '\'' || *at == '$');
}

/* Without a character of UTF-8 whose end would be left out: of that `at` is a part. */
static size_t cut(const char *what, size_t len, const char *at) {
    if (((unsigned char)*at & 0xc0) != 0x80) return len;
    do len--; while (((unsigned char)what[len] & 0xc0) == 0x80);
    return len;
}

void rpg_what_of(char what[RPG_WHAT_MAX], const char *sql, size_t len) {
    const char *at = sql + blanks(sql, sql + len), *end = sql + len;
    size_t out = sizeof(BEGINNING) - 1, most = RPG_WHAT_MAX - sizeof(CUT);
    memcpy(what, BEGINNING, out);
    while (at < end && out < most && !is_before_secret(at, end)) {
        size_t blank = blanks(at, end);
        at += blank;
        if (blank == 0) what[out++] = *at++;
        else if (at < end) what[out++] = ' ';
    }
    if (at < end) {
        out = cut(what, out, at);
        memcpy(what + out, CUT, sizeof(CUT) - 1);
        out += sizeof(CUT) - 1;
    }
    what[out] = '\0';
}
