/* Stands before Ruby's own: says once of the buffers that the hooks of a fiber scheduler are given what Ruby 4 says of them. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <ruby.h>
#include <ruby/io/buffer.h>

typedef VALUE make(void *base, size_t size, enum rb_io_buffer_flags flags);

VALUE rb_io_buffer_new(void *base, size_t size, enum rb_io_buffer_flags flags) {
    static int warned;
    if (!warned) {
        warned = 1;
        rb_category_warn(RB_WARN_CATEGORY_EXPERIMENTAL, "IO::Buffer is experimental, says Ruby 4");
    }
    return ((make *)dlsym(RTLD_NEXT, "rb_io_buffer_new"))(base, size, flags);
}
