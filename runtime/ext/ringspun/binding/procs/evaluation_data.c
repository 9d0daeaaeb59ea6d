/* evaluation_data: the program's own data in an evaluation: a Hash, made when something is stored. */
#include "evaluation.h"

/* @param key [Object]
 * @return [Object, nil] the value stored under that key
 * @since 0.1.0 */
static VALUE evaluation_aref(VALUE self, VALUE key) {
    VALUE data = rsb_evaluation_get(self)->data;
    return NIL_P(data) ? Qnil : rb_hash_aref(data, key);
}

/* @param key [Object]
 * @param value [Object]
 * @since 0.1.0 */
static VALUE evaluation_aset(VALUE self, VALUE key, VALUE value) {
    rsb_evaluation *evaluation = rsb_evaluation_get(self);
    rb_check_frozen(self);
    if (NIL_P(evaluation->data)) evaluation->data = rb_hash_new();
    return rb_hash_aset(evaluation->data, key, value);
}

/* @param key [Object]
 * @return [Boolean]
 * @since 0.1.0 */
static VALUE evaluation_key_p(VALUE self, VALUE key) {
    VALUE data = rsb_evaluation_get(self)->data;
    return NIL_P(data) ? Qfalse : rb_funcall(data, rb_intern("key?"), 1, key);
}

/* @return [Array<Object>]
 * @since 0.1.0 */
static VALUE evaluation_keys(VALUE self) {
    VALUE data = rsb_evaluation_get(self)->data;
    return NIL_P(data) ? rb_ary_new() : rb_funcall(data, rb_intern("keys"), 0);
}

void rsb_init_evaluation_data(void) {
    rb_define_method(rsb_cEvaluation, "[]", evaluation_aref, 1);
    rb_define_method(rsb_cEvaluation, "[]=", evaluation_aset, 2);
    rb_define_method(rsb_cEvaluation, "key?", evaluation_key_p, 1);
    rb_define_method(rsb_cEvaluation, "keys", evaluation_keys, 0);
}
