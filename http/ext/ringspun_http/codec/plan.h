/* plan: how the body of a message that is sent is to be framed, and whether the connection goes on behind it. Owns nothing, has
 * no state, and may be called from any thread. */
#ifndef RINGSPUN_HTTP_PLAN_H
#define RINGSPUN_HTTP_PLAN_H

#include "codec/head.h"

typedef enum {
    RHTTP_GIVES_NOTHING,        /* no body */
    RHTTP_GIVES_LENGTH,         /* one with a length that is known */
    RHTTP_GIVES_STREAM          /* one whose end is seen only when it is there */
} rhttp_gives;

/* What is known before the first byte of an answer goes out. */
typedef struct {
    uint8_t version;            /* rhttp_version of the request */
    uint8_t method;             /* rhttp_method of the request */
    uint8_t gives;              /* rhttp_gives */
    bool keeps_alive;           /* the request wants it, and so does the server */
    bool says_len;              /* the program has said the length itself (a field of its own), and it does not only follow from
                                   the bytes that it gives: so it counts also where none of these are sent */
    uint16_t status;
    uint64_t len;               /* of RHTTP_GIVES_LENGTH */
} rhttp_answer;

typedef enum { RHTTP_SAYS_NOTHING, RHTTP_SAYS_CLOSE, RHTTP_SAYS_KEEP_ALIVE } rhttp_says;

typedef struct {
    uint8_t body;               /* rhttp_body: what follows the head. LENGTH: as they are; CHUNKED: each piece as a chunk; NONE: nothing of
                                   what the program gives */
    uint8_t says;               /* rhttp_says, of the connection */
    bool says_len;              /* the head has `content-length` */
    bool keeps_alive;           /* another message may follow */
    uint64_t len;               /* of `content-length` */
} rhttp_plan;

rhttp_plan rhttp_plan_answer(const rhttp_answer *answer);

/* The same for a request that a client sends. `len` is that of RHTTP_GIVES_LENGTH. */
rhttp_plan rhttp_plan_request(rhttp_method method, rhttp_gives gives, uint64_t len);

/* The fields that say so: `content-length` or `transfer-encoding`, and `connection`. No other fields of these names are sent, but
 * for a `connection` that belongs to an upgrade. */
size_t rhttp_plan_size(const rhttp_plan *plan);
uint8_t *rhttp_put_plan(uint8_t *to, const rhttp_plan *plan);

#endif
