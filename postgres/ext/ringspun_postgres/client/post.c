/* post: statements for which no strand waits: Lane#post. For all of them together one strand does (Lane#attend), and takes their
 * answers. So to ask for callers in other threads costs neither a strand nor a switch for each. */
#include "client/ask.h"
#include "client/ending.h"
#include "client/inits.h"
#include "client/lane_object.h"
#include "client/params.h"
#include "client/window.h"

static rpg_request *posted_by(const rpg_requests *list, VALUE caller) {
    rpg_request *each = list->first;
    while (each && (each->caller != caller || each->abandoned)) each = each->next;
    return each;
}

static void end_post(rpg_lane *lane) {
    if (--lane->posted == 0) rpg_rouse(lane->attendant);
}

/* Sends one statement, and returns at once.
 *
 * @param (see #query)
 * @param caller [Object] of which the answer is
 * @return [Symbol, nil] the Symbol says why it was not taken */
static VALUE lane_post(VALUE self, VALUE sql, VALUE params, VALUE prepared, VALUE caller) {
    rpg_lane *lane = rpg_lane_get(self);
    params = rpg_encode_params(params);
    VALUE statement = rpg_ask_statement(lane, sql, params);
    bool ready = rpg_is_typed(statement, params) && rpg_is_encoded(statement, params);
    if (!ready) return ID2SYM(rb_intern("untyped")); /* to ask for the types is to wait */
    bool idle = lane->sent.len == 0 && lane->outbox.len == 0;
    VALUE refused = rpg_why_not(lane, rpg_statement_get(statement), idle && !rpg_history_is_slow(rpg_statement_get(statement)->history));
    if (NIL_P(refused) && rpg_window_is_closed(lane)) refused = rpg_sym_stuck; /* a strand waits better */
    if (!NIL_P(refused)) return refused;
    if (!lane->attendant) lane->attendant = rpg_request_new(lane, Qnil, (rpg_span){NULL, 0});
    if (!lane->attendant) rb_memerror();
    rpg_request *request = rpg_ask_request(lane, statement, params);
    request->prepared = RTEST(prepared);
    request->caller = caller;
    lane->posted++;
    rpg_submit(lane, request);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(params);
    return Qnil;
}

/* Its caller does not wait any more.
 *
 * @return [TimeoutError, nil] nil: it was answered */
static VALUE lane_withdraw(VALUE self, VALUE caller) {
    rpg_lane *lane = rpg_lane_get(self);
    rpg_request *request = posted_by(&lane->outbox, caller);
    if (!request) request = posted_by(&lane->sent, caller);
    if (!request) return Qnil;
    VALUE error = rpg_late_error(lane, request->sent);
    rpg_leave(request);
    end_post(lane);
    return error;
}

typedef struct {
    rpg_lane *lane;
    rpg_request *request;
} answering;

static VALUE make_answer(VALUE argument) {
    const answering *a = (const answering *)argument;
    VALUE statement = a->request->statement, answer = rpg_answer_of(a->lane, a->request);
    RB_GC_GUARD(statement);
    return answer;
}

/* What is raised in making it is the answer, unless it ends this strand or its thread: Thread#kill, exit, an interrupt. Then the
 * caller is told with all others that the courier has ended. */
static VALUE next_answer(rpg_lane *lane, rpg_request *request) {
    int state = 0;
    answering a = {lane, request};
    VALUE answer = rb_protect(make_answer, (VALUE)&a, &state);
    if (!state) return answer;
    VALUE error = rb_errinfo();
    if (!rpg_is_error(error)) rb_jump_tag(state); /* the thread is killed */
    rb_set_errinfo(Qnil);
    return error;
}

/* Waits until some of what was posted is answered, and yields the answers. May switch strands.
 *
 * @yieldparam caller [Object]
 * @yieldparam answer [Result, Exception, Symbol] as #query returns or raises it
 * @return [Boolean] whether something is left */
static VALUE lane_attend(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    if (lane->posted > 0) rpg_wait_among_others(lane, lane->attendant, RINGSPUN_NEVER);
    lane->attendant->done = false;
    while (lane->answered.first) {
        rpg_request *request = rpg_requests_take_first(&lane->answered);
        VALUE caller = request->caller, statement = request->statement;
        end_post(lane);
        rb_yield_values(2, caller, next_answer(lane, request));
        RB_GC_GUARD(statement);
    }
    return lane->posted > 0 ? Qtrue : Qfalse;
}

void rpg_init_post(VALUE cLane) {
    rb_define_method(cLane, "post", lane_post, 4);
    rb_define_method(cLane, "withdraw", lane_withdraw, 1);
    rb_define_method(cLane, "attend", lane_attend, 0);
}
