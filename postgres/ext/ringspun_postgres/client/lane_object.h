/* lane_object: the object that Ruby has of a lane, Ringspun::Postgres::Lane: how it is made and ends, and what is asked of it without
 * a wait. Other files define the methods that wait. */
#ifndef RINGSPUN_PG_LANE_OBJECT_H
#define RINGSPUN_PG_LANE_OBJECT_H

#include "client/lane.h"

rpg_lane *rpg_lane_get(VALUE self);

/* The class. */
VALUE rpg_init_lane(void);

#endif
