/* opening: the BEGIN of a transaction, for whose answer nobody waits by itself: Lane#open_transaction. On a lane of one user.
 *
 * Where the first statement comes in the same tick, both leave with one Sync, that of the statement: a server that refuses the BEGIN
 * does not execute it then. Else the statement waits until the BEGIN is answered. So nothing is ever executed outside of the
 * transaction, and one that asks at once has a round trip less.
 *
 * The lane has the request until somebody takes it: whoever waits for it, or for the statement that leaves with it. From then on it is
 * that strand's, as any part of a batch.
 */
#ifndef RINGSPUN_PG_OPENING_H
#define RINGSPUN_PG_OPENING_H

#include "client/lane.h"

/* Whether a statement that comes now leaves with it. */
static inline bool rpg_opening_is_ahead(const rpg_lane *lane) {
    const rpg_request *opening = lane->opening;
    return opening && !lane->opening_taken && !opening->sent && !opening->done;
}

/* Its request has ended. */
void rpg_opening_ended(rpg_lane *lane, rpg_end_kind end);

/* Its strand goes. True: it is not sent yet, and stays where it is. */
bool rpg_opening_stays(rpg_request *request);

#endif
