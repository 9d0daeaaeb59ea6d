/* stream: rows that are taken as they come: Lane#begin_stream and what follows it. request.h has what its legs are. */
#ifndef RINGSPUN_PG_STREAM_H
#define RINGSPUN_PG_STREAM_H

#include "client/lane.h"

/* The Sync that ends a stream of rows, or a COPY. */
rpg_request *rpg_submit_last_leg(rpg_lane *lane);

/* The methods of the Lane. */
void rpg_init_stream(VALUE cLane);

#endif
