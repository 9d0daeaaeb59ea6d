/* connection: one connection of a client, for the strand that serves it: which message is read, how its body is framed, and what of
 * the answer has been sent. It belongs to the object Ringspun::HTTP::Connection, which keeps the stream alive.
 *
 * A request is read (receive.c), its body on demand (body.c), and its answer written (answer.c); then comes the next request. Whoever
 * is out of this order gets a UsageError.
 */
#ifndef RINGSPUN_HTTP_CONNECTION_H
#define RINGSPUN_HTTP_CONNECTION_H

#include "server/http.h"

#include "codec/chunks.h"
#include "codec/head.h"
#include "codec/plan.h"

typedef enum {
    RHS_WAITS,                  /* for a request */
    RHS_READS,                  /* its head */
    RHS_OWES,                   /* an answer to it */
    RHS_HOLDS,                  /* the head of the answer is made, and not sent: another answer may still be given */
    RHS_ANSWERS,                /* the head is sent, and not yet all of the body */
    RHS_HAS_ANSWERED,
    RHS_TUNNELS                 /* another protocol is spoken: all bytes are the program's */
} rhs_step;

typedef struct {
    int64_t first_byte_ns;      /* until the first byte of the first request has come; RINGSPUN_NEVER: no limit, as in all of these */
    int64_t keep_alive_ns;      /* the same for the requests behind it */
    int64_t head_ns;            /* from the first byte of a head to its last */
    int64_t body_ns;            /* between two pieces of a body */
    int64_t write_ns;           /* until the client has taken some of what waits to be sent */
    uint64_t body_rate;         /* bytes a second that a body must have on the average, once RHS_RATE_AFTER_NS have gone; 0: any */
} rhs_clocks;

typedef struct {
    VALUE stream;
    VALUE thread;               /* whose machine serves it */
    VALUE held;                 /* String with the head of the answer, in RHS_HOLDS; else nil */
    VALUE trailers_read;        /* Hash of those of the request; nil before the end of its body, or where there are none */
    VALUE base;                 /* the env of a request, without what only the request says */
    VALUE asked;                /* Array of the protocols to which the request may be upgraded; nil: none */
    rhttp_limits limits;
    rhs_clocks clocks;
    int64_t due_ns;             /* when the present wait for a request is over; 0: there is none */
    rhttp_field *list;          /* of a head that has come in pieces; NULL: none has */
    rhttp_field *trailers;      /* of a chunked body; NULL: there was none */
    rhttp_request request;
    uint8_t step;               /* rhs_step */
    uint8_t version;            /* rhttp_version of the request */
    uint8_t method;             /* rhttp_method of the request */
    uint8_t body;               /* rhttp_body of the request */
    bool body_has_ended;        /* all of it was read */
    bool owes_continue;         /* the client waits for a 100 */
    bool keeps_alive;           /* the request wants it */
    bool is_last;               /* the server does not */
    bool is_broken;             /* nobody knows where the next request begins */
    bool has_served;            /* a request before the present one */
    bool head_is_due;           /* the one that is held, at the end of the tick */
    uint8_t in_a_row;           /* requests that were there before anybody had waited for them */
    uint64_t left;              /* bytes of the body that have not been read, where there is a length */
    uint64_t read;              /* bytes of the body that have */
    int64_t body_since;         /* when the first of them was asked for */
    rhttp_chunks chunks;
    rhttp_plan plan;            /* of the answer */
    uint64_t sent;              /* bytes of its body */
    uint16_t status;            /* of the answer; 0: none has begun */
} rhs_connection;

/* Raises UsageError unless it is in that step, and WrongThreadError on another thread. */
rhs_connection *rhs_connection_at(VALUE self, rhs_step step, const char *what);
rhs_connection *rhs_connection_get(VALUE self);

/* For whatever does more than look: raises WrongThreadError on another thread than its own, before anything has changed. */
rhs_connection *rhs_connection_here(VALUE self);

VALUE rhs_init_connection(void);
void rhs_init_receive(VALUE class);
void rhs_init_body(VALUE class);
void rhs_init_answer(VALUE class);
void rhs_init_pace(void);

/* Raises RequestError. The answer to this request is the last of the connection. */
NORETURN(void rhs_refuse(rhs_connection *connection, uint16_t status, const char *message));
NORETURN(void rhs_refuse_wrong(rhs_connection *connection, uint8_t wrong));

/* What comes of a wait for bytes. */
typedef enum { RHS_MORE, RHS_ENDED, RHS_LATE } rhs_came;

/* Waits until the client has sent more, has closed its side, or the deadline has come. Raises what else ends the wait, also the
 * TimeoutError of a scope around it. */
rhs_came rhs_wait_for_more(rhs_connection *connection, int64_t deadline);

/* Waits while more of the answer waits to be sent than a client may be behind. Raises TimeoutError if the client takes nothing in
 * time, which the stream knows for the client's fault. May switch strands. */
void rhs_keep_pace(rhs_connection *connection);

/* The same, until all of it is in the hands of the kernel, but not a head that is held. */
void rhs_flush(rhs_connection *connection);

/* The same, where more is due. False: the client has closed its side. Refuses the request with 408 at the deadline. */
bool rhs_more(rhs_connection *connection, int64_t deadline, const char *what);

/* Whether what is left of the body may be read and dropped, and the next request found behind it. Of chunks it is known only when
 * the last one has come. */
bool rhs_may_drop(const rhs_connection *connection);

/* Of seconds; nil: RINGSPUN_NEVER. */
int64_t rhs_nanoseconds(VALUE seconds);

/* So long from now. */
int64_t rhs_from_now(int64_t ns);

#endif
