/* errors: the errors of Ringspun. For any thread that holds the GVL. */
#ifndef RINGSPUN_BINDING_CORE_ERRORS_H
#define RINGSPUN_BINDING_CORE_ERRORS_H

#include "binding/binding.h"

/* An error with that message, whose format is as rb_sprintf takes it. */
PRINTF_ARGS(VALUE rsb_error(VALUE class, const char *format, ...), 2, 3);
/* The others become what Ringspun.suppressed lists for that error. */
void rsb_suppress(VALUE error, VALUE others);
/* For errinfo, where `break`, `throw` and a kill leave what is no object at all: asking that for its class would crash. */
static inline bool rsb_is_exception(VALUE info) {
    return !RB_SPECIAL_CONST_P(info) && RB_BUILTIN_TYPE(info) != RUBY_T_IMEMO && rb_obj_is_kind_of(info, rb_eException);
}

#endif
