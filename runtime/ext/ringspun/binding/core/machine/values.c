/* values: checks what callers pass to methods: blocks, options, numbers. A wrong one raises a UsageError that says what is
 * expected. */
#include "machine.h"

/* Characters of a value that a message shows: about two lines of a terminal. */
#define INSPECT_MAX 200

static ID id_timeout;

void rsb_need_block(const char *method) {
    if (RS_UNLIKELY(!rb_block_given_p())) rb_raise(rsb_eUsage, "%s needs a block", method);
}

void rsb_options(VALUE options, int count, const ID *names, VALUE *given) {
    size_t found = 0;
    for (int i = 0; i < count && found < RHASH_SIZE(options); i++) {
        given[i] = rb_hash_lookup2(options, ID2SYM(names[i]), Qundef);
        found += given[i] != Qundef;
    }
    if (RS_UNLIKELY(found < RHASH_SIZE(options))) rb_get_kwargs(options, names, 0, count, given); /* raises and names the unknown */
}

VALUE rsb_timeout_option(VALUE options) {
    if (NIL_P(options)) return Qnil;
    VALUE given = Qundef;
    rb_get_kwargs(options, &id_timeout, 0, 1, &given);
    return given == Qundef ? Qnil : given;
}

VALUE rsb_inspect(VALUE object) {
    int state = 0;
    VALUE text = rb_protect(rb_inspect, object, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        return rb_sprintf("an object of %" PRIsVALUE, rb_obj_class(object));
    }
    if (RSTRING_LEN(text) <= INSPECT_MAX) return text;
    return rb_str_cat_cstr(rb_str_substr(text, 0, INSPECT_MAX), "...");
}

static bool in_64_bits(VALUE value, int64_t *number) {
    if (RB_FIXNUM_P(value)) {
        *number = FIX2LONG(value);
        return true;
    }
    int sign = rb_integer_pack(value, number, 1, sizeof(*number), 0, INTEGER_PACK_2COMP | INTEGER_PACK_NATIVE_BYTE_ORDER);
    return (sign == 1 && *number >= 0) || (sign == -1 && *number < 0);
}

int64_t rsb_integer(VALUE value, int64_t min, int64_t max, const char *what) {
    if (!RB_INTEGER_TYPE_P(value)) {
        rb_raise(rsb_eUsage, "%s must be an Integer, got %" PRIsVALUE, what, rsb_inspect(value));
    }
    int64_t number = 0;
    bool known = in_64_bits(value, &number);
    if (known && number >= min && number <= max) return number;
    VALUE text = known ? LL2NUM(number) : rb_str_new_cstr("a number of more than 64 bits");
    bool negative = known ? number < 0 : RTEST(rb_funcall(value, '<', 1, INT2FIX(0)));
    if (min == 0 && negative) rb_raise(rsb_eUsage, "%s must not be negative, got %" PRIsVALUE, what, text);
    rb_raise(rsb_eUsage, "%s must lie between %lld and %lld, got %" PRIsVALUE, what, (long long)min, (long long)max, text);
}

void rsb_init_values(void) { id_timeout = rb_intern("timeout"); }
