/* methods: those that are usual, by numbers. Owns nothing, has no state, and may be called from any thread.
 *
 * Capitals do matter: https://www.rfc-editor.org/rfc/rfc9110#section-9.1
 */
#ifndef RINGSPUN_HTTP_METHODS_H
#define RINGSPUN_HTTP_METHODS_H

#include <stddef.h>
#include <stdint.h>

/* Those of https://www.rfc-editor.org/rfc/rfc9110#section-9.3 and RFC 5789. */
#define RHTTP_METHODS(X) X(GET) X(HEAD) X(POST) X(PUT) X(DELETE) X(OPTIONS) X(PATCH) X(TRACE) X(CONNECT)

typedef enum {
    RHTTP_OTHER_METHOD,
#define RHTTP_AS_METHOD(name) RHTTP_METHOD_##name,
    RHTTP_METHODS(RHTTP_AS_METHOD)
#undef RHTTP_AS_METHOD
    RHTTP_METHOD_COUNT
} rhttp_method;

rhttp_method rhttp_method_of(const uint8_t *method, size_t len);

/* Empty for RHTTP_OTHER_METHOD. */
const char *rhttp_method_text(rhttp_method method);

#endif
