/* lane: one connection that any number of strands share for statements of which each stands alone: Ringspun::Postgres::Lane. Owned
 * by the machine of its stream.
 *
 * A statement lies in the lane's outbox until the tick ends; then all that lie there go out in one flight, each with a Sync of its
 * own, so that the failure of one is nobody else's. Replies come in the same order.
 *
 * There is no strand that reads. Of those who wait, one is the reader: whoever finds that there is none. It takes what has come,
 * for all, wakes those who have their reply, and goes on until it has its own; then, and when it is cancelled, the next one reads.
 *
 * A request goes OUTBOX -> SENT -> done. Whoever waits for it may leave: out of the outbox it is taken, and of one that was sent
 * the reply is dropped when it comes.
 */
#ifndef RINGSPUN_PG_LANE_H
#define RINGSPUN_PG_LANE_H

#include "client/result.h"
#include "client/statement.h"

typedef struct rpg_request {
    struct rpg_request *next;   /* in the outbox, or of those sent */
    struct rpg_lane *lane;
    VALUE statement;
    VALUE formats;              /* the Columns by which binary ones were asked for, or nil: all as text */
    ringspun_waker waker;
    bool parked;
    bool sent;
    bool done;
    bool abandoned;
    bool parses;                /* it has a Parse, and its answer has not come */
    bool again;                 /* it is to be sent once more: columns have changed, or the server does not know the name */
    uint8_t end;                /* rpg_end_kind */
    uint8_t tag_len;
    char tag[RPG_TAG_MAX];
    rpg_rows rows;
    uint8_t *error;             /* the body of an ErrorResponse, or NULL */
    size_t error_len;
    size_t params;              /* where in the lane's `params` its own are, */
    size_t params_len;          /* and how long */
} rpg_request;

typedef struct {
    rpg_request *first;
    rpg_request *last;
    uint32_t len;
} rpg_requests;

/* Rows of one request in what has come at once. */
typedef struct {
    rpg_request *request;
    size_t from;
    size_t to;
    uint64_t count;
} rpg_run_of_rows;

typedef struct rpg_lane {
    VALUE self;
    VALUE stream;
    VALUE statements;           /* Hash: SQL => Statement */
    char lost[160];             /* what the connection has ended with; empty: it goes on */
    rpg_replies replies;
    rpg_requests outbox;
    rpg_requests sent;
    rpg_out params;             /* of those in the outbox */
    rpg_out flight;
    bool flight_asked;
    const rpg_request *reader;  /* who reads now; NULL: nobody */
    rpg_run_of_rows *runs;      /* what the present look has found */
    uint32_t runs_len;
    uint32_t runs_capacity;
    size_t runs_bytes;
    uint8_t status;             /* of the last ReadyForQuery */
    uint32_t names;             /* given so far */
    char prefix[12];            /* of the names of its statements */
} rpg_lane;

#endif
