#include "client/window.h"

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

void rpg_window_enter(rpg_lane *lane, rpg_request *first) {
    if (!rpg_is_judged(lane, first)) return;
    judge(lane, first);
    lane->unsure += rpg_group_end(first)->closes;
}

static void leave(rpg_lane *lane, rpg_request *first) {
    if (!rpg_is_judged(lane, first) || first->continues) return;
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
    return rpg_is_judged(lane, first) && rpg_group_end(first)->writes && lane->writes >= RPG_WRITES_MAX;
}

/* A statement that stands alone and is known to be quick, behind some that may wait for a lock, as the last that were sent may. */
static rpg_request *next_read(const rpg_lane *lane) {
    uint32_t left = LOOK_AHEAD;
    for (rpg_request *each = lane->outbox.first; each && left > 0; each = each->next, left--) {
        if (each->syncs && !each->continues && !each->writes && !each->closes && rpg_is_judged(lane, each)) return each;
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
