#include "values.h"

#include <mruby/variable.h>

void rsm_values_init(mrb_state *mrb, rsm_values *values, mrb_value object, mrb_sym name) {
    *values = (rsm_values){.pages = mrb_ary_new(mrb)};
    mrb_iv_set(mrb, object, name, values->pages);
}

static mrb_value new_page(mrb_state *mrb, rsm_values *values) {
    mrb_value page = mrb_ary_new_capa(mrb, RSM_PAGE);
    mrb_ary_push(mrb, values->pages, page);
    return page;
}

void rsm_values_add_page(mrb_state *mrb, rsm_values *values) {
    int arena = mrb_gc_arena_save(mrb);
    mrb_value page = new_page(mrb, values);
    for (int i = 0; i < RSM_PAGE; i++) RARRAY_PTR(page)[i] = mrb_nil_value();
    ARY_SET_LEN(mrb_ary_ptr(page), RSM_PAGE);
    values->len += RSM_PAGE;
    mrb_gc_arena_restore(mrb, arena);
}

/* The first page grows as it is filled, for most rows are short. */
static mrb_value page_to_push(mrb_state *mrb, rsm_values *values) {
    if (values->len % RSM_PAGE > 0) return rsm_values_page(values, values->len);
    if (values->len > 0) return new_page(mrb, values);
    mrb_value first = mrb_ary_new(mrb);
    mrb_ary_push(mrb, values->pages, first);
    return first;
}

void rsm_values_push(mrb_state *mrb, rsm_values *values, mrb_value value) {
    int arena = mrb_gc_arena_save(mrb);
    mrb_ary_push(mrb, page_to_push(mrb, values), value);
    values->len++;
    mrb_gc_arena_restore(mrb, arena);
}

void rsm_values_clear(mrb_state *mrb, rsm_values *values) {
    mrb_ary_clear(mrb, values->pages);
    values->len = 0;
}
