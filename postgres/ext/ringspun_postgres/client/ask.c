#include "client/ask.h"
#include "client/ending.h"
#include "client/flight.h"
#include "client/lists.h"
#include "client/params.h"
#include "client/serve.h"
#include "client/statement_cache.h"
#include "client/stuck.h"
#include "client/window.h"

/* After so long without an answer a server is suspected to have lost what came behind another statement. */
#define SILENCE (5000 * RPG_MILLISECOND)

VALUE rpg_sym_lost, rpg_sym_session, rpg_sym_unsafe, rpg_sym_again, rpg_sym_stuck, rpg_sym_moved, rpg_sym_lock;
static ID id_error_of, id_lost, id_orphaned, id_suspected, id_watch, id_late, id_under_statement;
static VALUE sym_held, sym_slow, sym_unknown, sym_alone, sym_quiet, sym_old;

/* --- statements --- */

static void check_sql(VALUE sql) {
    if (!RB_TYPE_P(sql, T_STRING)) rb_raise(rpg_eUsage, "expected a statement, a String, got %" PRIsVALUE, rb_obj_class(sql));
    if (!rpg_is_utf8(sql) && !rb_enc_str_asciionly_p(sql)) {
        rb_raise(rpg_eUsage, "expected a statement in UTF-8, got one in %s", rb_enc_name(rb_enc_get(sql)));
    }
    if (RSTRING_LEN(sql) > RPG_MESSAGE_MAX) rb_raise(rpg_eUsage, "a statement has %ld bytes at most, this one has %ld", RPG_MESSAGE_MAX, RSTRING_LEN(sql));
    if (memchr(RSTRING_PTR(sql), 0, (size_t)RSTRING_LEN(sql))) rb_raise(rpg_eUsage, "a statement has no NUL in it");
}

static VALUE refuse_copy(VALUE statement) {
    if (rpg_statement_get(statement)->verdict.copies) rb_raise(rpg_eUsage, RPG_COPY_REFUSED);
    return statement;
}

VALUE rpg_ask_statement(rpg_lane *lane, VALUE sql, VALUE params) {
    check_sql(sql);
    return refuse_copy(rpg_lane_statement(lane, sql, rpg_params_declared(params)));
}

VALUE rpg_ask_copy(VALUE sql) {
    check_sql(sql);
    VALUE statement = rpg_statement_new(rb_str_new_frozen(sql), Qnil, Qnil);
    if (!rpg_statement_get(statement)->verdict.copies) rb_raise(rpg_eUsage, "expected a COPY statement, got: %.60s", RSTRING_PTR(sql));
    return statement;
}

bool rpg_ask_check(VALUE sql, VALUE params) {
    check_sql(sql);
    VALUE statement = refuse_copy(rpg_statement_new(sql, Qnil, Qnil));
    rpg_encode_params(params);
    bool of_session = rpg_statement_get(statement)->verdict.of_session;
    RB_GC_GUARD(statement);
    return of_session;
}

/* --- whether one may come --- */

/* Its legs execute the unnamed portal, which another statement would bind anew. */
void rpg_refuse_in_stream(const rpg_lane *lane) {
    if (RB_LIKELY(!lane->leg)) return;
    if (lane->leg->copy) {
        rb_raise(rpg_eUsage, "this session is in the midst of a COPY: end that first, or ask the pool, which has other connections");
    }
    rb_raise(rpg_eUsage, "this session is in the midst of a stream: read it to its end first, or ask the pool, which has other "
             "connections");
}

void rpg_refuse_ended(const rpg_lane *lane, uint32_t transaction) {
    if (RB_LIKELY(!transaction || transaction == rpg_transaction_of(lane))) return;
    rb_raise(rpg_eUsage, "this transaction has ended; use it inside of its block only, and await there what you begin with it");
}

static VALUE why_not_behind(const rpg_statement *statement) {
    return rpg_history_is_slow(statement->history) ? sym_slow : sym_unknown;
}

