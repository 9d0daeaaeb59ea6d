/* begin: how strands wait for the BEGIN of a transaction: Lane#open_transaction. opening.h says what becomes of it. */
#ifndef RINGSPUN_PG_BEGIN_H
#define RINGSPUN_PG_BEGIN_H

#include "client/opening.h"

/* Sends the statement with it, and returns what rpg_answer_of does. Raises the error of the BEGIN. May switch strands. */
VALUE rpg_ask_with_opening(rpg_lane *lane, rpg_request *request, int64_t deadline);

void rpg_await_opening(rpg_lane *lane, int64_t deadline);

/* Until the transaction has begun, if one is to. Raises the error of its BEGIN, and TransactionRolledBack where somebody else has had
 * that. May switch strands. */
static inline void rpg_settle_opening(rpg_lane *lane, int64_t deadline) {
    if (RB_UNLIKELY(lane->opening || lane->unopened)) rpg_await_opening(lane, deadline);
}

/* The methods of the Lane. */
void rpg_init_begin(VALUE cLane);

#endif
