/* wrong: what can be wrong with a message, with the status that says so to the peer, and a clause for the log. Owns nothing,
 * has no state, and may be called from any thread.
 *
 * Each is the end of its connection: where a message that is wrong ends, nobody knows.
 */
#ifndef RINGSPUN_HTTP_WRONG_H
#define RINGSPUN_HTTP_WRONG_H

#include <stdint.h>

/* The statuses: 400 where the message is none, 413, 414 and 431 where it is too long, 501 where only an extension of HTTP would
 * know what is asked, 505 for another version (https://www.rfc-editor.org/rfc/rfc9110#section-15.5), and 502 where an answer that
 * a client has got is none: what a server would answer that is between the two. */
#define RHTTP_WRONGS(X)                                                                                                        \
    X(REQUEST_LINE, 400, "the request line is not a method, a target and a version with one space between them")               \
    X(METHOD_LONG, 501, "the method is longer than any that is known")                                                         \
    X(LINE_LONG, 414, "the request line is too long")                                                                          \
    X(TARGET, 400, "the target of the request is no path and no address")                                                      \
    X(TARGET_FORM, 400, "a target of this form does not go with this method")                                                  \
    X(VERSION, 505, "the version is none of HTTP/1")                                                                            \
    X(STATUS_LINE, 502, "the first line of the answer is not a version, a status and a reason")                                \
    X(STATUS_LINE_LONG, 502, "the first line of the answer is too long")                                                       \
    X(HEAD_LONG, 431, "the head is too long")                                                                                  \
    X(FIELDS_MANY, 431, "there are too many fields")                                                                           \
    X(NAME_LONG, 431, "the name of a field is too long")                                                                       \
    X(NAME, 400, "the name of a field is no token with a colon behind it")                                                     \
    X(BLANK_IN_NAME, 400, "a blank stands between the name of a field and its colon")                                          \
    X(FOLDED, 400, "a line begins with a blank, as one does that goes on with the line before")                                \
    X(CONTROL, 400, "a value has a control character")                                                                         \
    X(NUL, 400, "there is a byte of zero")                                                                                     \
    X(BARE_CR, 400, "a carriage return has no line feed behind it")                                                            \
    X(BARE_LF, 400, "a line feed has no carriage return before it")                                                            \
    X(NO_HOST, 400, "there is no field `host`")                                                                                \
    X(HOSTS, 400, "there are two fields `host`")                                                                               \
    X(HOST, 400, "the host is no name or address with a port")                                                                 \
    X(OTHER_HOST, 400, "the target of a CONNECT names another host than the field `host`")                                     \
    X(LENGTH, 400, "`content-length` is not one number that a body can have")                                                  \
    X(LENGTHS, 400, "there are two fields `content-length`")                                                                   \
    X(LENGTH_AND_CODING, 400, "there are both `content-length` and `transfer-encoding`")                                       \
    X(CODING, 400, "`transfer-encoding` is not `chunked`")                                                                     \
    X(CODINGS, 400, "there are two fields `transfer-encoding`")                                                                \
    X(CODING_UNKNOWN, 501, "`transfer-encoding` names another coding before `chunked`")                                        \
    X(CODING_OF_1_0, 400, "HTTP/1.0 has no `transfer-encoding`")                                                               \
    X(BODY_OF_CONNECT, 400, "a CONNECT has no body")                                                                           \
    X(BODY_OF_STATUS, 502, "an answer with this status has no body")                                                           \
    X(BODY_LONG, 413, "the body is too long")                                                                                  \
    X(CHUNK_SIZE, 400, "the size of a chunk is not one to sixteen hexadecimal digits")                                         \
    X(CHUNK_END, 400, "a chunk does not end where its size says")                                                              \
    X(EXTENSION, 400, "an extension of a chunk is no name with a value")                                                       \
    X(EXTENSIONS_LONG, 400, "the extensions of the chunks are too long")                                                       \
    X(TRAILERS_LONG, 431, "the trailers are too long")                                                                         \
    X(TRAILER_NAME, 400, "a trailer has the name of a field that belongs into the head")

typedef enum {
    RHTTP_FINE,
#define RHTTP_AS_CODE(name, status, text) RHTTP_WRONG_##name,
    RHTTP_WRONGS(RHTTP_AS_CODE)
#undef RHTTP_AS_CODE
    RHTTP_WRONG_COUNT
} rhttp_wrong;

/* The status of the answer to a request like that; 0 for RHTTP_FINE. */
uint16_t rhttp_wrong_status(rhttp_wrong wrong);

/* A clause without a full stop. */
const char *rhttp_wrong_text(rhttp_wrong wrong);

#endif