static void refuse_end(const rpg_lane *lane, const rpg_statement *statement) {
    if (RB_LIKELY(!lane->enclosed || !statement || !statement->verdict.ends_transaction)) return;
    rb_raise(rpg_eUsage, "a transaction is committed when its block returns, and rolled back when that is left by an exception, throw or break: no "
             "statement ends it");
}

/* Who asks whether it is alive is not alone: what came behind that question would be in doubt when it is not. */
static bool is_doubted(rpg_lane *lane, int64_t now) {
    if (RB_UNLIKELY(rpg_is_quiet(lane, now))) lane->doubted = true;
    return lane->doubted;
}

VALUE rpg_why_not(rpg_lane *lane, rpg_statement *statement, bool forced) {
    rpg_refuse_in_stream(lane);
    refuse_end(lane, statement);
    if (lane->lost[0]) return rpg_sym_lost;
    if (!lane->shared) return Qnil;
    if (statement->verdict.of_session) return rpg_sym_session;
    if (statement->history->kind == RPG_ALONE) return sym_alone;
    if (lane->held) return sym_held;
    int64_t now = rpg_now(lane);
    if (is_doubted(lane, now)) return sym_quiet;
    if (!forced && !rpg_is_quick(lane, statement)) return why_not_behind(statement);
    if (rpg_is_stuck(lane, now)) return rpg_sym_stuck;
    if (forced) return Qnil;
    return now > lane->ends ? sym_old : Qnil;
}

/* --- requests --- */

static rpg_kind kind_at(const void *data, long place, uint32_t *type) { return rpg_statement_kind(data, place, type); }

rpg_request *rpg_ask_request(rpg_lane *lane, VALUE statement, VALUE params) {
    rpg_refuse_in_stream(lane); /* which another strand may have begun while this one waited for types or a BEGIN */
    VALUE typed = rpg_typed_params(params, kind_at, rpg_statement_get(statement));
    rpg_put_params(&lane->scratch, typed);
    RB_GC_GUARD(typed);
    bool too_long = lane->scratch.state == RPG_OUT_TOO_LONG;
    rpg_request *request = NULL;
    if (lane->scratch.state == RPG_OUT_FINE) {
        request = rpg_request_new(lane, statement, (rpg_span){lane->scratch.bytes, lane->scratch.len});
    }
    rpg_out_cut(&lane->scratch, 0);
    if (too_long) rb_raise(rpg_eUsage, "the parameters have too many bytes");
    if (!request) rb_memerror();
    return request;
}

void rpg_note_head(rpg_lane *lane) {
    if (lane->sent.len == 0 && lane->outbox.len == 0) lane->head_since = rpg_now(lane);
}

void rpg_submit(rpg_lane *lane, rpg_request *request) {
    if (lane->lost[0]) {
        request->done = true;
        request->end = RPG_ENDED_SKIPPED;
        return;
    }
    rpg_note_head(lane);
    if (request->leg == RPG_LAST_LEG) rpg_requests_add_passing(&lane->outbox, request);
    else rpg_requests_append(&lane->outbox, request);
    rpg_enter(lane, request);
}

/* It has no statement, and leaves at once. */
rpg_request *rpg_submit_empty(rpg_lane *lane) {
    rpg_request *request = rpg_request_new(lane, Qnil, (rpg_span){NULL, 0});
    if (!request) rb_memerror();
    rpg_note_head(lane);
    rpg_requests_add_passing(&lane->outbox, request);
    rpg_ask_flight(lane);
    return request;
}

/* Many that are sent together are answered soon. */
#define MANY 64u

void rpg_enter(rpg_lane *lane, rpg_request *first) {
    bool waits = rpg_window_is_closed(lane) || lane->held || lane->writes >= RPG_WRITES_MAX || lane->sent.len > MANY;
    rpg_window_enter(lane, first);
    rpg_ask_flight(lane);
    if (!waits || !lane->shared || lane->watched) return;
    lane->watched = true;
    rb_funcall(lane->self, id_watch, 0);
}

