/* lane: one connection that any number of strands share for statements of which each stands alone, or that one session has for
 * itself: Ringspun::Postgres::Lane. Owned by the machine of its stream.
 *
 * A statement lies in the lane's outbox until the tick ends; then all that lie there go out in one flight, each with a Sync of its
 * own, so that the failure of one is nobody else's. Replies come in the same order.
 */
#ifndef RINGSPUN_PG_LANE_H
#define RINGSPUN_PG_LANE_H

#include "client/request.h"
#include "client/statement.h"
#include "codec/settings.h"

#include <time.h>

#define RPG_COPY_REFUSED "COPY has methods of its own: copy_in for FROM STDIN, and copy_out for TO STDOUT"

/* Rows of one request in what has come at once. */
typedef struct {
    rpg_request *request;
    size_t from;
    size_t to;
    uint64_t count;
} rpg_run_of_rows;

/* Of plain threads that ask by themselves: wake.h. */
typedef struct {
    VALUE bell;                 /* Bell: to ring where the machine has something to do; nil: no thread asks by itself */
    int fd;                     /* their own number of the socket; -1: none yet, or not any more */
    bool active;                /* one of them is at the lane, and not the machine's thread */
    bool receives;              /* one of them waits for bytes, without the GVL */
    bool calls;                 /* its machine has something to do */
    bool called;                /* the bell was rung, and nobody has come */
    struct rpg_lane *next;      /* of those that are called */
    bool awaited;               /* strands wait for that something is answered, whatever it is */
    rpg_out in;                 /* bytes that have come, and are no whole message yet */
    rpg_requests roused;        /* have come to their end, and the machine is to wake their strands */
} rpg_by_threads;

typedef struct rpg_lane {
    VALUE self;
    VALUE stream;
    const void *machine;        /* of the stream; NULL: there was no run when it was made. The object has the machine, so it stays there */
    int fd;                     /* of the stream; -1: a simulated one */
    uint32_t forks;             /* that this process is known to come from */
    VALUE statements;           /* Hash: SQL => Statement */
    VALUE decoders;             /* Decoders of the user's, or nil */
    VALUE histories;            /* Histories of the pool, or nil */
    char lost[160];             /* why the connection has ended; empty: it has not */
    char fatal[160];            /* the server has said that it ends, and this */
    bool let_go;                /* its stream is closed, or about to be */
    bool voided;                /* the descriptor is still the stream's, and leads nowhere */
    bool inherited;             /* by a fork: it is the parent's connection */
    bool broken;                /* it has ended because the server broke the protocol */
    bool shared;                /* by strands that do not know of each other */
    bool bounded;               /* no statement waits long for a lock */
    bool stalled;               /* the first of those sent was not answered when somebody looked */
    bool watched;               /* somebody looks whether what was not sent is to go elsewhere */
    bool doubted;               /* it was quiet, and has answered nothing since somebody asked whether it is alive */
    bool held;                  /* nothing leaves but what passes */
    bool names;                 /* statements are given names */
    bool pipelines;             /* a statement that was sent behind others was answered before */
    bool suspected;             /* to lose statements that come together, which was said */
    bool observed;              /* what is seen of requests is noted */
    bool left_state;            /* a statement was of a kind that changes the session */
    bool enclosed;              /* a block ends the transaction that it is in, and no statement */
    uint32_t transactions;      /* that blocks have ended, or are to end */
    bool renewing;              /* its session is made anew, and settings may be as they are */
    rpg_settings settings;      /* of the session, as far as the server reports them */
    uint8_t status;             /* of the last ReadyForQuery */
    rpg_replies replies;
    rpg_requests outbox;
    rpg_requests sent;
    uint32_t live;              /* of those sent, how many a strand waits for */
    uint32_t writes;            /* of those sent, how many may wait for a lock */
    uint32_t unsure;            /* of all, how many are not known to be quick */
    const rpg_request *closer;  /* nothing is sent behind it until it is answered; NULL: the window is open */
    size_t unanswered;          /* bytes of those sent */
    int64_t head_since;         /* the first of those sent is at the head, */
    int64_t quiet_since;        /* and the last message came */
    uint64_t losses;            /* rpg_losses() then */
    int64_t ends;               /* when it has lived long enough */
    int64_t fastest;            /* the shortest time at the head so far: what the way to the server takes */
    bool streams;               /* a stream of rows has begun, and its Sync is not on its way */
    rpg_request *leg;           /* of the stream of rows that goes on; NULL: there is none */
    rpg_request *leg_ahead;     /* the one behind it; NULL: there is none yet */
    rpg_out scratch;            /* parameters, while they are encoded */
    rpg_out flight;
    rpg_out closes;             /* names that the server may forget, each with its NUL */
    bool flight_asked;
    rpg_requests answered;      /* of those that were posted, and that nobody has taken yet */
    uint32_t posted;            /* with those that are not answered */
    rpg_notices notices;        /* that no request has */
    rpg_request *opening;       /* the BEGIN of a transaction: opening.h; NULL: nothing is to begin */
    bool opening_taken;         /* a strand waits for it, or for what has left with it, or has gone */
    bool unopened;              /* the server has refused it, and executes nothing of the transaction */
    rpg_request *attendant;     /* is sent to nobody: with it a strand waits for the answer of any that was posted; NULL: not yet */
    rpg_request *listener;      /* is sent to nobody: with it a strand waits for notifications; NULL: they are dropped */
    rpg_out notifications;      /* bodies of messages, each behind its length */
    const rpg_request *reader;  /* who reads now; NULL: nobody */
    rpg_by_threads threads;
    rpg_run_of_rows *runs;      /* what the present look has found */
    uint32_t runs_len;
    uint32_t runs_capacity;
    size_t runs_bytes;
    uint32_t schema;            /* how often its session has made temporary tables */
    bool changed_schema;        /* in the transaction that goes on, for all */
    uint32_t cache;             /* statements that it knows at most */
    uint32_t named;             /* names given so far */
    char prefix[12];            /* of the names */
} rpg_lane;

/* Nanoseconds on the clock of all machines that are not simulated. */
static inline int64_t rpg_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The same on the machine's. A plain thread has no machine. */
static inline int64_t rpg_now(const rpg_lane *lane) { return RB_UNLIKELY(lane->threads.active) ? rpg_clock() : ringspun->now(); }

/* What has come is all that its strand waits for. */
static inline bool rpg_is_served(const rpg_request *request) {
    return request->done || (request->leg && request->rows.count > 0) || request->copy == RPG_COPY_BEGUN;
}

/* A statement has left a transaction open, or changed the session, and whoever comes next would meet that. */
static inline bool rpg_is_unsafe(const rpg_lane *lane) {
    return lane->status != 'I' || lane->left_state || rpg_settings_differ(&lane->settings);
}

/* The server works for nobody: what it answers next is dropped, and nobody waits for anything behind that. */
static inline bool rpg_is_orphaned(const rpg_lane *lane) { return lane->sent.len > 0 && lane->live == 0; }

/* What was noted of a request, for Lane.take_seen; nil: nobody observes the lane. May raise. */
static inline VALUE rpg_take_seen(const rpg_request *request) {
    rpg_lane *lane = request->lane;
    if (RB_LIKELY(!lane->observed)) return Qnil;
    return rpg_seen_take(lane->self, request->seen, lane->shared ? NULL : &lane->notices);
}

#endif
