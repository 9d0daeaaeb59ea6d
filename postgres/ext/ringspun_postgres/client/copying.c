#include "client/copying.h"

bool rpg_copy_put(rpg_lane *lane, rpg_out *out) {
    bool fine = out->state == RPG_OUT_FINE && ringspun->stream_put(lane->stream, out->bytes, out->len);
    rpg_out_free(out);
    return fine;
}

bool rpg_copy_put_fail(rpg_lane *lane, rpg_span reason, bool syncs) {
    rpg_out out = {0};
    rpg_put_copy_fail(&out, reason);
    if (syncs) rpg_put_sync(&out);
    return rpg_copy_put(lane, &out);
}

static const char gone[] = "the client does not wait for it any more";
static const rpg_span gone_reason = {(const uint8_t *)gone, sizeof(gone) - 1};

static bool takes_rows(const rpg_request *request) {
    return !request->done && request->copy_way == RPG_COPY_IN && (request->copy == RPG_COPY_BEGUN || request->copy == RPG_COPY_GOES);
}

/* The Sync is for the end of the legs. */
void rpg_copy_leaves(rpg_lane *lane, rpg_request *request) {
    if (!takes_rows(request)) return;
    request->copy = RPG_COPY_SENT;
    rpg_copy_put_fail(lane, gone_reason, false); /* where that fails the stream has, as whoever comes next will find */
}

/* Where its strand has gone before the server could begin, the Sync was sent, and passed over. */
bool rpg_copy_begins(rpg_lane *lane, rpg_request *request, uint8_t way) {
    if (request->abandoned) return way == RPG_COPY_OUT || rpg_copy_put_fail(lane, gone_reason, true);
    request->copy = RPG_COPY_BEGUN;
    request->copy_way = way;
    if (request->parked) ringspun->wake_here(request->waker, 0);
    return true;
}
