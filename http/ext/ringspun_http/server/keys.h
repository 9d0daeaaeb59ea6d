/* keys: the Strings that every env is made of, each made once, frozen, and never moved or collected. */
#ifndef RINGSPUN_HTTP_KEYS_H
#define RINGSPUN_HTTP_KEYS_H

#include "server/http.h"

#include "codec/methods.h"
#include "codec/names.h"

/* What the env of a request has beside the fields. */
#define RHS_KEYS(X)                                                                                                            \
    X(REQUEST_METHOD, "REQUEST_METHOD")                                                                                        \
    X(REQUEST_URI, "REQUEST_URI")                                                                                              \
    X(PATH_INFO, "PATH_INFO")                                                                                                  \
    X(QUERY_STRING, "QUERY_STRING")                                                                                            \
    X(SERVER_NAME, "SERVER_NAME")                                                                                              \
    X(SERVER_PORT, "SERVER_PORT")                                                                                              \
    X(SERVER_PROTOCOL, "SERVER_PROTOCOL")                                                                                      \
    X(REMOTE_USER, "REMOTE_USER")                                                                                              \
    X(PROTOCOL, "rack.protocol")                                                                                               \
    X(EMPTY, "")                                                                                                               \
    X(ROOT, "/")                                                                                                               \
    X(HTTP_1_0, "HTTP/1.0")                                                                                                    \
    X(HTTP_1_1, "HTTP/1.1")

typedef enum {
#define RHS_AS_NUMBER(name, text) RHS_##name,
    RHS_KEYS(RHS_AS_NUMBER)
#undef RHS_AS_NUMBER
    RHS_KEY_COUNT
} rhs_key;

extern VALUE rhs_keys[RHS_KEY_COUNT];
extern VALUE rhs_name_keys[RHTTP_NAME_COUNT]; /* HTTP_ACCEPT and the like; CONTENT_TYPE and CONTENT_LENGTH */
extern VALUE rhs_methods[RHTTP_METHOD_COUNT];

void rhs_init_keys(void);

/* The key of a field that has no number. */
VALUE rhs_key_of(const uint8_t *name, size_t len);

#endif
