/* names: the names of fields that are usual, by numbers, so that a caller makes a key of each only once. Owns nothing, has
 * no state, and may be called from any thread.
 *
 * The number is found by a perfect hash over the length of a name and four of its letters, which stand here beside each name: the
 * first, the one in the middle (at half of the length), the last but one, and the last. Two names in one place are an error of
 * the compiler (-Woverride-init), and then other factors of PLACE have to be found; test_names.c looks for letters
 * that are not those of the name.
 */
#ifndef RINGSPUN_HTTP_NAMES_H
#define RINGSPUN_HTTP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HEAD_ONLY: it says where a message ends, where it goes, where it comes from, or what to do with its body, so it comes too late
 * in a trailer: https://www.rfc-editor.org/rfc/rfc9110#section-6.5.1 */
#define RHTTP_NAMES(X)                                                                                                         \
    X(ACCEPT, "accept", 'a', 'e', 'p', 't', ANYWHERE)                                                                          \
    X(ACCEPT_CHARSET, "accept-charset", 'a', 'c', 'e', 't', ANYWHERE)                                                          \
    X(ACCEPT_ENCODING, "accept-encoding", 'a', 'e', 'n', 'g', ANYWHERE)                                                        \
    X(ACCEPT_LANGUAGE, "accept-language", 'a', 'l', 'g', 'e', ANYWHERE)                                                        \
    X(ACCEPT_RANGES, "accept-ranges", 'a', '-', 'e', 's', ANYWHERE)                                                            \
    X(ACCESS_CONTROL_REQUEST_HEADERS, "access-control-request-headers", 'a', 'r', 'r', 's', ANYWHERE)                          \
    X(ACCESS_CONTROL_REQUEST_METHOD, "access-control-request-method", 'a', '-', 'o', 'd', ANYWHERE)                            \
    X(AGE, "age", 'a', 'g', 'g', 'e', HEAD_ONLY)                                                                               \
    X(ALLOW, "allow", 'a', 'l', 'o', 'w', ANYWHERE)                                                                            \
    X(AUTHORIZATION, "authorization", 'a', 'i', 'o', 'n', HEAD_ONLY)                                                           \
    X(CACHE_CONTROL, "cache-control", 'c', 'c', 'o', 'l', HEAD_ONLY)                                                           \
    X(CONNECTION, "connection", 'c', 'c', 'o', 'n', HEAD_ONLY)                                                                 \
    X(CONTENT_DISPOSITION, "content-disposition", 'c', 'i', 'o', 'n', ANYWHERE)                                                \
    X(CONTENT_ENCODING, "content-encoding", 'c', 'e', 'n', 'g', HEAD_ONLY)                                                     \
    X(CONTENT_LANGUAGE, "content-language", 'c', 'l', 'g', 'e', HEAD_ONLY)                                                     \
    X(CONTENT_LENGTH, "content-length", 'c', '-', 't', 'h', HEAD_ONLY)                                                         \
    X(CONTENT_LOCATION, "content-location", 'c', 'l', 'o', 'n', HEAD_ONLY)                                                     \
    X(CONTENT_RANGE, "content-range", 'c', 't', 'g', 'e', HEAD_ONLY)                                                           \
    X(CONTENT_SECURITY_POLICY, "content-security-policy", 'c', 'u', 'c', 'y', ANYWHERE)                                        \
    X(CONTENT_TYPE, "content-type", 'c', 't', 'p', 'e', HEAD_ONLY)                                                             \
    X(COOKIE, "cookie", 'c', 'k', 'i', 'e', HEAD_ONLY)                                                                         \
    X(DATE, "date", 'd', 't', 't', 'e', HEAD_ONLY)                                                                             \
    X(DNT, "dnt", 'd', 'n', 'n', 't', ANYWHERE)                                                                                \
    X(ETAG, "etag", 'e', 'a', 'a', 'g', ANYWHERE)                                                                              \
    X(EXPECT, "expect", 'e', 'e', 'c', 't', HEAD_ONLY)                                                                         \
    X(EXPIRES, "expires", 'e', 'i', 'e', 's', HEAD_ONLY)                                                                       \
    X(FORWARDED, "forwarded", 'f', 'a', 'e', 'd', ANYWHERE)                                                                    \
    X(FROM, "from", 'f', 'o', 'o', 'm', ANYWHERE)                                                                              \
    X(HOST, "host", 'h', 's', 's', 't', HEAD_ONLY)                                                                             \
    X(HTTP2_SETTINGS, "http2-settings", 'h', 'e', 'g', 's', HEAD_ONLY)                                                         \
    X(IF_MATCH, "if-match", 'i', 'a', 'c', 'h', HEAD_ONLY)                                                                     \
    X(IF_MODIFIED_SINCE, "if-modified-since", 'i', 'i', 'c', 'e', HEAD_ONLY)                                                   \
    X(IF_NONE_MATCH, "if-none-match", 'i', 'e', 'c', 'h', HEAD_ONLY)                                                           \
    X(IF_RANGE, "if-range", 'i', 'a', 'g', 'e', HEAD_ONLY)                                                                     \
    X(IF_UNMODIFIED_SINCE, "if-unmodified-since", 'i', 'f', 'c', 'e', HEAD_ONLY)                                               \
    X(KEEP_ALIVE, "keep-alive", 'k', 'a', 'v', 'e', HEAD_ONLY)                                                                 \
    X(LAST_EVENT_ID, "last-event-id", 'l', 'v', 'i', 'd', ANYWHERE)                                                            \
    X(LAST_MODIFIED, "last-modified", 'l', 'o', 'e', 'd', ANYWHERE)                                                            \
    X(LINK, "link", 'l', 'n', 'n', 'k', ANYWHERE)                                                                              \
    X(LOCATION, "location", 'l', 't', 'o', 'n', HEAD_ONLY)                                                                     \
    X(MAX_FORWARDS, "max-forwards", 'm', 'r', 'd', 's', HEAD_ONLY)                                                             \
    X(ORIGIN, "origin", 'o', 'g', 'i', 'n', ANYWHERE)                                                                          \
    X(PRAGMA, "pragma", 'p', 'g', 'm', 'a', HEAD_ONLY)                                                                         \
    X(PRIORITY, "priority", 'p', 'r', 't', 'y', ANYWHERE)                                                                      \
    X(PROXY_AUTHENTICATE, "proxy-authenticate", 'p', 'h', 't', 'e', HEAD_ONLY)                                                 \
    X(PROXY_AUTHORIZATION, "proxy-authorization", 'p', 'h', 'o', 'n', HEAD_ONLY)                                               \
    X(PROXY_CONNECTION, "proxy-connection", 'p', 'n', 'o', 'n', HEAD_ONLY)                                                     \
    X(RANGE, "range", 'r', 'n', 'g', 'e', HEAD_ONLY)                                                                           \
    X(REFERER, "referer", 'r', 'e', 'e', 'r', ANYWHERE)                                                                        \
    X(RETRY_AFTER, "retry-after", 'r', '-', 'e', 'r', HEAD_ONLY)                                                               \
    X(SAVE_DATA, "save-data", 's', '-', 't', 'a', ANYWHERE)                                                                    \
    X(SEC_CH_UA, "sec-ch-ua", 's', 'c', 'u', 'a', ANYWHERE)                                                                    \
    X(SEC_CH_UA_MOBILE, "sec-ch-ua-mobile", 's', 'a', 'l', 'e', ANYWHERE)                                                      \
    X(SEC_CH_UA_PLATFORM, "sec-ch-ua-platform", 's', '-', 'r', 'm', ANYWHERE)                                                  \
    X(SEC_FETCH_DEST, "sec-fetch-dest", 's', 'c', 's', 't', ANYWHERE)                                                          \
    X(SEC_FETCH_MODE, "sec-fetch-mode", 's', 'c', 'd', 'e', ANYWHERE)                                                          \
    X(SEC_FETCH_SITE, "sec-fetch-site", 's', 'c', 't', 'e', ANYWHERE)                                                          \
    X(SEC_FETCH_USER, "sec-fetch-user", 's', 'c', 'e', 'r', ANYWHERE)                                                          \
    X(SEC_GPC, "sec-gpc", 's', '-', 'p', 'c', ANYWHERE)                                                                        \
    X(SEC_WEBSOCKET_ACCEPT, "sec-websocket-accept", 's', 'k', 'p', 't', ANYWHERE)                                              \
    X(SEC_WEBSOCKET_EXTENSIONS, "sec-websocket-extensions", 's', 't', 'n', 's', ANYWHERE)                                      \
    X(SEC_WEBSOCKET_KEY, "sec-websocket-key", 's', 'o', 'e', 'y', ANYWHERE)                                                    \
    X(SEC_WEBSOCKET_PROTOCOL, "sec-websocket-protocol", 's', 'e', 'o', 'l', ANYWHERE)                                          \
    X(SEC_WEBSOCKET_VERSION, "sec-websocket-version", 's', 'k', 'o', 'n', ANYWHERE)                                            \
    X(SERVER, "server", 's', 'v', 'e', 'r', ANYWHERE)                                                                          \
    X(SET_COOKIE, "set-cookie", 's', 'o', 'i', 'e', HEAD_ONLY)                                                                 \
    X(STRICT_TRANSPORT_SECURITY, "strict-transport-security", 's', 'p', 't', 'y', ANYWHERE)                                    \
    X(TE, "te", 't', 'e', 't', 'e', HEAD_ONLY)                                                                                 \
    X(TRACEPARENT, "traceparent", 't', 'p', 'n', 't', ANYWHERE)                                                                \
    X(TRACESTATE, "tracestate", 't', 's', 't', 'e', ANYWHERE)                                                                  \
    X(TRAILER, "trailer", 't', 'i', 'e', 'r', HEAD_ONLY)                                                                       \
    X(TRANSFER_ENCODING, "transfer-encoding", 't', '-', 'n', 'g', HEAD_ONLY)                                                   \
    X(UPGRADE, "upgrade", 'u', 'r', 'd', 'e', HEAD_ONLY)                                                                       \
    X(UPGRADE_INSECURE_REQUESTS, "upgrade-insecure-requests", 'u', 'c', 't', 's', ANYWHERE)                                    \
    X(USER_AGENT, "user-agent", 'u', 'a', 'n', 't', ANYWHERE)                                                                  \
    X(VARY, "vary", 'v', 'r', 'r', 'y', HEAD_ONLY)                                                                             \
    X(VIA, "via", 'v', 'i', 'i', 'a', ANYWHERE)                                                                                \
    X(WWW_AUTHENTICATE, "www-authenticate", 'w', 'e', 't', 'e', HEAD_ONLY)                                                     \
    X(X_CSRF_TOKEN, "x-csrf-token", 'x', '-', 'e', 'n', ANYWHERE)                                                              \
    X(X_FORWARDED_FOR, "x-forwarded-for", 'x', 'r', 'o', 'r', ANYWHERE)                                                        \
    X(X_FORWARDED_HOST, "x-forwarded-host", 'x', 'd', 's', 't', ANYWHERE)                                                      \
    X(X_FORWARDED_PORT, "x-forwarded-port", 'x', 'd', 'r', 't', ANYWHERE)                                                      \
    X(X_FORWARDED_PROTO, "x-forwarded-proto", 'x', 'd', 't', 'o', ANYWHERE)                                                    \
    X(X_HTTP_METHOD_OVERRIDE, "x-http-method-override", 'x', 'o', 'd', 'e', ANYWHERE)                                          \
    X(X_REAL_IP, "x-real-ip", 'x', 'a', 'i', 'p', ANYWHERE)                                                                    \
    X(X_REQUEST_ID, "x-request-id", 'x', 'e', 'i', 'd', ANYWHERE)                                                              \
    X(X_REQUEST_START, "x-request-start", 'x', 's', 'r', 't', ANYWHERE)                                                        \
    X(X_REQUESTED_WITH, "x-requested-with", 'x', 't', 't', 'h', ANYWHERE)

typedef enum {
    RHTTP_OTHER_NAME,
#define RHTTP_AS_NUMBER(name, text, first, middle, before_last, last, where) RHTTP_NAME_##name,
    RHTTP_NAMES(RHTTP_AS_NUMBER)
#undef RHTTP_AS_NUMBER
    RHTTP_NAME_COUNT
} rhttp_name;

/* Capitals do not matter. The name is a token. */
rhttp_name rhttp_name_of(const uint8_t *name, size_t len);

/* In small letters; empty for RHTTP_OTHER_NAME. */
const char *rhttp_name_text(rhttp_name name);

/* Whether it must not be a trailer. */
bool rhttp_name_is_of_head_only(rhttp_name name);

#endif
