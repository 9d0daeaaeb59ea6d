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
 * wait so are sent together: those behind them wait for no more than 120 ms. docs/decisions/26 has others that were tried. */
#define RPG_LOCK_TIMEOUT 5
#define RPG_WRITES_MAX 24u

/* Whether the window decides when it leaves. */
static inline bool rpg_is_judged(const rpg_lane *lane, const rpg_request *request) {
    return lane->shared && !NIL_P(request->statement) && !request->passes;
}

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

/* Whether a statement is known to hold up nobody. */
bool rpg_is_quick(const rpg_lane *lane, const rpg_statement *statement);

#endif
