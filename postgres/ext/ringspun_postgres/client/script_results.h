/* script_results: which result of a script takes what comes. No state of its own: request.h has it. */
#ifndef RINGSPUN_PG_SCRIPT_RESULTS_H
#define RINGSPUN_PG_SCRIPT_RESULTS_H

#include "client/lane.h"

/* The request that gets what that event says: one for a result, or the request itself. NULL: no memory. */
rpg_request *rpg_script_taker(rpg_request *request, rpg_event_kind kind, const rpg_message *message);

#endif
