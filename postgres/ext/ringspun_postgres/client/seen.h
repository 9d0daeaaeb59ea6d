/* seen: what is noted of requests on a lane that somebody observes: when each was sent and answered, and the notices that the server
 * has sent meanwhile. A lane that nobody observes notes nothing.
 *
 * Notices of a statement on a shared lane are its request's. All others are the lane's, until whoever takes an answer there next takes
 * them along: those of a session, and those for which nobody waits any more.
 */
#ifndef RINGSPUN_PG_SEEN_H
#define RINGSPUN_PG_SEEN_H

#include "codec/message.h"

#include <ruby.h>

/* Of one statement or lane. A server that sends more is not heard. */
#define RPG_NOTICES_MAX 10000u

typedef struct rpg_notice {
    struct rpg_notice *next;
    size_t len;
    uint8_t body[];             /* of a NoticeResponse */
} rpg_notice;

typedef struct {
    rpg_notice *first;
    rpg_notice *last;
    uint32_t len;
} rpg_notices;

typedef struct rpg_seen {
    int64_t sent_at;
    int64_t answered_at;        /* 0: it was not */
    rpg_notices notices;
} rpg_seen;

/* Of a request that is sent now. NULL: no memory, and it goes on unseen. */
rpg_seen *rpg_seen_new(int64_t now);

/* A NoticeResponse has come. */
void rpg_notices_note(rpg_notices *notices, const rpg_message *message);

/* Nobody takes what was noted; its notices become those of the lane. */
void rpg_seen_drop(rpg_seen *seen, rpg_notices *of_lane);

void rpg_notices_free(rpg_notices *notices);

/* What was noted, for Lane.take_seen: an Array of the lane, when it was sent and answered, both in seconds or nil, and the bodies of
 * its notices, and of others. `seen`: NULL: it was not sent. `of_lane`: the notices of the lane are taken as well; or NULL. May raise. */
VALUE rpg_seen_take(VALUE lane, rpg_seen *seen, rpg_notices *of_lane);

/* For Lane#take_notices. May raise. */
VALUE rpg_notices_take(rpg_notices *notices);

/* The error of a request knows it. */
void rpg_seen_put(VALUE error, VALUE seen);

/* What a Result or an error knows, once; nil: nothing. */
VALUE rpg_seen_of(VALUE answer);

void rpg_init_seen(void);

#endif
