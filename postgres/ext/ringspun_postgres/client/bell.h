/* bell: by which plain threads call the strand of a machine that does what they leave to it: Ringspun::Postgres::Bell. To ring runs
 * no Ruby code, so nothing interrupts it. */
#ifndef RINGSPUN_PG_BELL_H
#define RINGSPUN_PG_BELL_H

#include "client/lane.h"

/* The lane has something to do for the machine. Once, until the strand comes. Never raises. */
void rpg_bell_ring(rpg_lane *lane);

void rpg_init_bell(void);

#endif
