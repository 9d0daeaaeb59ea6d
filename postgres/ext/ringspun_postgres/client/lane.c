#include "client/lane.h"
#include "client/params.h"

#include <poll.h>
#include <ruby/io.h>
#include <stdlib.h>

#define MILLISECOND INT64_C(1000000)

/* A statement that takes longer on average holds up others, and goes to a connection of its own. */
#define SLOW_MEAN (5 * MILLISECOND)

/* Behind a statement that has been at the head for so long nobody waits. */
#define HEAD_MAX (1000 * MILLISECOND)

/* A connection that was quiet for so long may be dead: a router has forgotten it, or the server has ended it. */
#define QUIET_LOOK (10 * MILLISECOND)
#define QUIET_MAX (1000 * MILLISECOND)

static VALUE cLane;
static ID id_error_of, id_lost, id_orphaned;
static VALUE sym_lost, sym_held, sym_slow, sym_stuck, sym_quiet, sym_session;

/* --- the object --- */

static void lane_mark(void *data) {
    const rpg_lane *lane = data;
    rb_gc_mark(lane->stream);
    rb_gc_mark(lane->statements);
    rpg_requests_mark(&lane->outbox);
    rpg_requests_mark(&lane->sent);
    if (lane->leg) rpg_request_mark(lane->leg); /* which may be done, and then is in neither */
}

/* The lane knows where it is itself. */
static void lane_compact(void *data) {
    rpg_lane *lane = data;
    lane->self = rb_gc_location(lane->self);
}

static void lane_free(void *data) {
    rpg_lane *lane = data;
    rpg_requests_free(&lane->outbox);
    rpg_requests_free(&lane->sent);
    rpg_replies_free(&lane->replies);
    rpg_out_free(&lane->scratch);
    rpg_out_free(&lane->flight);
    rpg_out_free(&lane->closes);
    free(lane->runs);
    xfree(lane);
}

