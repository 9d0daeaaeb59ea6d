#include "codec/wrong.h"

static const struct {
    uint16_t status;
    const char *text;
} wrongs[RHTTP_WRONG_COUNT] = {
    [RHTTP_FINE] = {0, "nothing is wrong"},
#define AS_ROW(name, status, text) [RHTTP_WRONG_##name] = {status, text},
    RHTTP_WRONGS(AS_ROW)
};

uint16_t rhttp_wrong_status(rhttp_wrong wrong) { return wrongs[wrong].status; }

const char *rhttp_wrong_text(rhttp_wrong wrong) { return wrongs[wrong].text; }
