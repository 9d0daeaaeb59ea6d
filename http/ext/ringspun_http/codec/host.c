#include "codec/host.h"

#include "codec/chars.h"

/* TCP has sixteen bits for it: https://www.rfc-editor.org/rfc/rfc9293#section-3.1 */
#define PORT_MAX 65535
#define PORT_DIGITS_MAX 5u /* of that number */

/* Where an address in brackets ends; `begin`: it does not. Whether its digits make one, a
 * connection to it would show. */
static size_t past_address(const uint8_t *bytes, size_t begin, size_t end) {
    size_t at = begin + 1;
    while (at < end && (rhttp_hex(bytes[at]) >= 0 || bytes[at] == ':' || bytes[at] == '.')) at++;
    return at < end && bytes[at] == ']' && at > begin + 1 ? at + 1 : begin;
}

static size_t past_name(const uint8_t *bytes, size_t begin, size_t end) {
    return begin < end && bytes[begin] == '[' ? past_address(bytes, begin, end) : rhttp_past(bytes, begin, end, RHTTP_HOST);
}

/* An empty port is none: https://www.rfc-editor.org/rfc/rfc3986#section-3.2.3 */
static bool read_port(const uint8_t *bytes, size_t at, size_t end, int32_t *port) {
    if (end - at > PORT_DIGITS_MAX) return false;
    *port = at == end ? -1 : 0;
    for (; at < end; at++) {
        if (!rhttp_is_digit(bytes[at])) return false;
        *port = *port * 10 + (bytes[at] - '0');
    }
    return *port <= PORT_MAX;
}

bool rhttp_host_read(const uint8_t *bytes, rhttp_span text, rhttp_host *host) {
    size_t end = rhttp_span_end(text), at = past_name(bytes, text.at, end);
    *host = (rhttp_host){text, rhttp_between(text.at, at), -1};
    if (at == text.at) return false;
    return at == end || (bytes[at] == ':' && read_port(bytes, at + 1, end, &host->port));
}

bool rhttp_host_is_same(const uint8_t *bytes, const rhttp_host *one, const rhttp_host *other, int32_t usual_port) {
    if (one->name.len != other->name.len) return false;
    for (uint32_t i = 0; i < one->name.len; i++) {
        if (rhttp_small(bytes[one->name.at + i]) != rhttp_small(bytes[other->name.at + i])) return false;
    }
    int32_t port = one->port < 0 ? usual_port : one->port;
    return port == (other->port < 0 ? usual_port : other->port);
}
