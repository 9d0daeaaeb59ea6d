/* ask: what a strand does that wants something of a lane: it makes a request of a statement, waits for its end, and makes of it a
 * result or an error.
 *
 * There is no strand that reads. Of those who wait, one is the reader: whoever finds that there is none. It takes what has come,
 * for all, wakes those who have their reply, and goes on until it has its own; then, and when it is cancelled, the next one reads.
 */
#ifndef RINGSPUN_PG_ASK_H
#define RINGSPUN_PG_ASK_H

#include "client/lane.h"

/* What a method answers when the lane has ended before the statement was sent, and when it has ended because of what the statement
 * has left. */
extern VALUE rpg_sym_lost, rpg_sym_unsafe;

/* And when the statement is for one session. */
extern VALUE rpg_sym_session;

/* And when the server has not executed it because of what we believed of its statements. */
extern VALUE rpg_sym_again;

/* And when it was not taken, because the lane does not move; when it was taken and not sent, for the same reason; and when a lock
 * has held it up, and it is rolled back. */
extern VALUE rpg_sym_stuck, rpg_sym_moved, rpg_sym_lock;

/* The Statement of that SQL, for parameters that are encoded. Raises UsageError for what is none. */
VALUE rpg_ask_statement(rpg_lane *lane, VALUE sql, VALUE params);

/* The Statement of a COPY, which no connection knows by name. Raises UsageError. */
VALUE rpg_ask_copy(VALUE sql);

/* When that many seconds from now are over. Raises TimeoutError where they are already: what has no time left is not sent, for it
 * might take effect and be answered all the same. `sent`: it goes on with what was sent before. */
int64_t rpg_ask_deadline(const rpg_lane *lane, VALUE seconds, bool sent);

/* What can be known to be wrong without a connection. Raises UsageError. True: the statement is for one session. */
bool rpg_ask_check(VALUE sql, VALUE params);

/* Whether it may come (on a lane of one user NULL will do for the statement): nil, or the Symbol that says why not. `forced`: also
 * where it may hold up others, and to an old lane. */
VALUE rpg_why_not(rpg_lane *lane, rpg_statement *statement, bool forced);

/* Raises UsageError in the midst of a stream or COPY. */
void rpg_refuse_in_stream(const rpg_lane *lane);

/* The transaction that a block is to end; 0: none is. */
static inline uint32_t rpg_transaction_of(const rpg_lane *lane) { return lane->enclosed ? lane->transactions : 0; }

/* Raises UsageError when that transaction has ended: what would come behind it would stay. */
void rpg_refuse_ended(const rpg_lane *lane, uint32_t transaction);

/* When a pooler is to be suspected to have lost what came behind another statement. */
int64_t rpg_suspected_from(const rpg_lane *lane);

/* Whether it may be sent with these parameters, which are encoded: the types of all are known that decide what is sent. */
bool rpg_is_typed(VALUE statement, VALUE params);

/* Whether all that is json is made. To make the rest may run Ruby code, and raises UsageError. */
bool rpg_is_encoded(VALUE statement, VALUE params);
void rpg_make_jsons(VALUE statement, VALUE params);

/* Asks the server for the types. Returns nil, or a Symbol, which says why it was not sent. Raises UnknownTypes, with their OIDs,
 * where the database has to be asked what these are. May switch strands. */
VALUE rpg_ask_types(rpg_lane *lane, VALUE statement, VALUE params, int64_t deadline);

/* The same for what the statement's columns are. */
VALUE rpg_ask_columns(rpg_lane *lane, VALUE statement, int64_t deadline);

/* Of parameters that are encoded. Raises UsageError in the midst of a stream. */
rpg_request *rpg_ask_request(rpg_lane *lane, VALUE statement, VALUE params);

/* Before one is added: with nothing else under way it is at the head as soon as it is sent. */
void rpg_note_head(rpg_lane *lane);

/* A group has been added to the outbox. Somebody looks after a while whether it was sent. */
void rpg_enter(rpg_lane *lane, rpg_request *first);

/* A request without a statement, which leaves before others. It is answered behind what was sent. */
rpg_request *rpg_submit_empty(rpg_lane *lane);

/* Into the outbox, which leaves when the tick ends. */
void rpg_submit(rpg_lane *lane, rpg_request *request);

/* Until it is served. When this raises the request is gone. May switch strands. */
void rpg_wait_for(rpg_lane *lane, rpg_request *request, int64_t deadline);

/* The same. When it has its answer, what nobody waits for any more is cancelled. */
void rpg_wait_among_others(rpg_lane *lane, rpg_request *request, int64_t deadline);

/* `last`: the request is freed. */
VALUE rpg_result_of(rpg_request *request, bool last);

/* A TimeoutError. */
VALUE rpg_late_error(const rpg_lane *lane, bool sent);

/* What a request's caller gets: a Result, an exception, or one of the Symbols above. The request is freed. */
VALUE rpg_answer_of(rpg_lane *lane, rpg_request *request);

/* The error of a request, which is freed. */
VALUE rpg_failure_of(const rpg_lane *lane, rpg_request *request);

/* Whether what was left in errinfo is an error of a call, and nothing by which a thread or the program ends. */
bool rpg_is_error(VALUE info);
NORETURN(void rpg_fail(const rpg_lane *lane, rpg_request *request));

/* What the server has not executed because of what we believed of its statements, and may be sent again. */
bool rpg_is_misunderstood(rpg_lane *lane, const rpg_request *request);

void rpg_init_ask(void);

#endif
