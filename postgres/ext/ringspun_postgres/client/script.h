/* script: several statements as one simple query, whose results come one after the other. Owned by its request.
 *
 * Each result is a request of its own that was never sent: it has the rows and the tag, and in place of parameters the body of the
 * RowDescription, if there was one.
 */
#ifndef RINGSPUN_PG_SCRIPT_H
#define RINGSPUN_PG_SCRIPT_H

#include "client/request.h"
#include "client/what.h"

typedef struct rpg_script {
    rpg_requests results;
    bool open;                  /* the last of them has not its tag yet */
    char what[RPG_WHAT_MAX];    /* its strand waits for */
} rpg_script;

/* Who gets what that event of the request says: a result, or the request itself. NULL: no memory. */
rpg_request *rpg_script_taker(rpg_request *request, rpg_event_kind kind, const rpg_message *message);

void rpg_script_free(rpg_script *script);

#endif
