#include "client/begin.h"
#include "client/ask.h"
#include "client/ending.h"
#include "client/lane_object.h"

#include <stdlib.h>

/* --- its request --- */

static void submit_opening(rpg_lane *lane, VALUE statement, bool again) {
    VALUE none = rb_ary_new();
    rpg_request *request = rpg_ask_request(lane, statement, none);
    request->again = again;
    lane->opening = request;
    lane->opening_taken = lane->unopened = false;
    rpg_submit(lane, request);
    RB_GC_GUARD(none);
}

/* What a pooler or server has not understood is sent once more. Else raises. */
static void begin_again(rpg_lane *lane, rpg_request *opening, VALUE statement) {
    if (!opening->error || opening->again || !rpg_is_misunderstood(lane, opening)) rpg_fail(lane, opening);
    rpg_request_free(opening);
    submit_opening(lane, statement, true);
}

/* --- who takes it --- */

VALUE rpg_ask_with_opening(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    rpg_request *opening = lane->opening, **parts = malloc(sizeof(*parts) * 2);
    VALUE statement = opening->statement, answer = rpg_sym_again;
    if (!parts) {
        rpg_request_free(request);
        rb_memerror();
    }
    parts[0] = opening;
    parts[1] = request;
    opening->syncs = false;
    request->continues = true;
    request->parts = parts;
    request->parts_len = 2;
    lane->opening_taken = true;
    rpg_submit(lane, request);
    rpg_wait_among_others(lane, request, deadline);
    request->parts = NULL;
    free(parts);
    if (opening->error) {
        rpg_request_free(request); /* which the server has not looked at */
        begin_again(lane, opening, statement);
    } else {
        rpg_request_free(opening);
        answer = rpg_answer_of(lane, request);
    }
    RB_GC_GUARD(statement);
    return answer;
}

static void await_own(rpg_lane *lane, int64_t deadline) {
    rpg_request *opening = lane->opening;
    VALUE statement = opening->statement;
    lane->opening_taken = true;
    if (opening->done) rpg_opening_ended(lane, (rpg_end_kind)opening->end);
    else rpg_wait_among_others(lane, opening, deadline);
    if (opening->end == RPG_ENDED_WELL) rpg_request_free(opening);
    else begin_again(lane, opening, statement);
    RB_GC_GUARD(statement);
}

/* Another strand has it, or has gone. */
static void await_taken(rpg_lane *lane, int64_t deadline) {
    rpg_request *empty = rpg_submit_empty(lane);
    rpg_wait_for(lane, empty, deadline);
    rpg_request_free(empty);
}

void rpg_await_opening(rpg_lane *lane, int64_t deadline) {
    while (lane->opening) {
        if (lane->opening_taken) await_taken(lane, deadline);
        else await_own(lane, deadline);
    }
    if (!lane->unopened || lane->lost[0]) return;
    rb_raise(rb_path2class("Ringspun::Postgres::TransactionRolledBack"), "the transaction has not begun, because the server has refused its BEGIN");
}

/* --- the method --- */

/* Has a transaction begin before the next statement. Does not wait for that.
 *
 * @param sql [String] the BEGIN
 * @return [nil, Symbol] the Symbol says why it was not taken */
static VALUE lane_open_transaction(VALUE self, VALUE sql, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    rpg_ask_deadline(lane, seconds, false);
    VALUE none = rb_ary_new(), statement = rpg_ask_statement(lane, sql, none);
    VALUE refused = rpg_why_not(lane, rpg_statement_get(statement), true);
    if (!NIL_P(refused)) return refused;
    rpg_opening_forget(lane);
    submit_opening(lane, statement, false);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(none);
    return Qnil;
}

/* @return [Boolean] whether a transaction is to begin that has not begun yet */
static VALUE lane_opens(VALUE self) { return rpg_lane_get(self)->opening ? Qtrue : Qfalse; }

/* The transaction is over, without a COMMIT. From any thread. */
static VALUE lane_forget_opening(VALUE self) {
    rpg_opening_forget(rpg_lane_get(self));
    return Qnil;
}

void rpg_init_begin(VALUE cLane) {
    rb_define_method(cLane, "open_transaction", lane_open_transaction, 2);
    rb_define_method(cLane, "opens?", lane_opens, 0);
    rb_define_method(cLane, "forget_opening", lane_forget_opening, 0);
}
