/* arguments: checks of what methods are given. */
#include "core.h"

#include <mruby/string.h>
#include <inttypes.h>
#include <stdio.h>

int64_t rsm_int_arg(mrb_state *mrb, mrb_value value, int64_t min, int64_t max, const char *what) {
    bool fits = mrb_integer_p(value) && mrb_integer(value) >= min && mrb_integer(value) <= max;
    if (RS_LIKELY(fits)) return mrb_integer(value);
    char limits[64];
    snprintf(limits, sizeof(limits), max < MRB_INT_MAX ? "%" PRId64 " to %" PRId64 : "%" PRId64 " or more", min, max);
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: expected an Integer, %s, got %v", what, limits, mrb_inspect(mrb, value));
    return 0;
}

void rsm_check_string(mrb_state *mrb, mrb_value value, const char *what) {
    if (RS_LIKELY(mrb_string_p(value))) return;
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: expected a String, got %v", what, mrb_inspect(mrb, value));
}

mrb_value rsm_only_arg(mrb_state *mrb) {
    mrb_value value;
    mrb_get_args(mrb, "o", &value);
    return value;
}

mrb_value rsm_block_arg(mrb_state *mrb, const char *method) {
    mrb_value block;
    mrb_get_args(mrb, "&", &block);
    if (RS_UNLIKELY(mrb_nil_p(block))) mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s needs a block", method);
    return block;
}
