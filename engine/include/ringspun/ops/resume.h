/* resume: waits that the program may end, with a value of its own (Evaluation#resume!). Owned by the machine's thread.
 *
 * Before such a wait the strand names its ticket, and after it asks whether it was resumed. Nothing but the wait's own timeout may
 * have ended it before; so a strand that is about to go on because its time is up can still be resumed.
 */
#ifndef RINGSPUN_RESUME_H
#define RINGSPUN_RESUME_H

#include "ringspun/core/machine.h"

typedef enum { RS_RESUMED, RS_NOT_WAITING, RS_ENDED_ALREADY } rs_resumption;

/* The park with that ticket may be resumed. */
void rs_make_resumable(rs_strand *strand, uint64_t ticket);

/* What rs_resume would say. */
rs_resumption rs_may_resume(const rs_machine *machine, rs_id id);

/* Ends the wait of that strand. Only RS_RESUMED has an effect; one that has ended, or RS_NO_ID, does not wait. */
rs_resumption rs_resume(rs_machine *machine, rs_id id);

/* The running strand's wait is over, and ended like that: true if it was resumed. */
bool rs_was_resumed(rs_machine *machine, rs_wake_kind kind);

#endif
