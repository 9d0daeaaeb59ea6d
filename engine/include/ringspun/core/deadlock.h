/* deadlock: nothing is ready, and nothing that the machine knows of can make anything so. Owned by the machine's thread.
 *
 * What breaks one, each step only where the one before has made nobody ready:
 *  1. The driver raises it in the root (rs_driver.on_deadlock). Its scopes then cancel the rest, and its ensure blocks run.
 *  2. All others are cancelled, shielded or not: what a shield protects is a wait without end now, for which nothing will ever come.
 *  3. The root's own wait ends by an interrupt, shielded or not.
 */
#ifndef RINGSPUN_DEADLOCK_H
#define RINGSPUN_DEADLOCK_H

#include "ringspun/core/strand.h"

struct rs_machine;

/* After the verdict RS_DEADLOCK; follow with rs_next. False: there is none, for somebody whom only the driver knows may still wake
 * a strand (rs_driver.others_may_wake). */
bool rs_break_deadlock(struct rs_machine *machine);

/* Whether a strand is parked and waits for that. */
bool rs_somebody_waits(const struct rs_machine *machine, rs_wait_kind wait);

#endif
