/* ending: the end of requests: those that are answered, those that a strand leaves, and all of a lane that has ended. */
#ifndef RINGSPUN_PG_ENDING_H
#define RINGSPUN_PG_ENDING_H

#include "client/lane.h"

void rpg_request_free(rpg_request *request);
void rpg_requests_free(rpg_requests *list);

/* The transaction is over, for which the lane may have a BEGIN. */
void rpg_opening_forget(rpg_lane *lane);

/* It has ended: whoever waits for it is told. */
void rpg_finish(rpg_request *request, rpg_end_kind end);

/* The first of those sent has. */
void rpg_finish_first(rpg_lane *lane, rpg_end_kind end);

/* Nothing more will come or go: requests end, and no other is taken. */
void rpg_lose(rpg_lane *lane, const char *why);

/* The same where it is the server, or the way there, that has ended it. */
void rpg_lose_to_server(rpg_lane *lane, const char *why);

/* The number of connections that servers have ended, in this process. */
uint64_t rpg_losses(void);

/* `leave` of a request for whose end nobody waits any more. */
void rpg_leave(void *request);

/* The one whose reply comes next, of those who wait, reads from now on. */
void rpg_pass_on(rpg_lane *lane);

/* What a request that is sent to nobody waits for has come: something was answered that was posted, or nothing that was is left. */
void rpg_rouse(rpg_request *request);

#endif
