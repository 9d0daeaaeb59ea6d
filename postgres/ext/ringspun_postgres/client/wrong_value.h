/* wrong_value: what the server sent is no value of its type. */
#ifndef RINGSPUN_PG_WRONG_VALUE_H
#define RINGSPUN_PG_WRONG_VALUE_H

#include "client/postgres.h"

NORETURN(void rpg_wrong_value(const char *type, rpg_span value));

static inline bool rpg_is_text(rpg_span value, const char *text) {
    return value.len == strlen(text) && memcmp(value.bytes, text, value.len) == 0;
}

#endif