static const rb_data_type_t lane_type = {
    .wrap_struct_name = "Ringspun::Postgres::Lane",
    .function = {.dmark = lane_mark, .dfree = lane_free, .dcompact = lane_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static rpg_lane *get(VALUE self) { return rb_check_typeddata(self, &lane_type); }

static VALUE io_of(VALUE stream) { return rb_funcall(stream, rb_intern("to_io"), 0); }

static VALUE no_io(VALUE unused, VALUE error) { return Qnil; }

static int descriptor_of(VALUE stream) {
    VALUE io = rb_rescue2(io_of, stream, no_io, Qnil, rpg_eUnsupported, (VALUE)0);
    return NIL_P(io) ? -1 : rb_io_descriptor(io);
}

/* @param stream [Stream] of a connection that is ready
 * @param prefix [String] of the names of its statements
 * @param cache [Integer] how many statements it knows at most; 0: it gives no names
 * @param shared [Boolean] whether strands use it that do not know of each other */
static VALUE lane_new(VALUE class, VALUE stream, VALUE prefix, VALUE cache, VALUE shared) {
    rpg_lane *lane;
    VALUE self = TypedData_Make_Struct(class, rpg_lane, &lane_type, lane);
    lane->self = self;
    lane->stream = stream;
    lane->statements = Qnil;
    lane->statements = rb_hash_new();
    lane->fd = descriptor_of(stream);
    lane->status = 'I';
    lane->fastest = INT64_MAX;
    lane->names = true;
    lane->cache = NUM2UINT(cache);
    lane->shared = RTEST(shared);
    lane->quiet_since = ringspun->now();
    snprintf(lane->prefix, sizeof(lane->prefix), "%s", StringValueCStr(prefix));
    return self;
}

/* --- failures --- */

/* The error of a request, which is freed. */
static VALUE failure_of(const rpg_lane *lane, rpg_request *request) {
    VALUE sql = NIL_P(request->statement) ? Qnil : rpg_statement_get(request->statement)->sql, body = Qnil;
    bool known = request->error, sent = request->sent;
    if (known) body = rb_str_new((const char *)request->error, (long)request->error_len);
    rpg_request_free(request);
    if (known) return rb_funcall(rpg_mPostgres, id_error_of, 2, body, sql);
    if (lane->broken && sent) return rb_exc_new_cstr(rpg_eProtocol, lane->lost);
    if (lane->lost[0]) return rb_funcall(rpg_mPostgres, id_lost, 2, rb_utf8_str_new_cstr(lane->lost), sent ? Qtrue : Qfalse);
    rb_memerror();
}

NORETURN(static void fail(const rpg_lane *lane, rpg_request *request));
static void fail(const rpg_lane *lane, rpg_request *request) { rb_exc_raise(failure_of(lane, request)); }

/* --- waiting --- */

typedef struct {
    rpg_lane *lane;
    rpg_request *request;
    int64_t deadline;
} reading;

static VALUE read_for(VALUE argument) {
    const reading *r = (const reading *)argument;
    while (!rpg_is_served(r->request) && rpg_serve(r->lane)) {}
    while (!rpg_is_served(r->request)) {
        if (!ringspun->stream_more(r->lane->stream, r->deadline)) rpg_lose(r->lane, "the server has closed the connection");
        else while (!rpg_is_served(r->request) && rpg_serve(r->lane)) {}
    }
    return Qnil;
}

static bool ends_connection(VALUE error) {
    return rb_obj_is_kind_of(error, rb_eSystemCallError) || rb_obj_is_kind_of(error, rpg_eClosed) ||
           rb_obj_is_kind_of(error, rpg_eTLS);
}

/* A pooler that drops what comes behind the first statement is never seen to answer the second. */
NORETURN(static void fail_late(const rpg_lane *lane));
static void fail_late(const rpg_lane *lane) {
    const rpg_request *first = lane->sent.first;
    bool suspicious = lane->shared && !lane->pipelines && first && (first->behind || first->next);
    rb_raise(rpg_eTimeout, "the server has not answered before the deadline; the statement is cancelled%s",
             suspicious ? ". Where a pooler stands before the server, it may lose statements that come together: try pipelining: false" : "");
}

static void read_as_reader(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    reading r = {lane, request, deadline};
    int state = 0;
    lane->reader = request;
    rb_protect(read_for, (VALUE)&r, &state);
    rpg_pass_on(lane);
    if (!state) return;
    VALUE error = rb_errinfo();
    if (ends_connection(error)) {
        rb_set_errinfo(Qnil);
        rpg_lose(lane, RSTRING_PTR(rb_obj_as_string(error)));
        return;
    }
    rpg_leave(request);
    if (deadline != RINGSPUN_NEVER && rb_obj_is_kind_of(error, rpg_eTimeout) && ringspun->now() >= deadline) {
        rb_set_errinfo(Qnil);
        fail_late(lane);
    }
    rb_jump_tag(state);
}

static void keep_waker(ringspun_waker waker, void *data) {
    rpg_request *request = data;
    request->waker = waker;
    request->parked = true;
}

/* When this raises the request is gone. */
static void wait_for(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    while (!rpg_is_served(request)) {
        if (!lane->reader) read_as_reader(lane, request, deadline);
        else if (ringspun->park_or(deadline, "an answer of Postgres", keep_waker, rpg_leave, request, NULL)) request->parked = false;
        else fail_late(lane);
    }
}

/* --- requests --- */

static rpg_request *new_request(rpg_lane *lane, VALUE statement, VALUE params) {
    rpg_put_params(&lane->scratch, params);
    bool too_long = lane->scratch.state == RPG_OUT_TOO_LONG;
    rpg_request *request = NULL;
    if (lane->scratch.state == RPG_OUT_FINE) {
        request = rpg_request_new(lane, statement, (rpg_span){lane->scratch.bytes, lane->scratch.len});
    }
    rpg_out_cut(&lane->scratch, 0);
    if (too_long) rb_raise(rpg_eUsage, "a parameter has at most 2147483647 bytes");
    if (!request) rb_memerror();
    return request;
}

/* Before one is added: with nothing else under way it is at the head as soon as it is sent. */
static void note_head(rpg_lane *lane) {
    if (lane->sent.len == 0 && lane->outbox.len == 0) lane->head_since = ringspun->now();
}

static void submit(rpg_lane *lane, rpg_request *request) {
    if (lane->lost[0]) {
        request->done = true;
        request->end = RPG_ENDED_SKIPPED;
        return;
    }
    note_head(lane);
    if (request->leg == RPG_LAST_LEG) rpg_requests_add_passing(&lane->outbox, request);
    else rpg_requests_append(&lane->outbox, request);
    rpg_ask_flight(lane);
}

/* It has no statement, and leaves at once. */
static rpg_request *submit_empty(rpg_lane *lane) {
    rpg_request *request = rpg_request_new(lane, Qnil, (rpg_span){NULL, 0});
    if (!request) rb_memerror();
    note_head(lane);
    rpg_requests_add_passing(&lane->outbox, request);
    rpg_ask_flight(lane);
    return request;
}

static VALUE result_of(rpg_request *request, bool last) {
    rpg_result *result;
    VALUE self = rpg_result_new(&result), statement = request->statement, formats = request->formats;
    result->binary = !NIL_P(formats);
    result->tag_len = request->tag_len;
    memcpy(result->tag, request->tag, request->tag_len);
    rpg_rows_move(&result->rows, &request->rows);
    if (last) rpg_request_free(request);
    result->columns = NIL_P(formats) ? rpg_statement_columns(rpg_statement_get(statement)) : formats;
    RB_GC_GUARD(statement);
    RB_GC_GUARD(formats);
    return self;
}

/* --- whether a statement may come --- */

static bool is_readable(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&one, 1, 0) > 0;
}

/* A connection that nobody reads from and that has something to read has mostly ended. */
static bool is_quiet(const rpg_lane *lane, int64_t now) {
    if (lane->sent.len > 0 || lane->outbox.len > 0 || now - lane->quiet_since < QUIET_LOOK) return false;
    return now - lane->quiet_since > QUIET_MAX || is_readable(lane->fd);
}

static VALUE why_not(const rpg_lane *lane, rpg_statement *statement, bool forced) {
    if (lane->lost[0]) return sym_lost;
    if (!lane->shared) return Qnil;
    if (lane->held) return sym_held;
    if (statement->of_session) return sym_session;
    int64_t now = ringspun->now();
    if (is_quiet(lane, now)) return sym_quiet;
    if (forced) return Qnil;
    if (lane->sent.len > 0 && now - lane->head_since > HEAD_MAX) return sym_stuck;
    if (statement->mean <= SLOW_MEAN) return Qnil;
    statement->mean -= statement->mean / 64; /* now and then it may show that it has become faster */
    return sym_slow;
}

/* --- retries --- */

/* What the server has not executed because of what we believed of its statements. */
static bool is_misunderstood(rpg_lane *lane, const rpg_request *request) {
    rpg_statement *statement = rpg_statement_get(request->statement);
    bool unknown = rpg_request_failed_by(request, "26000") || rpg_request_failed_by(request, "42P05");
    bool outdated = rpg_request_failed_by(request, "0A000") && statement->name_len > 0;
    outdated |= rpg_request_failed_by(request, "08P01") && !NIL_P(request->formats); /* behind a pooler: formats of other columns */
    if (!unknown && !outdated) return false;
    if (unknown && statement->name_len > 0) lane->names = false; /* a pooler has changed servers behind our back */
    rpg_statement_forget_name(statement);
    return lane->status == 'I';
}

static void check_sql(VALUE sql) {
    if (!RB_TYPE_P(sql, T_STRING)) rb_raise(rpg_eUsage, "expected a statement, a String, got %" PRIsVALUE, rb_obj_class(sql));
    if (memchr(RSTRING_PTR(sql), 0, (size_t)RSTRING_LEN(sql))) rb_raise(rpg_eUsage, "a statement has no NUL in it");
}

static VALUE statement_of(rpg_lane *lane, VALUE sql) {
    check_sql(sql);
    VALUE statement = rpg_lane_statement(lane, sql);
    if (rpg_statement_get(statement)->copies) rb_raise(rpg_eUsage, "COPY is not supported");
    return statement;
}

/* --- methods --- */

/* Sends one statement and waits for its result. May switch strands.
 *
 * @param params [Array] what rpg_encode_params takes
 * @param prepared [Boolean] whether its first use names it
 * @param forced [Boolean] whether it comes also to where it may hold up others, or be held up
 * @return [Result, Symbol] the Symbol says why it was not taken */
static VALUE lane_query(VALUE self, VALUE sql, VALUE params, VALUE seconds, VALUE prepared, VALUE forced) {
    rpg_lane *lane = get(self);
    int64_t deadline = ringspun->deadline(seconds);
    VALUE statement = statement_of(lane, sql);
    params = rpg_encode_params(params);
    VALUE refused = why_not(lane, rpg_statement_get(statement), RTEST(forced));
    if (!NIL_P(refused)) return refused;
    for (bool again = false;; again = true) {
        rpg_request *request = new_request(lane, statement, params);
        request->prepared = RTEST(prepared);
        submit(lane, request);
        wait_for(lane, request, deadline);
        if (RB_UNLIKELY(rpg_is_orphaned(lane))) rb_funcall(self, id_orphaned, 0);
        if (RB_LIKELY(request->end == RPG_ENDED_WELL)) {
            VALUE result = result_of(request, true);
            RB_GC_GUARD(statement);
            RB_GC_GUARD(params);
            return result;
        }
        if (lane->lost[0] && !request->sent) {
            rpg_request_free(request);
            return sym_lost;
        }
        if (again || !is_misunderstood(lane, request)) fail(lane, request);
        rpg_request_free(request);
    }
}

static void submit_batch(rpg_lane *lane, rpg_request **parts, uint32_t len) {
    note_head(lane);
    for (uint32_t i = 0; i < len; i++) {
        parts[i]->syncs = i + 1 == len;
        parts[i]->continues = i > 0;
        rpg_requests_append(&lane->outbox, parts[i]);
    }
    parts[len - 1]->parts = parts;
    parts[len - 1]->parts_len = len;
    rpg_ask_flight(lane);
}

static void free_parts(rpg_request **parts, uint32_t len) {
    for (uint32_t i = 0; i < len; i++) rpg_request_free(parts[i]);
}

typedef struct {
    rpg_lane *lane;
    VALUE statements;           /* Array of Statements, and of their parameters */
    VALUE params;
    rpg_request **parts;
    uint32_t len;
} building;

static VALUE build_parts(VALUE argument) {
    building *b = (building *)argument;
    for (long i = 0; i < RARRAY_LEN(b->statements); i++) {
        b->parts[i] = new_request(b->lane, RARRAY_AREF(b->statements, i), RARRAY_AREF(b->params, i));
        b->len++;
    }
    return Qnil;
}

static rpg_request **new_parts(rpg_lane *lane, VALUE statements, VALUE params) {
    rpg_request **parts = calloc((size_t)RARRAY_LEN(statements), sizeof(*parts));
    building b = {lane, statements, params, parts, 0};
    int state = 0;
    if (!parts) rb_memerror();
    rb_protect(build_parts, (VALUE)&b, &state);
    if (!state) return parts;
    free_parts(parts, b.len);
    free(parts);
    rb_jump_tag(state);
}

static void drop_parts(rpg_request **parts, uint32_t len) {
    parts[len - 1]->parts = NULL;
    free_parts(parts, len);
    free(parts);
}

/* The first that has not ended well, which is the one with the error; `len`: there is none. */
static uint32_t first_failed(rpg_request **parts, uint32_t len) {
    uint32_t failed = 0;
    while (failed < len && parts[failed]->end == RPG_ENDED_WELL) failed++;
    return failed;
}

NORETURN(static void fail_batch(const rpg_lane *lane, rpg_request **parts, uint32_t len, uint32_t failed));
static void fail_batch(const rpg_lane *lane, rpg_request **parts, uint32_t len, uint32_t failed) {
    rpg_request *request = parts[failed];
    for (uint32_t i = 0; i < len; i++) {
        if (i != failed) rpg_request_free(parts[i]);
    }
    free(parts);
    request->parts = NULL;
    fail(lane, request);
}

static VALUE results_of(rpg_request **parts, uint32_t len) {
    VALUE results = rb_ary_new_capa((long)len);
    parts[len - 1]->parts = NULL;
    for (uint32_t i = 0; i < len; i++) rb_ary_push(results, result_of(parts[i], true));
    free(parts);
    return results;
}

/* Sends several statements with one Sync, of which all take effect or none. May switch strands.
 *
 * @return [Array<Result>, Symbol] */
static VALUE lane_batch(VALUE self, VALUE sqls, VALUE params, VALUE seconds) {
    rpg_lane *lane = get(self);
    int64_t deadline = ringspun->deadline(seconds);
    uint32_t len = (uint32_t)RARRAY_LEN(sqls);
    VALUE statements = rb_ary_new_capa((long)len), encoded = rb_ary_new_capa((long)len), refused = Qnil;
    for (uint32_t i = 0; i < len; i++) {
        VALUE statement = statement_of(lane, RARRAY_AREF(sqls, i));
        rb_ary_push(statements, statement);
        rb_ary_push(encoded, rpg_encode_params(RARRAY_AREF(params, i)));
        if (NIL_P(refused)) refused = why_not(lane, rpg_statement_get(statement), true);
    }
    if (!NIL_P(refused)) return refused;
    for (bool again = false;; again = true) {
        rpg_request **parts = new_parts(lane, statements, encoded);
        submit_batch(lane, parts, len);
        wait_for(lane, parts[len - 1], deadline);
        if (RB_UNLIKELY(rpg_is_orphaned(lane))) rb_funcall(self, id_orphaned, 0);
        uint32_t failed = first_failed(parts, len);
        if (failed == len) {
            VALUE results = results_of(parts, len);
            RB_GC_GUARD(statements);
            RB_GC_GUARD(encoded);
            return results;
        }
        if (lane->lost[0] && !parts[0]->sent) {
            drop_parts(parts, len);
            return sym_lost;
        }
        parts[len - 1]->parts = NULL;
        if (again || !is_misunderstood(lane, parts[failed])) fail_batch(lane, parts, len, failed);
        drop_parts(parts, len);
    }
}

/* --- streams of rows --- */

static void submit_leg(rpg_lane *lane, VALUE statement, VALUE formats, rpg_leg leg) {
    rpg_request *next = rpg_request_new(lane, statement, (rpg_span){NULL, 0});
    if (!next) rb_memerror();
    next->formats = formats;
    next->leg = (uint8_t)leg;
    lane->leg = next;
    lane->streams = leg != RPG_LAST_LEG;
    submit(lane, next);
}

/* In the place of that one. */
static void submit_next_leg(rpg_lane *lane, rpg_request *before) {
    submit_leg(lane, before->statement, before->formats, RPG_NEXT_LEG);
    rpg_request_free(before);
}

/* Sends a statement whose rows are taken as they come. On a lane of one user.
 *
 * @return [nil, Symbol] */
static VALUE lane_begin_stream(VALUE self, VALUE sql, VALUE params, VALUE prepared) {
    rpg_lane *lane = get(self);
    VALUE statement = statement_of(lane, sql);
    if (lane->leg) rb_raise(rpg_eUsage, "this session is in the midst of a stream; a second one needs a session of its own");
    params = rpg_encode_params(params);
    VALUE refused = why_not(lane, rpg_statement_get(statement), true);
    if (!NIL_P(refused)) return refused;
    rpg_request *request = new_request(lane, statement, params);
    request->prepared = RTEST(prepared);
    request->leg = RPG_FIRST_LEG;
    lane->leg = request;
    lane->streams = true;
    submit(lane, request);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(params);
    return Qnil;
}

/* The server makes the next rows while the caller is busy with these. */
static VALUE take_rows(rpg_lane *lane, rpg_request *request) {
    bool ended = request->done && request->end == RPG_ENDED_WELL && request->suspended;
    VALUE result = result_of(request, false);
    if (ended) submit_next_leg(lane, request);
    return result;
}

/* What is left of it is the Sync, also where a leg has failed. */
static void end_legs(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    submit_leg(lane, Qnil, Qnil, RPG_LAST_LEG);
    VALUE failure = Qnil;
    if (request->end == RPG_ENDED_WELL) rpg_request_free(request);
    else failure = failure_of(lane, request);
    wait_for(lane, lane->leg, deadline);
    request = lane->leg;
    lane->leg = NULL;
    if (NIL_P(failure) && request->end != RPG_ENDED_WELL) fail(lane, request);
    rpg_request_free(request);
    if (!NIL_P(failure)) rb_exc_raise(failure);
}

/* Waits for rows of it. May switch strands.
 *
 * @return [Result, nil] those that have come; nil: that was all */
static VALUE lane_next_rows(VALUE self, VALUE seconds) {
    rpg_lane *lane = get(self);
    int64_t deadline = ringspun->deadline(seconds);
    while (lane->leg) {
        rpg_request *request = lane->leg;
        wait_for(lane, request, deadline);
        if (request->rows.count > 0) return take_rows(lane, request);
        if (request->end == RPG_ENDED_WELL && request->suspended) submit_next_leg(lane, request);
        else end_legs(lane, request, deadline);
    }
    return Qnil;
}

/* Nobody wants the rest. The Sync is sent all the same. */
static VALUE lane_end_stream(VALUE self) {
    rpg_lane *lane = get(self);
    if (lane->leg) rpg_leave(lane->leg);
    if (lane->streams) {
        submit_leg(lane, Qnil, Qnil, RPG_LAST_LEG);
        rpg_leave(lane->leg);
    }
    return Qnil;
}

/* Waits until all that was sent is answered. Also a lane that is held takes this. May switch strands.
 *
 * @return [Boolean] false: the connection has ended */
static VALUE lane_ping(VALUE self, VALUE seconds) {
    rpg_lane *lane = get(self);
    int64_t deadline = ringspun->deadline(seconds);
    if (lane->lost[0]) return Qfalse;
    rpg_request *request = submit_empty(lane);
    wait_for(lane, request, deadline);
    rpg_request_free(request);
    return lane->lost[0] ? Qfalse : Qtrue;
}

static VALUE lane_hold(VALUE self) {
    get(self)->held = true;
    return Qnil;
}

static VALUE lane_resume(VALUE self) {
    get(self)->held = false;
    rpg_ask_flight(get(self));
    return Qnil;
}

/* Ends it. What was sent is in doubt. */
static VALUE lane_lose(VALUE self, VALUE why) {
    rpg_lose(get(self), StringValueCStr(why));
    return Qnil;
}

static VALUE lane_is_orphaned(VALUE self) { return rpg_is_orphaned(get(self)) ? Qtrue : Qfalse; }

static VALUE lane_is_held(VALUE self) { return get(self)->held ? Qtrue : Qfalse; }

static VALUE lane_is_lost(VALUE self) { return get(self)->lost[0] ? Qtrue : Qfalse; }

/* @return [String, nil] why it has ended */
static VALUE lane_loss(VALUE self) { return get(self)->lost[0] ? rb_utf8_str_new_cstr(get(self)->lost) : Qnil; }

/* @return [Integer] statements that wait for an answer, or to be sent */
static VALUE lane_pending(VALUE self) { return UINT2NUM(get(self)->sent.len + get(self)->outbox.len); }

/* @return [String] I: idle, T: in a transaction, E: in one that has failed */
static VALUE lane_status(VALUE self) { return rb_str_new((const char *)&get(self)->status, 1); }

/* @return [Float] seconds since the server last said something */
static VALUE lane_quiet_for(VALUE self) { return DBL2NUM((double)(ringspun->now() - get(self)->quiet_since) / 1e9); }

/* @return [Boolean] whether a statement has changed the session, since this was last asked for */
static VALUE lane_take_left_state(VALUE self) {
    bool left = get(self)->left_state;
    get(self)->left_state = false;
    return left ? Qtrue : Qfalse;
}

/* The server has forgotten all statements. */
static VALUE lane_forget_statements(VALUE self) {
    rb_hash_clear(get(self)->statements);
    rpg_out_cut(&get(self)->closes, 0);
    return Qnil;
}

void rpg_init_lane(void) {
    id_error_of = rb_intern("error_of");
    id_lost = rb_intern("lost");
    id_orphaned = rb_intern("orphaned");
    sym_lost = ID2SYM(rb_intern("lost"));
    sym_held = ID2SYM(rb_intern("held"));
    sym_slow = ID2SYM(rb_intern("slow"));
    sym_stuck = ID2SYM(rb_intern("stuck"));
    sym_quiet = ID2SYM(rb_intern("quiet"));
    sym_session = ID2SYM(rb_intern("session"));
    cLane = rb_define_class_under(rpg_mPostgres, "Lane", rb_cObject);
    rb_undef_alloc_func(cLane);
    rb_define_singleton_method(cLane, "new", lane_new, 4);
    rb_define_method(cLane, "query", lane_query, 5);
    rb_define_method(cLane, "batch", lane_batch, 3);
    rb_define_method(cLane, "begin_stream", lane_begin_stream, 3);
    rb_define_method(cLane, "next_rows", lane_next_rows, 1);
    rb_define_method(cLane, "end_stream", lane_end_stream, 0);
    rb_define_method(cLane, "ping", lane_ping, 1);
    rb_define_method(cLane, "hold", lane_hold, 0);
    rb_define_method(cLane, "resume", lane_resume, 0);
    rb_define_method(cLane, "lose", lane_lose, 1);
    rb_define_method(cLane, "orphaned?", lane_is_orphaned, 0);
    rb_define_method(cLane, "held?", lane_is_held, 0);
    rb_define_method(cLane, "lost?", lane_is_lost, 0);
    rb_define_method(cLane, "loss", lane_loss, 0);
    rb_define_method(cLane, "pending", lane_pending, 0);
    rb_define_method(cLane, "status", lane_status, 0);
    rb_define_method(cLane, "quiet_for", lane_quiet_for, 0);
    rb_define_method(cLane, "take_left_state", lane_take_left_state, 0);
    rb_define_method(cLane, "forget_statements", lane_forget_statements, 0);
    rb_global_variable(&cLane);
}
