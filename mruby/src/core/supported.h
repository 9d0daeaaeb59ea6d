/* supported: refuses builds of mruby that this gem cannot be part of. Included before all that would fail there. */
#ifndef RINGSPUN_MRUBY_SUPPORTED_H
#define RINGSPUN_MRUBY_SUPPORTED_H

#include <mruby.h>

#ifdef MRB_NO_FLOAT
#error "mruby-ringspun needs floats: times are seconds with a fraction"
#endif
#ifdef MRB_USE_FLOAT32
#error "mruby-ringspun needs floats of 64 bits: in those of 32 the seconds of a clock have no fraction"
#endif
#ifdef MRB_NO_BOXING
#error "mruby-ringspun keeps values in one word: build mruby with word boxing or NaN boxing"
#endif

#endif
