/* request: one statement on its way: what is sent, and what has come of it. Owned by its lane until it is done, then by the strand
 * that waits for it.
 *
 * OUTBOX -> sent -> done. A strand may leave at any time. A request that lies in the outbox is freed then; one that was sent is
 * abandoned: its reply is dropped when it comes.
 *
 * A stream of rows is several as well, one after the other, which it calls its legs: the first executes the statement for so many
 * rows, others go on from there, and the last is the Sync.
 *
 * A batch is several requests with one Sync, which is that of the last. A strand waits for the last, which has all of them in `parts`.
 *
 * A script is several statements as one simple query, whose results come one after the other. Each result is a request of its own
 * that was never sent: it has the rows and the tag, and in place of parameters the body of the RowDescription, if there was one.
 */
#ifndef RINGSPUN_PG_REQUEST_OF_LANE_H
#define RINGSPUN_PG_REQUEST_OF_LANE_H

#include "client/rows.h"
#include "client/result.h"
#include "client/seen.h"
#include "client/what.h"
#include "codec/replies.h"

typedef enum { RPG_NO_LEG, RPG_FIRST_LEG, RPG_NEXT_LEG, RPG_LAST_LEG } rpg_leg;

/* Of a COPY, which is a leg: the server has said that it begins, its strand knows, and has sent all, or that it gives up. */
typedef enum { RPG_NO_COPY_ASKED, RPG_COPY_ASKED, RPG_COPY_BEGUN, RPG_COPY_GOES, RPG_COPY_SENT } rpg_copy_stage;

typedef struct rpg_request {
    struct rpg_request *next;   /* in the outbox, or of those sent */
    struct rpg_lane *lane;
    VALUE statement;            /* nil: an empty query, which only waits for its turn */
    VALUE caller;               /* the one that is given the answer, and waits in no strand; nil: a strand or thread waits */
    VALUE thread;               /* that waits, if it is in no strand: wake.h; or nil */
    VALUE formats;              /* the Columns by which binary values were asked for; nil: all as text */
    ringspun_waker waker;
    bool parked;
    bool roused;                /* done, and in the lane's list of those whose strands the machine has to wake */
    bool sent;
    bool behind;                /* when it was sent others were unanswered */
    bool unsafe;                /* of a shared lane: it has left a transaction open, or changed the session */
    bool done;
    bool abandoned;
    uint8_t leg;                /* rpg_leg; of one with rows its strand takes them as they come */
    uint8_t copy;               /* rpg_copy_stage */
    uint8_t copy_way;           /* RPG_COPY_IN or RPG_COPY_OUT */
    uint8_t copy_format;        /* 0: text, 1: binary */
    uint16_t copy_columns;
    bool suspended;             /* there are more rows */
    bool parses;                /* it has a Parse, with the statement's name if it has one, that is not answered */
    bool again;                 /* it was sent once before, and is not once more */
    bool prepared;              /* the statement has a name from its first use */
    bool describes;             /* it asks only what the statement's parameters and columns are */
    bool syncs;                 /* it ends with a Sync */
    bool continues;             /* a batch of which others come before it */
    bool passes;                /* it leaves before others, and a lane that is held */
    bool closes;                /* nothing is sent behind it: window.h */
    bool writes;                /* it may wait for a lock */
    bool moved;                 /* it was not sent, and goes elsewhere */
    uint32_t named;             /* the statement's number at the Bind; 0: it had no name there */
    uint8_t end;                /* rpg_end_kind */
    uint8_t tag_len;
    char tag[RPG_TAG_MAX];
    rpg_rows rows;
    uint8_t *error;             /* the body of an ErrorResponse, or NULL */
    size_t error_len;
    rpg_seen *seen;             /* NULL: nobody observes the lane, or it was not sent */
    struct rpg_script *script;  /* of several statements that are sent as one; NULL: it is one */
    struct rpg_request **parts; /* of the last of a batch: all of them, in order */
    uint32_t parts_len;
    size_t flight_len;          /* bytes that were sent for it */
    size_t params_len;
    uint8_t params[];           /* as a Bind has them */
} rpg_request;

typedef struct {
    rpg_request *first;
    rpg_request *last;
    uint32_t len;
} rpg_requests;

typedef struct rpg_script {
    rpg_requests results;
    bool open;                  /* the last of them has not its tag yet */
    char what[RPG_WHAT_MAX];    /* its strand waits for */
} rpg_script;

/* The number of its parameters, and whether one, at that place from 0 on, is sent in binary. */
static inline uint16_t rpg_request_params(const rpg_request *request) {
    return request->params_len > 0 ? rpg_load_u16(request->params) : 0;
}

static inline bool rpg_request_is_binary(const rpg_request *request, uint16_t place) {
    return place < rpg_request_params(request) && rpg_load_u16(request->params + 2 + (size_t)place * 2) != 0;
}

bool rpg_request_has_binary(const rpg_request *request);

/* NULL: no memory. */
rpg_request *rpg_request_new(struct rpg_lane *lane, VALUE statement, rpg_span params);
void rpg_request_mark(const rpg_request *request);

void rpg_requests_append(rpg_requests *list, rpg_request *request);

/* Behind those at the beginning that pass. */
void rpg_requests_add_passing(rpg_requests *list, rpg_request *request);
rpg_request *rpg_requests_take_first(rpg_requests *list);
void rpg_requests_take_out(rpg_requests *list, rpg_request *request);
void rpg_requests_mark(const rpg_requests *list);

/* Whether its SQLSTATE is that. */
bool rpg_request_failed_by(const rpg_request *request, const char *sqlstate);

/* Whether the message of its error begins so. */
bool rpg_request_complains(const rpg_request *request, const char *words);

/* The same of any field of its error: https://www.postgresql.org/docs/17/protocol-error-fields.html */
bool rpg_request_has_field(const rpg_request *request, uint8_t field, const char *begin);

#endif
