/* replies: which answers a connection still owes, in their order, and what the next message is an answer to. No I/O; it belongs to
 * the connection.
 *
 * Every request that is sent is noted with the messages that it consists of (rpg_replies_expect), and with a tag by which the
 * caller knows it again. A server answers in that order. After an error it leaves out everything up to the next Sync, so the
 * requests until there are answered too: they are skipped. https://www.postgresql.org/docs/17/protocol-flow.html
 *
 * A message that answers nothing, or comes out of turn, is an error of the protocol, of which only closing the connection helps:
 * whatever came after it might be taken for the answer to another request.
 */
#ifndef RINGSPUN_PG_REPLIES_H
#define RINGSPUN_PG_REPLIES_H

#include "codec/message.h"

/* What a request consists of, in the order in which it is sent. */
enum {
    RPG_STEP_CLOSE = 1,         /* of an older statement */
    RPG_STEP_PARSE = 2,
    RPG_STEP_DESCRIBE = 4,      /* of the statement: parameters, and columns or none */
    RPG_STEP_BIND = 8,
    RPG_STEP_EXECUTE = 16,
    RPG_STEP_QUERY = 32,        /* a simple query, alone; it has its own ReadyForQuery */
    RPG_STEP_SYNC = 64
};

typedef struct {
    void *tag;
    uint16_t steps;             /* that are still to be answered */
    uint8_t end;                /* rpg_end_kind, as far as is known by now */
    bool has_parameters;        /* of the DESCRIBE at the head of the steps: one half has come */
} rpg_expected;

/* How a request has ended. SKIPPED: because of an error of one before it, up to the same Sync. */
typedef enum { RPG_ENDED_WELL, RPG_ENDED_BY_ERROR, RPG_ENDED_SKIPPED } rpg_end_kind;

/* A ring of them. */
typedef struct {
    rpg_expected *ring;
    uint32_t capacity;          /* a power of two, or 0 */
    uint32_t first;
    uint32_t len;
    bool skips;                 /* an error has come: all up to the next Sync is left out */
    uint8_t copy;               /* rpg_copy_kind of the first */
} rpg_replies;

typedef enum { RPG_NO_COPY, RPG_COPIES_IN, RPG_COPIES_OUT } rpg_copy_kind;

void rpg_replies_free(rpg_replies *replies);

/* There is one step at least. False: no memory. */
bool rpg_replies_expect(rpg_replies *replies, uint16_t steps, void *tag);

static inline const rpg_expected *rpg_replies_first(const rpg_replies *replies) {
    return replies->len ? &replies->ring[replies->first] : NULL;
}

typedef enum {
    RPG_EVENT_PROTOCOL_ERROR,   /* the message answers nothing */
    RPG_EVENT_ASIDE,            /* it belongs to no request: notice, notification, parameter */
    RPG_EVENT_STEP,             /* a step of `tag` that says no more than that is done */
    RPG_EVENT_PARAMETERS,
    RPG_EVENT_COLUMNS,
    RPG_EVENT_NO_COLUMNS,
    RPG_EVENT_ROW,
    RPG_EVENT_COMPLETE,         /* of a simple query there may be several */
    RPG_EVENT_EMPTY,
    RPG_EVENT_SUSPENDED,        /* the portal has more rows */
    RPG_EVENT_ERROR,
    RPG_EVENT_COPY_IN,
    RPG_EVENT_COPY_OUT,
    RPG_EVENT_COPY_DATA,
    RPG_EVENT_COPY_DONE,
    RPG_EVENT_READY             /* `tag` is the request whose Sync that was */
} rpg_event_kind;

typedef struct {
    rpg_event_kind kind;
    void *tag;                  /* whose answer it is; NULL: nobody's */
} rpg_event;

/* What the message is. Before and afterwards rpg_replies_next_ended is called until it answers false. One that is an error of the
 * protocol changes nothing. */
rpg_event rpg_replies_take(rpg_replies *replies, const rpg_message *message);

/* One request after the other of which nothing is to come any more; it is off the list then. */
bool rpg_replies_next_ended(rpg_replies *replies, void **tag, rpg_end_kind *end);

#endif
