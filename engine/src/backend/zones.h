/* zones: which name look-ups may begin, where only a number of them may at a time. Owned by a pool of workers, and used under its
 * lock.
 *
 * A zone is all names that end with the same two labels: as a rule the same servers answer for all of these, or for none. A zone
 * begins with another look-up only while it has fewer under way than there are places free. One zone takes half of the places, a
 * second one a quarter, and so on: beside all the names of zones that never answer there is a place for a name of another zone,
 * unless such zones are many. The others wait in their zone, first come, first served. Zones take turns.
 */
#ifndef RINGSPUN_ZONES_H
#define RINGSPUN_ZONES_H

#include "ringspun/core/link.h"

/* As many as the look-ups that are under way at most (RS_LOOK_UPS_MAX). Where the zones of those that wait are more, a bucket has
 * several. */
#define RS_ZONE_BUCKETS 64

/* Lives for as long as a look-up is in it. */
typedef struct rs_zone {
    rs_link link;               /* in its bucket */
    rs_link turn;               /* in line, while any of its look-ups waits */
    rs_links waiting;
    uint32_t begun;
    uint32_t len;               /* of its name */
    char name[];                /* in small letters */
} rs_zone;

typedef struct {
    rs_links buckets[RS_ZONE_BUCKETS];
    rs_links line;              /* zones whose look-ups wait; the first has the next turn */
    uint32_t begun;
    uint32_t limit;
} rs_zones;

/* The zone of that name. Its look-up begins or waits next. NULL: there is no memory. */
rs_zone *rs_zones_enter(rs_zones *zones, const char *host);

/* Whether a look-up of that name could begin now. */
bool rs_zones_have_place(const rs_zones *zones, const char *host);

/* Begins with a look-up. False: it may not begin yet. */
bool rs_zone_begin(rs_zones *zones, rs_zone *zone);

void rs_zone_wait(rs_zones *zones, rs_zone *zone, rs_link *look_up);

/* The next look-up that may begin, and has begun by this. NULL: none may. */
rs_link *rs_zones_next(rs_zones *zones);

/* The look-up that waits first in the zone whose turn it is; NULL: none waits. */
rs_link *rs_zones_waiting(const rs_zones *zones);

/* Called when a look-up is over that had begun, or one is given up that waits. The zone may be no more after this. */
void rs_zone_leave(rs_zones *zones, rs_zone *zone);
void rs_zone_give_up(rs_zones *zones, rs_zone *zone, rs_link *look_up);

#endif
