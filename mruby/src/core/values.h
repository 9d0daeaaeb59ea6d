/* values: a long row of values that the collector sees. An Array of mruby's holds 131,072 at most (MRB_ARY_LENGTH_MAX), so these lie
 * in pages: Arrays in an Array. A page that is whole never moves.
 */
#ifndef RINGSPUN_MRUBY_VALUES_H
#define RINGSPUN_MRUBY_VALUES_H

#include "supported.h"

#include <mruby/array.h>

/* Values in a page: of 256 strands with five each (RSM_KEPT), and far from what an Array holds (MRB_ARY_LENGTH_MAX). */
enum { RSM_PAGE = 1280 };

typedef struct {
    mrb_value pages;            /* Array, which an object keeps alive */
    mrb_int len;
} rsm_values;

/* An empty row, which the object keeps alive by that name. */
void rsm_values_init(mrb_state *mrb, rsm_values *values, mrb_value object, mrb_sym name);

/* A page of nil. */
void rsm_values_add_page(mrb_state *mrb, rsm_values *values);
void rsm_values_push(mrb_state *mrb, rsm_values *values, mrb_value value);
void rsm_values_clear(mrb_state *mrb, rsm_values *values);

static inline mrb_value rsm_values_page(const rsm_values *values, mrb_int at) { return RARRAY_PTR(values->pages)[at / RSM_PAGE]; }

static inline mrb_value *rsm_values_place(const rsm_values *values, mrb_int at) {
    return RARRAY_PTR(rsm_values_page(values, at)) + at % RSM_PAGE;
}

static inline void rsm_values_set(mrb_state *mrb, rsm_values *values, mrb_int at, mrb_value value) {
    *rsm_values_place(values, at) = value;
    mrb_field_write_barrier_value(mrb, mrb_basic_ptr(rsm_values_page(values, at)), value);
}

#endif
