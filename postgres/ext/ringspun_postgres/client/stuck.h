/* stuck: a lane that does not answer, and what was not sent on it, which goes elsewhere. */
#ifndef RINGSPUN_PG_STUCK_H
#define RINGSPUN_PG_STUCK_H

#include "client/ending.h"
#include "client/lane.h"

/* What was not sent goes elsewhere when the first of those sent has not been answered for so long: docs/decisions/26. */
#define RPG_STUCK (20 * RPG_MILLISECOND)

/* A connection that was quiet for so long may be dead: a router has forgotten it, or the server has ended it. */
#define RPG_QUIET_LOOK (10 * RPG_MILLISECOND)
#define RPG_QUIET_MAX (1000 * RPG_MILLISECOND)

/* Something has come that nobody has taken. Of a simulated connection that is not known. */
bool rpg_is_readable(const rpg_lane *lane);

/* The first of those sent has not been answered for so long that nobody else comes behind it. */
bool rpg_is_stuck(const rpg_lane *lane, int64_t now);

/* Nobody uses it, and it may have ended: a ping tells. One that nobody reads from and that has something to read has mostly ended.
 * Where a server has ended one, it may have ended all, as when it restarts. */
static inline bool rpg_is_quiet(const rpg_lane *lane, int64_t now) {
    if (lane->sent.len > 0 || lane->outbox.len > 0) return false;
    if (lane->losses != rpg_losses()) return true;
    if (now - lane->quiet_since < RPG_QUIET_LOOK) return false;
    return now - lane->quiet_since > RPG_QUIET_MAX || rpg_is_readable(lane);
}

/* The lane's limit for waits for locks has ended it, and it is rolled back as a whole. */
bool rpg_has_met_lock(const rpg_lane *lane, const rpg_request *request);

/* Takes what was not sent out of the outbox, if the lane does not move: its strands go elsewhere. Returns when to look
 * again; RINGSPUN_NEVER: nothing is left that was not sent. */
int64_t rpg_move_unsent(rpg_lane *lane);

/* The same for one request, of a strand that is about to wait. */
bool rpg_move_one(rpg_lane *lane, rpg_request *request);

#endif
