/* target: what a request is for, in one of four forms. Owns nothing, has no state, and may be called from any thread. */
#ifndef RINGSPUN_HTTP_TARGET_H
#define RINGSPUN_HTTP_TARGET_H

#include "codec/head.h"

/* Takes the request's target apart, and sets `form`, `path`, `query`, `host` and `is_secure`. */
rhttp_wrong rhttp_target_read(rhttp_request *request, const uint8_t *bytes);

#endif
