/* query: one statement, or the question whether the server is there: Lane#query, Lane#ping, and what is known without a connection. */
#include "client/ask.h"
#include "client/begin.h"
#include "client/ending.h"
#include "client/inits.h"
#include "client/lane_object.h"
#include "client/params.h"

/* Raises UsageError for what can be known to be wrong without a connection.
 *
 * @return [Boolean] whether the statement is for one session */
static VALUE lane_check(VALUE class, VALUE sql, VALUE params) {
    (void)class;
    return rpg_ask_check(sql, params) ? Qtrue : Qfalse;
}

/* Makes of each parameter what is sent, once for all connections on which that is tried. May run Ruby code, and switch strands.
 *
 * @return [Array, Params] what #query takes in place of the parameters */
static VALUE lane_encode(VALUE class, VALUE params) {
    (void)class;
    return rpg_encode_params(params);
}

/* What a value is as text, for example within a composite: there a String in BINARY is text as well.
 *
 * @return [String] */
static VALUE lane_text(VALUE class, VALUE value, VALUE place) {
    (void)class;
    return rpg_text_of(value, NUM2LONG(place));
}

/* @param result [Result]
 * @return [Boolean] false: something has to be looked up before its rows are decoded */
static VALUE lane_is_complete(VALUE class, VALUE result) {
    (void)class;
    return rpg_result_is_complete(result) ? Qtrue : Qfalse;
}

/* Sends one statement and waits for its result. May switch strands.
 *
 * @param params [Array] what rpg_encode_params takes
 * @param prepared [Boolean] whether its first use names it
 * @param forced [Boolean] whether it comes also where it may hold up others, and to an old lane
 * @return [Result, Symbol] the Symbol says why it was not taken, or :unsafe, what it has left */
static VALUE lane_query(VALUE self, VALUE sql, VALUE params, VALUE seconds, VALUE prepared, VALUE forced) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, false);
    params = rpg_encode_params(params);
    VALUE statement = rpg_ask_statement(lane, sql, params);
    VALUE refused = rpg_why_not(lane, rpg_statement_get(statement), RTEST(forced));
    if (!NIL_P(refused)) return refused;
    uint32_t transaction = rpg_transaction_of(lane);
    if (!rpg_opening_is_ahead(lane) || !rpg_is_typed(statement, params)) rpg_settle_opening(lane, deadline);
    VALUE answer = rpg_sym_again;
    for (bool again = false; answer == rpg_sym_again; again = true) {
        refused = rpg_ask_types(lane, statement, params, deadline);
        if (!NIL_P(refused)) return refused;
        rpg_refuse_ended(lane, transaction);
        rpg_request *request = rpg_ask_request(lane, statement, params);
        request->prepared = RTEST(prepared);
        request->again = again;
        if (RB_UNLIKELY(rpg_opening_is_ahead(lane))) {
            answer = rpg_ask_with_opening(lane, request, deadline);
            continue;
        }
        rpg_submit(lane, request);
        rpg_wait_among_others(lane, request, deadline);
        answer = rpg_answer_of(lane, request);
    }
    RB_GC_GUARD(statement);
    RB_GC_GUARD(params);
    if (rb_obj_is_kind_of(answer, rb_eException)) rb_exc_raise(answer);
    return answer;
}

/* Waits until all that was sent is answered. Also a lane that is held takes this. May switch strands.
 *
 * @return [Boolean] false: the connection has ended */
static VALUE lane_ping(VALUE self, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = ringspun->deadline(seconds);
    if (lane->lost[0]) return Qfalse;
    rpg_request *request = rpg_submit_empty(lane);
    rpg_wait_for(lane, request, deadline);
    rpg_request_free(request);
    return lane->lost[0] ? Qfalse : Qtrue;
}

void rpg_init_query(VALUE cLane) {
    rb_define_singleton_method(cLane, "check", lane_check, 2);
    rb_define_singleton_method(cLane, "encode", lane_encode, 1);
    rb_define_singleton_method(cLane, "text", lane_text, 2);
    rb_define_singleton_method(cLane, "complete?", lane_is_complete, 1);
    rb_define_method(cLane, "query", lane_query, 5);
    rb_define_method(cLane, "ping", lane_ping, 1);
}
