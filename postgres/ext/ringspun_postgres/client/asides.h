/* asides: what a server sends that answers nothing: notices, notifications for whoever waits for them, and settings of the session.
 * The lane keeps them. */
#ifndef RINGSPUN_PG_ASIDES_H
#define RINGSPUN_PG_ASIDES_H

#include "client/lane.h"

typedef enum { RPG_ASIDE_TAKEN, RPG_ASIDE_WRONG, RPG_ASIDE_NO_MEMORY } rpg_aside;
rpg_aside rpg_take_aside(rpg_lane *lane, const rpg_message *message);

#endif