/* --- waiting --- */

typedef struct {
    rpg_lane *lane;
    rpg_request *request;
    int64_t deadline;
    int64_t until;              /* of the wait for more */
} reading;

/* A pooler that drops what comes behind the first statement is never seen to answer the second. */
int64_t rpg_suspected_from(const rpg_lane *lane) {
    const rpg_request *first = lane->sent.first;
    bool suspicious = lane->shared && !lane->pipelines && !lane->suspected && first && first->behind;
    return suspicious ? lane->head_since + SILENCE : RINGSPUN_NEVER;
}

/* Until there may be more, or the server is to be suspected. */
static bool read_more(reading *r) {
    int64_t from = rpg_suspected_from(r->lane);
    bool unsent = r->lane->shared && !r->request->sent && !r->request->passes;
    if (from != RINGSPUN_NEVER && ringspun->now() >= from) {
        r->lane->suspected = true;
        rb_funcall(r->lane->self, id_suspected, 0);
        from = RINGSPUN_NEVER;
    }
    if (unsent && ringspun->now() + RPG_STUCK < from) from = ringspun->now() + RPG_STUCK;
    r->until = from < r->deadline ? from : r->deadline;
    return ringspun->stream_more(r->lane->stream, r->until);
}

static VALUE read_for(VALUE argument) {
    reading *r = (reading *)argument;
    while (!rpg_is_served(r->request) && rpg_serve(r->lane)) {}
    while (!rpg_is_served(r->request)) {
        if (!read_more(r)) rpg_lose_to_server(r->lane, "the server has closed the connection");
        else while (!rpg_is_served(r->request) && rpg_serve(r->lane)) {}
    }
    return Qnil;
}

/* `throw` and Thread#kill leave in errinfo what is no object at all: asking that for its class would crash. */
static bool is_exception(VALUE info) {
    return !RB_SPECIAL_CONST_P(info) && RB_BUILTIN_TYPE(info) != RUBY_T_IMEMO && rb_obj_is_kind_of(info, rb_eException);
}

bool rpg_is_error(VALUE info) {
    return is_exception(info) && (rb_obj_is_kind_of(info, rb_eStandardError) || rb_obj_is_kind_of(info, rb_eScriptError) ||
                                  rb_obj_is_kind_of(info, rb_eNoMemError) || rb_obj_is_kind_of(info, rb_eSysStackError));
}

static bool ends_connection(VALUE error) {
    if (!is_exception(error)) return false;
    return rb_obj_is_kind_of(error, rb_eSystemCallError) || rb_obj_is_kind_of(error, rpg_eClosed) ||
           rb_obj_is_kind_of(error, rpg_eTLS);
}

VALUE rpg_late_error(const rpg_lane *lane, bool sent) {
    const rpg_request *first = lane->sent.first;
    if (!sent) return rb_funcall(rpg_mPostgres, id_late, 2, rb_utf8_str_new_cstr("the statement could not be sent before the deadline"), Qfalse);
    bool suspicious = lane->shared && !lane->pipelines && first && (first->behind || first->next);
    return rb_funcall(rpg_mPostgres, id_late, 2, rb_sprintf("the server has not answered before the deadline; the statement is cancelled where it "
                                                   "holds up nobody else, and may have taken effect%s",
                                                   suspicious ? ". Where a pooler stands before the server, it may lose statements that "
                                                                "come together: try pipelining: false" : ""), Qtrue);
}

NORETURN(static void fail_late(const rpg_lane *lane, bool sent));
static void fail_late(const rpg_lane *lane, bool sent) { rb_exc_raise(rpg_late_error(lane, sent)); }

int64_t rpg_ask_deadline(const rpg_lane *lane, VALUE seconds, bool sent) {
    int64_t deadline = ringspun->deadline(seconds);
    if (RB_UNLIKELY(deadline <= ringspun->now())) fail_late(lane, sent);
    return deadline;
}

