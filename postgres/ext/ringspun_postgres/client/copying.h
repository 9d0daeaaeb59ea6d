/* copying: what becomes of a COPY when the server begins with it, and when its strand goes. copy.c has its methods, and says how it
 * goes on.
 */
#ifndef RINGSPUN_PG_COPYING_H
#define RINGSPUN_PG_COPYING_H

#include "client/lane.h"

/* Writes what is there beside the outbox, and frees it. False: it could not be written. */
bool rpg_copy_put(rpg_lane *lane, rpg_out *out);

/* The same of a CopyFail, with a Sync behind it or not. */
bool rpg_copy_put_fail(rpg_lane *lane, rpg_span reason, bool syncs);

/* The server waits for the rows of a COPY, or sends them. False: there is no memory to say that nobody has any. */
bool rpg_copy_begins(rpg_lane *lane, rpg_request *request, uint8_t way);

/* Whoever had rows for it has gone. Never raises. */
void rpg_copy_leaves(rpg_lane *lane, rpg_request *request);

#endif
