/* copying: what becomes of a COPY when the server begins with it, and when its strand goes. copy.c has its methods, and says how it
 * goes on.
 */
#ifndef RINGSPUN_PG_COPYING_H
#define RINGSPUN_PG_COPYING_H

#include "client/lane.h"

/* Writes what is there beside the outbox, and frees it. False: it could not be written. */
bool rpg_copy_put(rpg_lane *lane, rpg_out *out);

/* The same of a CopyFail. */
bool rpg_copy_put_fail(rpg_lane *lane, rpg_span reason);

/* The server waits for the rows of a COPY, or sends them, and its strand is there. */
void rpg_copy_begins(rpg_request *request, uint8_t way);

/* Its strand goes. The Sync is for the end of the legs. Never raises. */
void rpg_copy_leaves(rpg_lane *lane, rpg_request *request);

#endif