/* Of a stream the first leg has left before others. */
static bool has_left(const rpg_request *request) { return request->sent || request->leg > RPG_FIRST_LEG; }

/* What only asks whether the server is there, or what a statement is, has no effect. */
static bool may_have_effect(const rpg_request *request) {
    bool empty = NIL_P(request->statement) && !request->script && !request->leg;
    return has_left(request) && !request->describes && !empty;
}

/* The text lasts as long as the request waits, which has the statement. */
static const char *what_of(const rpg_request *request) {
    if (request->script) return request->script->what;
    return NIL_P(request->statement) ? "an answer of Postgres" : rpg_statement_what(rpg_statement_get(request->statement));
}

static void read_as_reader(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    reading r = {lane, request, deadline, RINGSPUN_NEVER};
    int state = 0;
    lane->reader = request;
    ringspun->waits_for(what_of(request));
    rb_protect(read_for, (VALUE)&r, &state);
    ringspun->waits_for(NULL);
    rpg_pass_on(lane);
    if (!state) return;
    VALUE error = rb_errinfo();
    if (ends_connection(error)) {
        rb_set_errinfo(Qnil);
        rpg_lose_to_server(lane, RSTRING_PTR(rb_obj_as_string(error)));
        return;
    }
    bool late = r.until != RINGSPUN_NEVER && is_exception(error) && rb_obj_is_kind_of(error, rpg_eTimeout) && ringspun->now() >= r.until;
    if (late) rb_set_errinfo(Qnil);
    if (late && r.until < deadline) return;
    bool sent = may_have_effect(request);
    rpg_leave(request);
    if (late) fail_late(lane, sent);
    rb_jump_tag(state);
}

/* A request that waits, and whether it may have taken effect when its strand went. */
typedef struct {
    rpg_request *request;
    bool sent;
} waiting;

static void keep_waker(ringspun_waker waker, void *data) {
    rpg_request *request = ((waiting *)data)->request;
    request->waker = waker;
    request->parked = true;
}

/* It may have been chosen to read next, when its wait had ended already. */
static void give_up(void *data) {
    waiting *one = data;
    rpg_lane *lane = one->request->lane;
    one->sent = may_have_effect(one->request);
    rpg_leave(one->request);
    if (!lane->reader) rpg_pass_on(lane);
}

void rpg_wait_for(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    waiting one = {request, false};
    while (!rpg_is_served(request)) {
        if (!lane->reader) read_as_reader(lane, request, deadline);
        else if (ringspun->park_or(deadline, what_of(request), keep_waker, give_up, &one, NULL)) request->parked = false;
        else fail_late(lane, one.sent);
        if (!rpg_is_served(request) && rpg_move_one(lane, request)) return;
    }
}

void rpg_wait_among_others(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    rpg_wait_for(lane, request, deadline);
    if (RB_UNLIKELY(rpg_is_orphaned(lane))) rb_funcall(lane->self, id_orphaned, 0);
}

/* --- types --- */

/* Whether the type of that parameter has to be known and is not. */
static bool lacks_type(const rpg_statement *statement, VALUE params, long place, uint32_t *type) {
    if (!rpg_param_is_untyped(params, place) || rpg_statement_kind(statement, place, type) != RPG_UNKNOWN_KIND) return false;
    VALUE sql = statement->sql;
    return !(rpg_param_is_list(params, place) && rpg_shows_array(RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql), place + 1));
}

bool rpg_is_typed(VALUE statement, VALUE params) {
    uint32_t type;
    for (long i = 0; rpg_params_are_untyped(params) && i < rpg_params_len(params); i++) {
        if (lacks_type(rpg_statement_get(statement), params, i, &type)) return false;
    }
    return true;
}

static bool is_json(VALUE statement, VALUE params, long place) {
    uint32_t type;
    return rpg_param_lacks_json(params, place) && rpg_statement_kind(rpg_statement_get(statement), place, &type) == RPG_JSON_KIND;
}

