/* env: the Hash of a request, as Rack has it (https://github.com/rack/rack/blob/main/SPEC.rdoc). */
#ifndef RINGSPUN_HTTP_ENV_H
#define RINGSPUN_HTTP_ENV_H

#include "server/http.h"

#include "codec/head.h"

/* @return [Hash] a copy of `base`, with what the request says. The bytes are those that the request's spans are of. */
VALUE rhs_env_of(const rhttp_request *request, const uint8_t *bytes, VALUE base);

#endif
