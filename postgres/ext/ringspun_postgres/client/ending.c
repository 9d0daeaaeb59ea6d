#include "client/ending.h"
#include "client/copying.h"
#include "client/inbox.h"
#include "client/opening.h"
#include "client/wake.h"
#include "client/window.h"

#include <stdatomic.h>
#include <stdlib.h>

/* --- memory --- */

static void free_script(rpg_script *script) {
    rpg_requests_free(&script->results);
    free(script);
}

void rpg_request_free(rpg_request *request) {
    if (RB_UNLIKELY(request->roused)) rpg_requests_take_out(&request->lane->threads.roused, request);
    rpg_rows_free(&request->rows);
    free(request->error);
    free(request->parts);
    if (RB_UNLIKELY(request->seen != NULL)) rpg_seen_drop(request->seen, &request->lane->notices);
    if (RB_UNLIKELY(request->script != NULL)) free_script(request->script);
    free(request);
}

void rpg_requests_free(rpg_requests *list) {
    while (list->first) rpg_request_free(rpg_requests_take_first(list));
}

void rpg_opening_forget(rpg_lane *lane) {
    lane->unopened = false;
    if (!lane->opening || lane->opening_taken || !lane->opening->done) return;
    rpg_request_free(lane->opening);
    lane->opening = NULL;
}

/* --- the end of requests --- */

void rpg_rouse(rpg_request *request) {
    request->done = true;
    if (request->parked) rpg_wake(request);
}

static void keep_answer(rpg_request *request) {
    rpg_requests_append(&request->lane->answered, request);
    rpg_rouse(request->lane->attendant);
}

void rpg_finish(rpg_request *request, rpg_end_kind end) {
    rpg_window_end(request->lane, request);
    if (request->parses) rpg_statement_forget_name(rpg_statement_get(request->statement));
    if (RB_UNLIKELY(request == request->lane->opening)) rpg_opening_ended(request->lane, end);
    request->done = true;
    request->end = (uint8_t)end;
    if (RB_UNLIKELY(request->seen != NULL)) request->seen->answered_at = rpg_now(request->lane);
    if (request->abandoned) rpg_request_free(request);
    else if (!NIL_P(request->caller)) keep_answer(request);
    else if (request->parked) rpg_wake(request);
}

static rpg_request *first_parked(const rpg_requests *list) {
    rpg_request *each = list->first;
    while (each && !each->parked) each = each->next;
    return each;
}

void rpg_pass_on(rpg_lane *lane) {
    lane->reader = NULL;
    if (!rpg_inbox_hand_over(lane)) rpg_lose(lane, "there was no memory for what the server sent");
    rpg_request *next = first_parked(&lane->sent);
    if (!next) next = first_parked(&lane->outbox);
    if (!next && lane->attendant && lane->attendant->parked) next = lane->attendant;
    if (!next && lane->listener && lane->listener->parked) next = lane->listener;
    if (!next) return;
    if (!NIL_P(next->thread)) lane->reader = next; /* or whoever asks next would read, and it would be woken in vain */
    rpg_wake(next);
}

void rpg_finish_first(rpg_lane *lane, rpg_end_kind end) {
    rpg_request *request = rpg_requests_take_first(&lane->sent);
    if (!request->abandoned) lane->live--;
    lane->unanswered -= request->flight_len;
    rpg_finish(request, end);
}

static _Atomic uint64_t losses;

uint64_t rpg_losses(void) { return atomic_load_explicit(&losses, memory_order_relaxed); }

void rpg_lose_to_server(rpg_lane *lane, const char *why) {
    if (!lane->lost[0]) atomic_fetch_add_explicit(&losses, 1, memory_order_relaxed);
    rpg_lose(lane, why);
}

void rpg_lose(rpg_lane *lane, const char *why) {
    if (lane->lost[0]) return;
    snprintf(lane->lost, sizeof(lane->lost), "%s", lane->fatal[0] ? lane->fatal : why);
    while (lane->outbox.first) rpg_finish(rpg_requests_take_first(&lane->outbox), RPG_ENDED_SKIPPED);
    while (lane->sent.first) rpg_finish_first(lane, RPG_ENDED_SKIPPED);
    if (lane->listener) rpg_rouse(lane->listener);
    rpg_threads_end(lane);
    rpg_replies_free(&lane->replies);
    lane->replies = (rpg_replies){0};
}

static void leave_one(rpg_request *request) {
    request->parked = false;
    if (request == request->lane->attendant || request == request->lane->listener) {
        return;
    } else if (request->done) {
        rpg_request_free(request);
    } else if (request->sent) {
        rpg_copy_leaves(request->lane, request);
        request->abandoned = true;
        request->lane->live--;
        rpg_rows_free(&request->rows);
    } else if (request->leg == RPG_LAST_LEG) {
        request->abandoned = true;
    } else {
        rpg_window_end(request->lane, request);
        rpg_requests_take_out(&request->lane->outbox, request);
        rpg_request_free(request);
    }
}

void rpg_leave(void *data) {
    rpg_request *request = data;
    rpg_request **parts = request->parts;
    uint32_t len = request->parts_len;
    request->parts = NULL;
    if (request->lane->leg == request) request->lane->leg = NULL;
    if (request->lane->leg_ahead == request) request->lane->leg_ahead = NULL;
    for (uint32_t i = 0; i + 1 < len; i++) {
        if (!rpg_opening_stays(parts[i])) leave_one(parts[i]);
    }
    if (!rpg_opening_stays(request)) leave_one(request);
    free(parts);
}
