/* head: the first line and the fields of a request or of an answer, where they lie in the caller's buffer, and what follows from
 * them. The struct is the caller's; nothing is copied, so spans hold as long as the bytes do. It may be called from any thread,
 * by one at a time.
 *
 * Bytes come in pieces. Each call is given all of the head that there is by now, from its first byte on, and goes on where the
 * last one ended. When it is whole, what follows it in the buffer is the body's, or the next message's.
 *
 * It is strict: what two readers could take for two things is refused, also where the RFC lets a reader be lenient. So a proxy in
 * front of a server that uses it sees as many requests as the server does.
 */
#ifndef RINGSPUN_HTTP_HEAD_H
#define RINGSPUN_HTTP_HEAD_H

#include "codec/fields.h"
#include "codec/host.h"
#include "codec/limits.h"
#include "codec/methods.h"

/* What follows a head: https://www.rfc-editor.org/rfc/rfc9112#section-6.3 */
typedef enum {
    RHTTP_BODY_NONE,            /* the next message */
    RHTTP_BODY_LENGTH,          /* as many bytes as `body_len` says; may be none */
    RHTTP_BODY_CHUNKED,         /* chunks.h takes it apart */
    RHTTP_BODY_UNTIL_CLOSE,     /* all that comes; of an answer alone */
    RHTTP_BODY_TUNNEL           /* another protocol: behind a 101, or a CONNECT that has succeeded */
} rhttp_body;

typedef enum { RHTTP_1_0 = 10, RHTTP_1_1 = 11 } rhttp_version;

typedef struct {
    const rhttp_limits *limits; /* of the caller, for as long as the head is read */
    rhttp_fields fields;        /* `list` and `count` have the fields; `wrong` and `at` say what is wrong, and where */
    uint32_t len;               /* of the head, with its empty line, and one before it */
    uint32_t line;              /* where the first line begins */
    uint8_t step;
    uint8_t version;            /* rhttp_version */
    uint8_t body;               /* rhttp_body */
    bool keeps_alive;           /* whether the sender wants another message on this connection */
    uint64_t body_len;          /* of RHTTP_BODY_LENGTH */
    rhttp_span upgrade;         /* the protocols that the sender would go over to; of no length where it names none, or where its
                                   version or `connection` does not allow it */
} rhttp_head;

/* The four forms of https://www.rfc-editor.org/rfc/rfc9112#section-3.2 */
typedef enum {
    RHTTP_FORM_ORIGIN,          /* /path?query */
    RHTTP_FORM_ABSOLUTE,        /* http://host/path?query */
    RHTTP_FORM_AUTHORITY,       /* host:port, of a CONNECT */
    RHTTP_FORM_ASTERISK         /* *, of an OPTIONS */
} rhttp_form;

typedef struct {
    rhttp_head head;
    rhttp_span method;
    rhttp_span target;          /* as it was sent */
    rhttp_span path;            /* up to the question mark; may be empty in the absolute form, and means `/` there */
    rhttp_span query;           /* behind it */
    rhttp_host host;            /* of the target where it has one, else of the field `host`; `text` has no length
                                   where there is neither */
    uint8_t known_method;       /* rhttp_method */
    uint8_t form;               /* rhttp_form */
    bool is_secure;             /* the absolute form says `https` */
    bool expects_continue;      /* the client waits for a 100 before it sends the body that it has */
} rhttp_request;

typedef struct {
    rhttp_head head;
    rhttp_span reason;          /* may be empty */
    uint16_t status;            /* 100 to 999 */
    uint8_t asked;              /* rhttp_method of the request, by which a body may be missing */
} rhttp_response;

/* `list` has room for limits->fields_max. */
void rhttp_request_begin(rhttp_request *request, const rhttp_limits *limits, rhttp_field *list);

/* The head begins at `bytes`. An empty line before it is skipped: some clients send one behind a body
 * (https://www.rfc-editor.org/rfc/rfc9112#section-2.2). */
rhttp_found rhttp_request_take(rhttp_request *request, const uint8_t *bytes, size_t len);

/* Whether a byte of a request has been seen, but for an empty line before it: then a server that closes the connection owes
 * an answer. */
bool rhttp_request_has_begun(const rhttp_request *request);

void rhttp_response_begin(rhttp_response *response, const rhttp_limits *limits, rhttp_field *list, rhttp_method asked);

/* After a 1xx other than 101 another head follows, for which it begins again. */
rhttp_found rhttp_response_take(rhttp_response *response, const uint8_t *bytes, size_t len);

/* The first field of that name behind `after`, or with NULL the first of all; NULL: there is none. */
const rhttp_field *rhttp_head_next(const rhttp_head *head, rhttp_name name, const rhttp_field *after);

#endif