bool rpg_is_encoded(VALUE statement, VALUE params) {
    for (long i = 0; rpg_params_are_untyped(params) && i < rpg_params_len(params); i++) {
        if (is_json(statement, params, i)) return false;
    }
    return true;
}

void rpg_make_jsons(VALUE statement, VALUE params) {
    for (long i = 0; rpg_params_are_untyped(params) && i < rpg_params_len(params); i++) {
        if (is_json(statement, params, i)) rpg_make_json(params, i);
    }
}

static VALUE describe(rpg_lane *lane, VALUE statement, int64_t deadline) {
    rpg_refuse_in_stream(lane);
    rpg_request *request = rpg_request_new(lane, statement, (rpg_span){NULL, 0});
    if (!request) rb_memerror();
    request->describes = true;
    rpg_submit(lane, request);
    rpg_wait_among_others(lane, request, deadline);
    VALUE refused = Qnil;
    if (request->moved) refused = rpg_sym_moved;
    else if (rpg_has_met_lock(lane, request)) refused = rpg_sym_lock;
    else if (request->end != RPG_ENDED_WELL) rpg_fail(lane, request);
    rpg_request_free(request);
    return refused;
}

NORETURN(static void fail_unknown(VALUE oids));
static void fail_unknown(VALUE oids) {
    rb_exc_raise(rb_funcall(rb_path2class("Ringspun::Postgres::UnknownTypes"), rb_intern("new"), 1, oids));
}

VALUE rpg_ask_types(rpg_lane *lane, VALUE statement, VALUE params, int64_t deadline) {
    if (RB_LIKELY(!rpg_params_are_untyped(params))) return Qnil;
    bool typed = rpg_is_typed(statement, params) || rpg_statement_get(statement)->typed;
    VALUE refused = typed ? Qnil : describe(lane, statement, deadline);
    if (!NIL_P(refused)) return refused;
    if (!typed && !rpg_statement_get(statement)->typed) rb_memerror();
    VALUE oids = rb_ary_new();
    for (long i = 0; i < rpg_params_len(params); i++) {
        uint32_t type = 0;
        if (lacks_type(rpg_statement_get(statement), params, i, &type)) rb_ary_push(oids, UINT2NUM(type));
    }
    if (RARRAY_LEN(oids) > 0) fail_unknown(oids);
    rpg_make_jsons(statement, params);
    return Qnil;
}

VALUE rpg_ask_columns(rpg_lane *lane, VALUE statement, int64_t deadline) {
    VALUE refused = rpg_statement_get(statement)->described ? Qnil : describe(lane, statement, deadline);
    VALUE columns = NIL_P(refused) ? rpg_statement_columns(rpg_statement_get(statement)) : Qnil;
    VALUE oids = NIL_P(columns) ? Qnil : rpg_columns_unknown(columns);
    if (!NIL_P(oids)) fail_unknown(oids);
    return refused;
}

/* --- what has come of it --- */

VALUE rpg_result_of(rpg_request *request, bool last) {
    rpg_result *result;
    VALUE self = rpg_result_new(&result), statement = request->statement, formats = request->formats;
    result->binary = !NIL_P(formats);
    result->tag_len = request->tag_len;
    memcpy(result->tag, request->tag, request->tag_len);
    rpg_rows_move(&result->rows, &request->rows);
    result->seen = rpg_take_seen(request);
    if (last) rpg_request_free(request);
    result->columns = NIL_P(formats) ? rpg_statement_columns(rpg_statement_get(statement)) : formats;
    RB_GC_GUARD(statement);
    RB_GC_GUARD(formats);
    return self;
}

