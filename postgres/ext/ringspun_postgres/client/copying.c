#include "client/copying.h"

bool rpg_copy_put(rpg_lane *lane, rpg_out *out) {
    bool fine = out->state == RPG_OUT_FINE && ringspun->stream_put(lane->stream, out->bytes, out->len);
    rpg_out_free(out);
    return fine;
}

bool rpg_copy_put_fail(rpg_lane *lane, rpg_span reason) {
    rpg_out out = {0};
    rpg_put_copy_fail(&out, reason);
    return rpg_copy_put(lane, &out);
}

static const char gone[] = "the client does not wait for it any more";
static const rpg_span gone_reason = {(const uint8_t *)gone, sizeof(gone) - 1};

static bool may_take_rows(const rpg_request *request) {
    return !request->done && request->copy_way == RPG_COPY_IN && request->copy < RPG_COPY_SENT;
}

/* Also before the server has said that it waits for rows. While it does, it passes over a Sync; when it was cancelled, or has never
 * begun, it passes over a CopyFail. So the Sync that comes behind is answered once, whatever the server is at.
 * https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-COPY */
void rpg_copy_leaves(rpg_lane *lane, rpg_request *request) {
    if (may_take_rows(request)) rpg_copy_put_fail(lane, gone_reason); /* where that fails the stream has, as whoever comes next will find */
}

void rpg_copy_begins(rpg_request *request, uint8_t way) {
    request->copy = RPG_COPY_BEGUN;
    request->copy_way = way;
    if (request->parked) ringspun->wake_here(request->waker, 0);
}
