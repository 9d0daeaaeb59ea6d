/* flight: what goes out: what lies in the outbox becomes messages, which leave together when the tick ends. */
#ifndef RINGSPUN_PG_FLIGHT_H
#define RINGSPUN_PG_FLIGHT_H

#include "client/lane.h"

/* Has what lies in the outbox sent when the tick ends. */
void rpg_ask_flight(rpg_lane *lane);

/* What may be sent is loaded into it. */
void rpg_load_flight(rpg_lane *lane);

#endif
