/* inbox: the bytes that have come for a lane, and were not read. They lie in its stream; those which a plain thread has received,
 * and what comes behind them until all are read, in memory of the lane's own. */
#ifndef RINGSPUN_PG_INBOX_H
#define RINGSPUN_PG_INBOX_H

#include "client/lane.h"

/* All of them, as long as nobody asks for more. False: no memory. */
bool rpg_inbox_look(rpg_lane *lane, rpg_span *bytes);

/* The first are gone. */
void rpg_inbox_drop(rpg_lane *lane, size_t len);

/* The same, but stay where they are, from `*start` on, as long as the block is. NULL: no memory. */
rpg_block *rpg_inbox_take(rpg_lane *lane, size_t len, const uint8_t **start);

/* The machine's strands do not read any more: threads find in the lane's memory what the stream has. False: no memory. */
bool rpg_inbox_hand_over(rpg_lane *lane);

#endif
