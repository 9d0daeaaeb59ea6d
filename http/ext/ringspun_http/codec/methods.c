#include "codec/methods.h"

#include <string.h>

static const struct {
    const char *text;
    size_t len;
} methods[RHTTP_METHOD_COUNT] = {
    [RHTTP_OTHER_METHOD] = {"", 0},
#define AS_ROW(name) [RHTTP_METHOD_##name] = {#name, sizeof(#name) - 1},
    RHTTP_METHODS(AS_ROW)
};

rhttp_method rhttp_method_of(const uint8_t *method, size_t len) {
    for (int i = RHTTP_OTHER_METHOD + 1; i < RHTTP_METHOD_COUNT; i++) {
        if (methods[i].len == len && memcmp(methods[i].text, method, len) == 0) return (rhttp_method)i;
    }
    return RHTTP_OTHER_METHOD;
}

const char *rhttp_method_text(rhttp_method method) { return methods[method].text; }
