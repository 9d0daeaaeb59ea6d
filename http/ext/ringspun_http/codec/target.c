#include "codec/target.h"

#include <string.h>

#include "codec/chars.h"

/* What stands from there on: a path, and a query behind a question mark. */
static void split(rhttp_request *request, const uint8_t *bytes, size_t begin) {
    size_t end = rhttp_span_end(request->target);
    const uint8_t *mark = begin < end ? memchr(bytes + begin, '?', end - begin) : NULL;
    size_t path_end = mark ? (size_t)(mark - bytes) : end;
    request->path = rhttp_between(begin, path_end);
    request->query = rhttp_between(mark ? path_end + 1 : end, end);
}

/* With a port, which no scheme tells: https://www.rfc-editor.org/rfc/rfc9112#section-3.2.3 */
static rhttp_wrong read_authority(rhttp_request *request, const uint8_t *bytes) {
    request->form = RHTTP_FORM_AUTHORITY;
    bool is_one = rhttp_host_read(bytes, request->target, &request->host) && request->host.port >= 0;
    return is_one ? RHTTP_FINE : RHTTP_WRONG_TARGET_FORM;
}

/* How long the scheme is with what ends it; 0: it is none of HTTP, for which somebody else would have to be asked. */
static size_t scheme_len(const uint8_t *bytes, rhttp_span target) {
    static const char http[] = "http://", https[] = "https://";
    const uint8_t *text = bytes + target.at;
    size_t http_len = sizeof(http) - 1, https_len = sizeof(https) - 1;
    if (target.len >= http_len && rhttp_is_same(text, http_len, http, http_len)) return http_len;
    return target.len >= https_len && rhttp_is_same(text, https_len, https, https_len) ? https_len : 0;
}

/* An address before the host (`user@`) is refused: https://www.rfc-editor.org/rfc/rfc9110#section-4.2.4 */
static rhttp_wrong read_absolute(rhttp_request *request, const uint8_t *bytes) {
    size_t scheme = scheme_len(bytes, request->target);
    if (scheme == 0) return RHTTP_WRONG_TARGET;
    size_t begin = request->target.at + scheme, at = begin, end = rhttp_span_end(request->target);
    while (at < end && bytes[at] != '/' && bytes[at] != '?') at++;
    if (!rhttp_host_read(bytes, rhttp_between(begin, at), &request->host)) return RHTTP_WRONG_HOST;
    request->form = RHTTP_FORM_ABSOLUTE;
    request->is_secure = rhttp_small(bytes[request->target.at + 4]) == 's';
    split(request, bytes, at);
    return RHTTP_FINE;
}

rhttp_wrong rhttp_target_read(rhttp_request *request, const uint8_t *bytes) {
    uint8_t first = bytes[request->target.at];
    if (request->known_method == RHTTP_METHOD_CONNECT) return read_authority(request, bytes);
    if (first != '/' && first != '*') return read_absolute(request, bytes);
    bool is_path = first == '/', is_asterisk = request->target.len == 1 && request->known_method == RHTTP_METHOD_OPTIONS;
    if (!is_path && !is_asterisk) return RHTTP_WRONG_TARGET_FORM;
    request->form = is_path ? RHTTP_FORM_ORIGIN : RHTTP_FORM_ASTERISK;
    split(request, bytes, request->target.at);
    return RHTTP_FINE;
}
