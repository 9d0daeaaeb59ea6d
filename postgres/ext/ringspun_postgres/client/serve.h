/* serve: what comes in: messages become answers of requests. */
#ifndef RINGSPUN_PG_SERVE_H
#define RINGSPUN_PG_SERVE_H

#include "client/lane.h"

/* All that has come, as far as it is whole. True: there was something. */
bool rpg_serve(rpg_lane *lane);

#endif
