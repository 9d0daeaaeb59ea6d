#include "client/opening.h"

void rpg_opening_ended(rpg_lane *lane, rpg_end_kind end) {
    lane->unopened = end != RPG_ENDED_WELL;
    if (!lane->opening_taken) return;
    lane->opening = NULL;
    lane->opening_taken = false;
}

bool rpg_opening_stays(rpg_request *request) {
    rpg_lane *lane = request->lane;
    if (RB_LIKELY(request != lane->opening) || request->sent || request->done) return false;
    request->syncs = true;
    request->parked = false;
    lane->opening_taken = false;
    return true;
}
