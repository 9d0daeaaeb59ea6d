/* window: what of a shared lane's outbox may be sent now. What was sent cannot be taken back, and a request behind a statement that
 * waits for a lock, or simply takes long, waits as long. So nothing is sent behind a statement that is not known to be quick until
 * it is answered, and only a few at once that may wait for a lock, each of them for no longer than the lane's `lock_timeout`.
 *
 * A group is a statement with a Sync: one request, or the requests of a batch. What the window notes of it lies in its last.
 */
#ifndef RINGSPUN_PG_WINDOW_H
#define RINGSPUN_PG_WINDOW_H

#include "client/lane.h"

/* Milliseconds that a statement on a shared lane waits for a lock before it goes to a connection of its own; and how many that may
 * wait so are sent together: those behind them wait for no more than 120 ms. */
#define RPG_LOCK_TIMEOUT 5
#define RPG_WRITES_MAX 24u

/* What was not sent goes elsewhere when the first of those sent has not been answered for so long. */
#define RPG_STUCK (20 * RPG_MILLISECOND)

/* The last request of the group that begins with this one. */
rpg_request *rpg_group_end(rpg_request *first);

/* A group has come into the outbox. */
void rpg_window_enter(rpg_lane *lane, rpg_request *first);

/* The first that may leave now, which is taken out; NULL: none. The rest of its group is at the head of the outbox then. */
rpg_request *rpg_window_next(rpg_lane *lane);

/* A request has ended, or was taken out. */
void rpg_window_end(rpg_lane *lane, const rpg_request *request);

/* Whether what comes now may have to wait for what is not known to be quick. */
bool rpg_window_is_closed(const rpg_lane *lane);

/* Something has come that nobody has taken. Of a simulated connection that is not known. */
bool rpg_is_readable(const rpg_lane *lane);

/* The first of those sent has not been answered for so long that nobody else comes behind it. */
bool rpg_is_stuck(const rpg_lane *lane, int64_t now);

/* Whether a statement is known to hold up nobody. */
bool rpg_is_quick(const rpg_lane *lane, const rpg_statement *statement);

/* The lane's limit for waits for locks has ended it, and it is rolled back as a whole. */
bool rpg_has_met_lock(const rpg_lane *lane, const rpg_request *request);

/* Takes what was not sent out of the outbox, if the lane does not move: its strands go elsewhere. Returns when to look
 * again; RINGSPUN_NEVER: nothing is left that was not sent. */
int64_t rpg_move_unsent(rpg_lane *lane);

/* The same for one request, of a strand that is about to wait. */
bool rpg_move_one(rpg_lane *lane, rpg_request *request);

#endif
