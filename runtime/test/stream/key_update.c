/* SSL_key_update(3) for an OpenSSL::SSL::SSLSocket, on which the openssl gem has no method for it. */

#include <dlfcn.h>
#include <ruby.h>

/* The library that is loaded already: the gem's symbols are not everybody's. */
static VALUE request(VALUE self, VALUE socket, VALUE libssl) {
    int (*update)(void *, int) = (int (*)(void *, int))dlsym(dlopen(StringValueCStr(libssl), RTLD_LAZY), "SSL_key_update");

    return INT2NUM(update(RTYPEDDATA_GET_DATA(socket), 1));
}

void Init_key_update(void) {
    rb_define_singleton_method(rb_define_module("KeyUpdate"), "request", request, 2);
}
