/* has: the part of has.h that is not inline. */
#include "cruby.h"

#include <ruby/io/buffer.h>

static VALUE make_buffer(VALUE unused) {
    static const char byte;
    rb_io_buffer_free_locked(rb_io_buffer_new((void *)&byte, sizeof(byte), RB_IO_BUFFER_LOCKED | RB_IO_BUFFER_READONLY));
    return Qnil;
}

static VALUE set_warning(VALUE on) {
    return rb_funcall(rb_path2class("Warning"), rb_intern("[]="), 2, ID2SYM(rb_intern("experimental")), on);
}

void rsb_make_first_buffer(void) {
    VALUE before = rb_funcall(rb_path2class("Warning"), rb_intern("[]"), 1, ID2SYM(rb_intern("experimental")));
    set_warning(Qfalse);
    rb_ensure(make_buffer, Qnil, set_warning, before);
}
