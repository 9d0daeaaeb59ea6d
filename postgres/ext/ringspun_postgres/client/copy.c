/* copy: COPY FROM STDIN and TO STDOUT on a lane of one user: Lane#begin_copy and what follows it.
 *
 * A COPY is the first leg of a stream, with a Flush and no Sync behind it, for a server that waits for rows passes over a Sync. What
 * goes in is written beside the outbox, and only between the server's "go on" and its end. The Sync follows when all is said, and
 * where a COPY was given up. https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-COPY
 */
#include "client/ask.h"
#include "client/begin.h"
#include "client/copying.h"
#include "client/ending.h"
#include "client/inits.h"
#include "client/lane_object.h"
#include "client/stream.h"

/* Of a CopyData. It is far below what a server takes at once. */
#define COPY_DATA_MAX ((size_t)1 << 24)

/* Sends the statement.
 *
 * @param into [Boolean] whether it is one that takes rows
 * @return [nil, Symbol] the Symbol says why it was not taken */
static VALUE lane_begin_copy(VALUE self, VALUE sql, VALUE into, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, false);
    VALUE statement = rpg_ask_copy(sql), none = rb_ary_new();
    VALUE refused = rpg_why_not(lane, rpg_statement_get(statement), true);
    if (!NIL_P(refused)) return refused;
    uint32_t transaction = rpg_transaction_of(lane);
    rpg_settle_opening(lane, deadline);
    rpg_refuse_ended(lane, transaction);
    rpg_request *request = rpg_ask_request(lane, statement, none);
    request->again = true; /* it is given no name */
    request->leg = RPG_FIRST_LEG;
    request->copy = RPG_COPY_ASKED;
    request->copy_way = RTEST(into) ? RPG_COPY_IN : RPG_COPY_OUT; /* until the server says */
    lane->leg = request;
    lane->streams = true;
    rpg_submit(lane, request);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(none);
    return Qnil;
}

/* What has come of it. Before all rows were sent nothing of them can have taken effect. */
static VALUE failure_of(rpg_lane *lane, rpg_request *request) {
    bool unsaid = request->copy_way == RPG_COPY_IN && request->copy < RPG_COPY_SENT && !request->error && !lane->broken;
    if (!unsaid || !lane->lost[0]) return rpg_failure_of(lane, request);
    rpg_request_free(request);
    return rb_funcall(rpg_mPostgres, rb_intern("lost"), 2, rb_utf8_str_new_cstr(lane->lost), Qfalse);
}

/* What is left of it is the Sync, where that has not been sent. */
static VALUE end_copy(rpg_lane *lane, int64_t deadline) {
    rpg_request *request = lane->leg;
    rpg_wait_for(lane, request, deadline);
    VALUE answer = request->end == RPG_ENDED_WELL ? rpg_result_of(request, false) : Qnil, failure = Qnil;
    lane->leg = lane->leg_ahead ? lane->leg_ahead : rpg_submit_last_leg(lane);
    lane->leg_ahead = NULL;
    if (NIL_P(answer)) failure = failure_of(lane, request);
    else rpg_request_free(request);
    rpg_wait_for(lane, lane->leg, deadline);
    request = lane->leg;
    lane->leg = NULL;
    bool well = request->end == RPG_ENDED_WELL;
    if (NIL_P(failure) && !well) failure = rpg_failure_of(lane, request);
    else rpg_request_free(request);
    if (!NIL_P(failure)) rb_exc_raise(failure);
    return answer;
}

/* Waits until the server begins with it. May switch strands.
 *
 * @return [Array, nil] whether it takes rows, whether they are binary, and how many columns there are; nil: it has ended, and there
 *   was nothing to copy */
static VALUE lane_await_copy(VALUE self, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = ringspun->deadline(seconds);
    rpg_request *request = lane->leg;
    rpg_wait_for(lane, request, deadline);
    if (request->copy != RPG_COPY_BEGUN) {
        end_copy(lane, deadline);
        return Qnil;
    }
    request->copy = RPG_COPY_GOES;
    return rb_ary_new_from_args(3, request->copy_way == RPG_COPY_IN ? Qtrue : Qfalse, request->copy_format ? Qtrue : Qfalse,
                                UINT2NUM(request->copy_columns));
}

/* Waits until the server has nothing more to say of it. May switch strands. */
static VALUE lane_watch_copy(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    if (lane->leg) rpg_wait_for(lane, lane->leg, RINGSPUN_NEVER);
    return Qnil;
}

static bool goes(const rpg_lane *lane) { return lane->leg && !lane->leg->done && lane->leg->copy == RPG_COPY_GOES; }

