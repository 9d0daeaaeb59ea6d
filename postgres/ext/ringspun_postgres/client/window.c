#include "client/window.h"

#include <poll.h>
#include <stdlib.h>

/* Unanswered, of one lane. With 64 instead of 256 the rate of 256 strands 0.65 ms away is 0.56 of this. */
#define DEPTH_MAX 256u
#define UNANSWERED_MAX ((size_t)1 << 20)

/* So far is looked for one that waits for no lock, behind those that may. */
#define LOOK_AHEAD 64u

rpg_request *rpg_group_end(rpg_request *first) {
    while (!first->syncs && first->next) first = first->next;
    return first;
}

/* --- what is known of statements --- */

bool rpg_is_quick(const rpg_lane *lane, const rpg_statement *statement) {
    const rpg_history *history = statement->history;
    return history && (lane->bounded || history->kind == RPG_READS) && rpg_history_is_quick(history);
}

static void judge(const rpg_lane *lane, rpg_request *first) {
    rpg_request *last = rpg_group_end(first);
    int64_t sum = 0;
    last->closes = last->writes = false;
    for (rpg_request *each = first;; each = each->next) {
        const rpg_statement *statement = rpg_statement_get(each->statement);
        last->closes |= !rpg_is_quick(lane, statement);
        if (statement->history) {
            last->writes |= statement->history->kind != RPG_READS;
            sum += statement->history->mean;
        }
        if (each == last) break;
    }
    last->closes |= sum > RPG_SLOW;
}

/* --- who comes and goes --- */

static bool is_judged(const rpg_lane *lane, const rpg_request *request) {
    return lane->shared && !NIL_P(request->statement) && !request->passes;
}

void rpg_window_enter(rpg_lane *lane, rpg_request *first) {
    if (!is_judged(lane, first)) return;
    judge(lane, first);
    lane->unsure += rpg_group_end(first)->closes;
}

static void leave(rpg_lane *lane, rpg_request *first) {
    if (!is_judged(lane, first) || first->continues) return;
    rpg_request *last = rpg_group_end(first);
    lane->unsure -= last->closes;
    judge(lane, first); /* anew: it may be known by now */
    lane->unsure += last->closes;
    if (last->closes) lane->closer = last;
    if (last->writes) lane->writes++;
}

void rpg_window_end(rpg_lane *lane, const rpg_request *request) {
    lane->unsure -= request->closes;
    if (lane->closer == request) lane->closer = NULL;
    if (request->sent && request->writes) lane->writes--;
}

bool rpg_window_is_closed(const rpg_lane *lane) { return lane->unsure > 0; }

static bool has_room(const rpg_lane *lane) { return lane->sent.len < DEPTH_MAX && lane->unanswered < UNANSWERED_MAX; }

static bool may_wait_for_lock(const rpg_lane *lane, rpg_request *first) {
    return is_judged(lane, first) && rpg_group_end(first)->writes && lane->writes >= RPG_WRITES_MAX;
}

/* A statement that stands alone and is known to be quick, behind some that may wait for a lock, as the last that were sent may. */
static rpg_request *next_read(const rpg_lane *lane) {
    uint32_t left = LOOK_AHEAD;
    for (rpg_request *each = lane->outbox.first; each && left > 0; each = each->next, left--) {
        if (each->syncs && !each->continues && !each->writes && !each->closes && is_judged(lane, each)) return each;
    }
    return NULL;
}

rpg_request *rpg_window_next(rpg_lane *lane) {
    rpg_request *first = lane->outbox.first;
    if (!first) return NULL;
    if (!first->continues && !first->passes) {
        if (lane->held || lane->stalled || lane->closer || !has_room(lane)) return NULL;
        if (may_wait_for_lock(lane, first)) first = next_read(lane);
        if (!first) return NULL;
    }
    leave(lane, first);
    rpg_requests_take_out(&lane->outbox, first);
    return first;
}

/* --- what does not move --- */

bool rpg_is_readable(const rpg_lane *lane) {
    struct pollfd one = {.fd = lane->fd, .events = POLLIN};
    return lane->fd >= 0 && poll(&one, 1, 0) > 0;
}

static int64_t stuck_from(const rpg_lane *lane) {
    return lane->head_since + RPG_STUCK + (lane->fastest < INT64_MAX ? lane->fastest : 0);
}

/* Where something has come meanwhile, it is this program that has not looked. */
bool rpg_is_stuck(const rpg_lane *lane, int64_t now) {
    return lane->shared && lane->sent.len > 0 && now >= stuck_from(lane) && !rpg_is_readable(lane);
}

/* Whether a group's strand can be told to go: the one that reads for all stays. */
static bool can_go(const rpg_lane *lane, rpg_request *first) {
    return is_judged(lane, first) && rpg_group_end(first) != lane->reader;
}

static void move(rpg_lane *lane, rpg_request *request) {
    request->moved = true;
    rpg_finish(request, RPG_ENDED_SKIPPED);
}

/* When to look again. */
static int64_t next_look(const rpg_lane *lane, int64_t now) {
    if (lane->outbox.len == 0) return RINGSPUN_NEVER;
    int64_t from = lane->sent.len > 0 ? stuck_from(lane) : now + RPG_STUCK;
    return from > now ? from : now + RPG_STUCK;
}

int64_t rpg_move_unsent(rpg_lane *lane) {
    int64_t now = ringspun->now();
    if (lane->lost[0]) return RINGSPUN_NEVER;
    lane->stalled = rpg_is_stuck(lane, now);
    if (!lane->stalled) return next_look(lane, now);
    rpg_requests all = lane->outbox;
    lane->outbox = (rpg_requests){0};
    while (all.first) {
        bool goes = can_go(lane, all.first), last = false;
        while (!last) {
            rpg_request *request = rpg_requests_take_first(&all);
            last = request->syncs || !all.first;
            if (goes) move(lane, request);
            else rpg_requests_append(&lane->outbox, request);
        }
    }
    return next_look(lane, now);
}

bool rpg_move_one(rpg_lane *lane, rpg_request *request) {
    if (request->sent || request->parts || !is_judged(lane, request) || !rpg_is_stuck(lane, ringspun->now())) return false;
    rpg_requests_take_out(&lane->outbox, request);
    move(lane, request);
    return true;
}

/* --- locks --- */

/* Also FOR UPDATE NOWAIT and a function may fail with this SQLSTATE: those are the user's. What raises ours says where it is:
 * https://github.com/postgres/postgres/blob/REL_17_STABLE/src/backend/tcop/postgres.c, ProcessInterrupts */
bool rpg_has_met_lock(const rpg_lane *lane, const rpg_request *request) {
    return lane->shared && lane->bounded && rpg_request_failed_by(request, "55P03") &&
           rpg_request_has_field(request, 'R', "ProcessInterrupts");
}
