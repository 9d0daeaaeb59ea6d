#include "client/stream.h"
#include "client/ask.h"
#include "client/begin.h"
#include "client/ending.h"
#include "client/lane_object.h"
#include "client/params.h"

static rpg_request *submit_leg(rpg_lane *lane, VALUE statement, VALUE formats, rpg_leg leg) {
    rpg_request *next = rpg_request_new(lane, statement, (rpg_span){NULL, 0});
    if (!next) rb_memerror();
    next->formats = formats;
    next->leg = (uint8_t)leg;
    lane->streams = leg != RPG_LAST_LEG;
    rpg_submit(lane, next);
    return next;
}

/* That one has shown that the statement has rows, so that it may be executed once too often. While the rows of one leg are on their
 * way, the server has the next one already, and does not wait for the client in between. */
static void submit_next_legs(rpg_lane *lane, rpg_request *before) {
    if (!lane->leg_ahead) lane->leg_ahead = submit_leg(lane, before->statement, before->formats, RPG_NEXT_LEG);
    rpg_request *ahead = submit_leg(lane, before->statement, before->formats, RPG_NEXT_LEG);
    lane->leg = lane->leg_ahead;
    lane->leg_ahead = ahead;
    rpg_request_free(before);
}

rpg_request *rpg_submit_last_leg(rpg_lane *lane) { return submit_leg(lane, Qnil, Qnil, RPG_LAST_LEG); }

static void submit_last_leg(rpg_lane *lane) {
    if (lane->leg_ahead) rpg_leave(lane->leg_ahead);
    lane->leg = rpg_submit_last_leg(lane);
}

/* Sends a statement whose rows are taken as they come. On a lane of one user. In a transaction it is asked before what its columns
 * are: types that were created there are known to nobody else, and nothing is asked here while rows come. May switch strands.
 *
 * @param alone [Boolean] whether that is asked in any case
 * @return [nil, Symbol] */
static VALUE lane_begin_stream(VALUE self, VALUE sql, VALUE params, VALUE prepared, VALUE seconds, VALUE alone) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, false);
    params = rpg_encode_params(params);
    VALUE statement = rpg_ask_statement(lane, sql, params);
    VALUE refused = rpg_why_not(lane, rpg_statement_get(statement), true);
    if (!NIL_P(refused)) return refused;
    uint32_t transaction = rpg_transaction_of(lane);
    rpg_settle_opening(lane, deadline);
    if (RTEST(alone) || lane->status != 'I') rpg_ask_columns(lane, statement, deadline);
    rpg_ask_types(lane, statement, params, deadline);
    rpg_refuse_ended(lane, transaction);
    rpg_request *request = rpg_ask_request(lane, statement, params);
    request->prepared = RTEST(prepared);
    request->leg = RPG_FIRST_LEG;
    lane->leg = request;
    lane->streams = true;
    rpg_submit(lane, request);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(params);
    return Qnil;
}

/* The server makes the next rows while the caller is busy with these. */
static VALUE take_rows(rpg_lane *lane, rpg_request *request) {
    bool ended = request->done && request->end == RPG_ENDED_WELL && request->suspended;
    VALUE result = rpg_result_of(request, false);
    if (ended) submit_next_legs(lane, request);
    return result;
}

/* What is left of it is the Sync, also where a leg has failed. */
static void end_legs(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    submit_last_leg(lane);
    VALUE failure = Qnil;
    if (request->end == RPG_ENDED_WELL) rpg_request_free(request);
    else failure = rpg_failure_of(lane, request);
    rpg_wait_for(lane, lane->leg, deadline);
    request = lane->leg;
    lane->leg = NULL;
    if (NIL_P(failure) && request->end != RPG_ENDED_WELL) rpg_fail(lane, request);
    rpg_request_free(request);
    if (!NIL_P(failure)) rb_exc_raise(failure);
}

/* A first leg that the server has not executed because of what we believed of its statement: the Sync, and the same once more. */
static bool begin_again(rpg_lane *lane, rpg_request *request) {
    if (request->leg != RPG_FIRST_LEG || request->again || !rpg_is_misunderstood(lane, request)) return false;
    VALUE statement = request->statement;
    submit_last_leg(lane);
    rpg_leave(lane->leg);
    rpg_request *again = rpg_request_new(lane, statement, (rpg_span){request->params, request->params_len});
    bool prepared = request->prepared;
    rpg_request_free(request);
    if (!again) rb_memerror();
    again->prepared = prepared;
    again->leg = RPG_FIRST_LEG;
    again->again = true;
    lane->leg = again;
    lane->streams = true;
    rpg_submit(lane, again);
    RB_GC_GUARD(statement);
    return true;
}

/* Waits for rows of it. May switch strands.
 *
 * @return [Result, nil] those that have come; nil: that was all */
static VALUE lane_next_rows(VALUE self, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, true);
    while (lane->leg) {
        rpg_request *request = lane->leg;
        rpg_wait_for(lane, request, deadline);
        if (request->rows.count > 0) return take_rows(lane, request);
        if (request->end == RPG_ENDED_WELL && request->suspended) submit_next_legs(lane, request);
        else if (!begin_again(lane, request)) end_legs(lane, request, deadline);
    }
    return Qnil;
}

/* Nobody wants the rest. The Sync is sent all the same. */
static VALUE lane_end_legs(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    if (lane->leg) rpg_leave(lane->leg);
    if (lane->leg_ahead) rpg_leave(lane->leg_ahead);
    if (lane->streams) {
        submit_last_leg(lane);
        rpg_leave(lane->leg);
    }
    return Qnil;
}

void rpg_init_stream(VALUE cLane) {
    rb_define_method(cLane, "begin_stream", lane_begin_stream, 5);
    rb_define_method(cLane, "next_rows", lane_next_rows, 1);
    rb_define_method(cLane, "end_legs", lane_end_legs, 0);
}
