#include "server/http.h"

const ringspun_api *ringspun;
VALUE rhs_mHTTP, rhs_eUsage, rhs_eWrongThread, rhs_eTimeout;

static VALUE eRequest, eAnswer, eGone;

/* Compaction does not move it. */
static void find_class(VALUE *class, const char *path) {
    *class = rb_path2class(path);
    rb_global_variable(class);
}

void rhs_init_http(void) {
    ringspun = ringspun_get_api(2);
    find_class(&rhs_mHTTP, "Ringspun::HTTP");
    find_class(&rhs_eUsage, "Ringspun::UsageError");
    find_class(&rhs_eWrongThread, "Ringspun::WrongThreadError");
    find_class(&rhs_eTimeout, "Ringspun::TimeoutError");
    find_class(&eGone, "Ringspun::HTTP::GoneError");
    find_class(&eRequest, "Ringspun::HTTP::RequestError");
    find_class(&eAnswer, "Ringspun::HTTP::AnswerError");
}

void rhs_raise_request(uint16_t status, const char *message) {
    VALUE arguments[] = {UINT2NUM(status), rb_utf8_str_new_cstr(message)};
    rb_exc_raise(rb_class_new_instance(2, arguments, eRequest));
}

void rhs_raise_answer(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    VALUE message = rb_vsprintf(format, arguments);
    va_end(arguments);
    rb_exc_raise(rb_exc_new_str(eAnswer, message));
}

void rhs_raise_gone(void) { rb_raise(eGone, "the client has closed the connection"); }