/* Rows, which leave when the tick ends.
 *
 * @return [Boolean] false: it has ended, and takes nothing more */
static VALUE lane_put_rows(VALUE self, VALUE bytes) {
    rpg_lane *lane = rpg_lane_get(self);
    const char *at = RSTRING_PTR(bytes);
    size_t left = (size_t)RSTRING_LEN(bytes);
    while (left > 0 && goes(lane)) {
        size_t len = left < COPY_DATA_MAX ? left : COPY_DATA_MAX;
        rpg_out header = {0};
        rpg_put_copy_header(&header, (uint32_t)len);
        if (!rpg_copy_put(lane, &header) || !ringspun->stream_put(lane->stream, at, len)) rpg_lose(lane, "the rows could not be sent");
        at += len;
        left -= len;
    }
    RB_GC_GUARD(bytes);
    return goes(lane) ? Qtrue : Qfalse;
}

/* All rows are sent. */
static VALUE lane_close_copy(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    if (!goes(lane)) return Qnil;
    rpg_out out = {0};
    rpg_put_copy_done(&out);
    lane->leg->copy = RPG_COPY_SENT;
    if (!rpg_copy_put(lane, &out)) rpg_lose(lane, "the end of the rows could not be sent");
    else lane->leg_ahead = rpg_submit_last_leg(lane);
    return Qnil;
}

/* The rest does not come. The Sync is for the end of the legs.
 *
 * @param reason [String] for the server's log */
static VALUE lane_fail_copy(VALUE self, VALUE reason) {
    rpg_lane *lane = rpg_lane_get(self);
    if (!goes(lane) || lane->leg->copy_way != RPG_COPY_IN) return Qnil;
    rpg_span text = {(const uint8_t *)StringValueCStr(reason), (size_t)RSTRING_LEN(reason)};
    lane->leg->copy = RPG_COPY_SENT;
    if (!rpg_copy_put_fail(lane, text)) rpg_lose(lane, "the end of the rows could not be sent");
    RB_GC_GUARD(reason);
    return Qnil;
}

/* Waits for rows that come out, or for the end. May switch strands.
 *
 * @return [Result] with rows; without: that was all, and it has the tag */
static VALUE lane_next_copied(VALUE self, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, true);
    rpg_request *request = lane->leg;
    if (!request) rb_raise(rpg_eUsage, "the COPY has ended");
    rpg_wait_for(lane, request, deadline);
    return request->rows.count > 0 ? rpg_result_of(request, false) : end_copy(lane, deadline);
}

/* Waits for the Sync behind a COPY in, of which nothing more comes. May switch strands.
 *
 * @return [Result] which has the tag */
static VALUE lane_end_copy(VALUE self, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = ringspun->deadline(seconds);
    if (!lane->leg) rb_raise(rpg_eUsage, "the COPY has ended");
    return end_copy(lane, deadline);
}

/* The columns of a statement, which is not executed. May switch strands.
 *
 * @return [Result, Symbol] without rows; the Symbol says why it was not taken */
static VALUE lane_describe(VALUE self, VALUE sql, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, false);
    rpg_ask_check(sql, rb_ary_new());
    VALUE statement = rpg_statement_new(rb_str_new_frozen(sql), Qnil, lane->decoders), none = rb_ary_new();
    VALUE refused = rpg_why_not(lane, rpg_statement_get(statement), true);
    if (!NIL_P(refused)) return refused;
    rpg_settle_opening(lane, deadline);
    rpg_request *request = rpg_ask_request(lane, statement, none);
    request->again = request->describes = true;
    rpg_submit(lane, request);
    rpg_wait_for(lane, request, deadline);
    VALUE answer = rpg_answer_of(lane, request);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(none);
    if (rb_obj_is_kind_of(answer, rb_eException)) rb_exc_raise(answer);
    return answer;
}

void rpg_init_copy(VALUE cLane) {
    rb_define_method(cLane, "describe", lane_describe, 2);
    rb_define_method(cLane, "begin_copy", lane_begin_copy, 3);
    rb_define_method(cLane, "await_copy", lane_await_copy, 1);
    rb_define_method(cLane, "watch_copy", lane_watch_copy, 0);
    rb_define_method(cLane, "put_rows", lane_put_rows, 1);
    rb_define_method(cLane, "close_copy", lane_close_copy, 0);
    rb_define_method(cLane, "fail_copy", lane_fail_copy, 1);
    rb_define_method(cLane, "next_copied", lane_next_copied, 1);
    rb_define_method(cLane, "end_copy", lane_end_copy, 1);
}
