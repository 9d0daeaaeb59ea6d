#include "client/stuck.h"
#include "client/ending.h"
#include "client/window.h"

#include <poll.h>

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
    return rpg_is_judged(lane, first) && rpg_group_end(first) != lane->reader;
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
    if (request->sent || request->parts || !rpg_is_judged(lane, request) || !rpg_is_stuck(lane, ringspun->now())) return false;
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
