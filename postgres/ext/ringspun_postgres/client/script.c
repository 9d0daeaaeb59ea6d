/* script: several statements as one simple query: Lane#script. */
#include "client/ask.h"
#include "client/begin.h"
#include "client/ending.h"
#include "client/inits.h"
#include "client/lane_object.h"

#include <stdlib.h>

static ID id_script_error;

typedef struct {
    rpg_lane *lane;
    rpg_request *request;
    VALUE sql;
} scripting;

static VALUE result_of(const rpg_lane *lane, rpg_request *part) {
    rpg_result *result;
    VALUE self = rpg_result_new(&result);
    result->tag_len = part->tag_len;
    memcpy(result->tag, part->tag, part->tag_len);
    rpg_rows_move(&result->rows, &part->rows);
    if (part->params_len > 0) result->columns = rpg_columns_new((rpg_span){part->params, part->params_len}, lane->decoders);
    return self;
}

static VALUE make_results(VALUE argument) {
    const scripting *s = (const scripting *)argument;
    rpg_request *request = s->request;
    if (request->end != RPG_ENDED_WELL) {
        VALUE seen = rpg_take_seen(request), error = Qnil;
        if (request->error) {
            VALUE body = rb_str_new((const char *)request->error, (long)request->error_len);
            uint32_t whole = request->script->results.len - request->script->open;
            error = rb_funcall(rpg_mPostgres, id_script_error, 3, body, s->sql, UINT2NUM(whole));
        }
        rpg_seen_put(error, seen);
        return error;
    }
    VALUE results = rb_ary_new_capa((long)request->script->results.len);
    for (rpg_request *part = request->script->results.first; part; part = part->next) rb_ary_push(results, result_of(s->lane, part));
    return rb_assoc_new(results, rpg_take_seen(request));
}

static rpg_request *new_script(rpg_lane *lane, VALUE sql) {
    rpg_request *request = rpg_request_new(lane, Qnil, (rpg_span){(const uint8_t *)RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql)});
    if (!request) rb_memerror();
    request->script = calloc(1, sizeof(*request->script));
    if (!request->script) {
        rpg_request_free(request);
        rb_memerror();
    }
    rpg_what_of(request->script->what, RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql));
    return request;
}

/* Sends statements, as one simple query, and waits for all results. On a lane of one user. May switch strands.
 *
 * @param sql [String] that Lane.check has seen
 * @return [Array(Array<Result>, Array), Symbol] the results, and what take_seen has; the Symbol says why it was not taken */
static VALUE lane_script(VALUE self, VALUE sql, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, false);
    VALUE refused = rpg_why_not(lane, NULL, true);
    if (!NIL_P(refused)) return refused;
    uint32_t transaction = rpg_transaction_of(lane);
    rpg_settle_opening(lane, deadline);
    rpg_refuse_in_stream(lane);
    rpg_refuse_ended(lane, transaction);
    rpg_request *request = new_script(lane, sql);
    rpg_submit(lane, request);
    rpg_wait_among_others(lane, request, deadline);
    if (request->end != RPG_ENDED_WELL && !request->error) {
        if (lane->lost[0] && !request->sent) {
            rpg_request_free(request);
            return rpg_sym_lost;
        }
        rpg_fail(lane, request);
    }
    scripting s = {lane, request, sql};
    int state = 0;
    VALUE answer = rb_protect(make_results, (VALUE)&s, &state);
    rpg_request_free(request);
    RB_GC_GUARD(sql);
    if (state) rb_jump_tag(state);
    if (rb_obj_is_kind_of(answer, rb_eException)) rb_exc_raise(answer);
    return answer;
}

void rpg_init_script(VALUE cLane) {
    id_script_error = rb_intern("script_error");
    rb_define_method(cLane, "script", lane_script, 2);
}