VALUE rpg_failure_of(const rpg_lane *lane, rpg_request *request) {
    VALUE sql = NIL_P(request->statement) ? Qnil : rpg_statement_get(request->statement)->sql, body = Qnil;
    bool known = request->error, sent = has_left(request), in_doubt = may_have_effect(request);
    VALUE seen = rpg_take_seen(request), error = Qnil;
    if (known) body = rb_str_new((const char *)request->error, (long)request->error_len);
    rpg_request_free(request);
    if (known) error = rb_funcall(rpg_mPostgres, id_error_of, 2, body, sql);
    else if (lane->broken && sent) error = rb_funcall(rpg_eProtocol, id_under_statement, 2, rb_utf8_str_new_cstr(lane->lost), Qtrue);
    else if (lane->lost[0]) error = rb_funcall(rpg_mPostgres, id_lost, 2, rb_utf8_str_new_cstr(lane->lost), in_doubt ? Qtrue : Qfalse);
    else rb_memerror();
    rpg_seen_put(error, seen);
    RB_GC_GUARD(seen);
    return error;
}

void rpg_fail(const rpg_lane *lane, rpg_request *request) { rb_exc_raise(rpg_failure_of(lane, request)); }

bool rpg_is_misunderstood(rpg_lane *lane, const rpg_request *request) {
    rpg_statement *statement = rpg_statement_get(request->statement);
    bool unknown = rpg_request_failed_by(request, "26000") || rpg_request_failed_by(request, "42P05");
    bool outdated = rpg_request_failed_by(request, "0A000") || rpg_request_failed_by(request, "42804"); /* of another type now */
    outdated |= rpg_request_complains(request, "cache lookup failed"); /* for a type that is gone; no language has another text for it */
    outdated &= request->named > 0;
    outdated |= rpg_request_failed_by(request, "08P01") && !NIL_P(request->formats); /* behind a pooler: formats of other columns */
    if (!unknown && !outdated) return false;
    if (unknown && request->named > 0) lane->names = false; /* a pooler has changed servers behind our back */
    if (unknown || request->named == statement->named) rpg_statement_forget_name(statement); /* and no newer name */
    return lane->status == 'I';
}

VALUE rpg_answer_of(rpg_lane *lane, rpg_request *request) {
    if (RB_LIKELY(request->end == RPG_ENDED_WELL && !request->unsafe)) return rpg_result_of(request, true);
    VALUE why = rpg_sym_again;
    if (request->end == RPG_ENDED_WELL) why = rpg_sym_unsafe;
    else if (request->moved) why = rpg_sym_moved;
    else if (lane->lost[0] && !request->sent) why = rpg_sym_lost;
    else if (rpg_has_met_lock(lane, request)) why = rpg_sym_lock;
    else if (request->again || !rpg_is_misunderstood(lane, request)) return rpg_failure_of(lane, request);
    rpg_request_free(request);
    return why;
}

void rpg_init_ask(void) {
    id_error_of = rb_intern("error_of");
    id_lost = rb_intern("lost");
    id_orphaned = rb_intern("orphaned");
    id_suspected = rb_intern("suspected");
    rpg_sym_lost = ID2SYM(rb_intern("lost"));
    rpg_sym_unsafe = ID2SYM(rb_intern("unsafe"));
    rpg_sym_again = ID2SYM(rb_intern("again"));
    sym_held = ID2SYM(rb_intern("held"));
    sym_slow = ID2SYM(rb_intern("slow"));
    rpg_sym_stuck = ID2SYM(rb_intern("stuck"));
    rpg_sym_moved = ID2SYM(rb_intern("moved"));
    rpg_sym_lock = ID2SYM(rb_intern("lock"));
    sym_unknown = ID2SYM(rb_intern("unknown"));
    sym_alone = ID2SYM(rb_intern("alone"));
    id_watch = rb_intern("watch");
    id_late = rb_intern("late");
    id_under_statement = rb_intern("under_statement");
    sym_quiet = ID2SYM(rb_intern("quiet"));
    rpg_sym_session = ID2SYM(rb_intern("session"));
    sym_old = ID2SYM(rb_intern("old"));
}
