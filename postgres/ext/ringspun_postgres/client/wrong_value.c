#include "client/wrong_value.h"

void rpg_wrong_value(const char *type, rpg_span value) {
    size_t shown = value.len < 64 ? value.len : 64;
    VALUE bytes = rb_str_inspect(rb_str_new((const char *)value.bytes, (long)shown));
    rb_raise(rpg_eDecode, "no value of type %s, %" PRIuSIZE " bytes: %" PRIsVALUE, type, value.len, bytes);
}
