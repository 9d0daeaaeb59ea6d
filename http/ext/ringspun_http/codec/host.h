/* host: the name or address in front of a port. Owns nothing, has no state, and may be called from any thread. */
#ifndef RINGSPUN_HTTP_HOST_H
#define RINGSPUN_HTTP_HOST_H

#include "codec/span.h"

typedef struct {
    rhttp_span text;            /* all of it: `example.org:8080` */
    rhttp_span name;            /* `example.org`; an address of IPv6 with its brackets */
    int32_t port;               /* -1: none is named */
} rhttp_host;

/* Reads those bytes of `bytes`. False: they are no host, or an empty one, which no URL of HTTP has
 * (https://www.rfc-editor.org/rfc/rfc9110#section-4.2.1). */
bool rhttp_host_read(const uint8_t *bytes, rhttp_span text, rhttp_host *host);

/* Whether they are the same, but for capitals, and where the one without a port means that one. */
bool rhttp_host_is_same(const uint8_t *bytes, const rhttp_host *one, const rhttp_host *other, int32_t usual_port);

#endif
