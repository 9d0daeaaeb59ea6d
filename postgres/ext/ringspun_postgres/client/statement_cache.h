/* statement_cache: the statements that a lane knows, by their texts: as many as `statement_cache:` says, each with the name that it
 * has on the server. */
#ifndef RINGSPUN_PG_STATEMENT_CACHE_H
#define RINGSPUN_PG_STATEMENT_CACHE_H

#include "client/lane.h"

/* The Statement of that SQL, with what its parameters say of their types. Where the lane knows too many, it forgets one that was not
 * used of late, which leaves the server with the next flight. May raise. */
VALUE rpg_lane_statement(rpg_lane *lane, VALUE sql, VALUE declared);

#endif
