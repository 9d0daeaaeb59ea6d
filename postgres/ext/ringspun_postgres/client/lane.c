#include "client/ask.h"
#include "client/bell.h"
#include "client/opening.h"
#include "client/params.h"
#include "client/thread.h"
#include "client/window.h"

#include <fcntl.h>
#include <pthread.h>
#include <ruby/io.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Statements that a connection knows at most, when it gives no names. */
#define UNNAMED_MAX 256u

static VALUE cLane;
static ID id_of_this_machine;
static uint32_t forks; /* that have led to this process */

/* --- the object --- */

static void lane_mark(void *data) {
    const rpg_lane *lane = data;
    rb_gc_mark(lane->stream);
    rb_gc_mark(lane->statements);
    rb_gc_mark(lane->decoders);
    rb_gc_mark(lane->histories);
    rb_gc_mark(lane->threads.bell);
    rpg_requests_mark(&lane->outbox);
    rpg_requests_mark(&lane->sent);
    rpg_requests_mark(&lane->answered);
    if (lane->leg) rpg_request_mark(lane->leg); /* which may be done, and then is in neither */
    if (lane->leg_ahead) rpg_request_mark(lane->leg_ahead);
    if (lane->opening) rpg_request_mark(lane->opening);
}

/* The lane knows where it is itself. */
static void lane_compact(void *data) {
    rpg_lane *lane = data;
    lane->self = rb_gc_location(lane->self);
}

static void lane_free(void *data) {
    rpg_lane *lane = data;
    rpg_opening_forget(lane);
    if (lane->leg && lane->leg->done) rpg_request_free(lane->leg); /* nobody has taken the end of the stream */
    if (lane->leg_ahead && lane->leg_ahead->done) rpg_request_free(lane->leg_ahead);
    rpg_requests_free(&lane->outbox);
    rpg_requests_free(&lane->sent);
    rpg_requests_free(&lane->answered);
    if (lane->attendant) rpg_request_free(lane->attendant);
    rpg_notices_free(&lane->notices); /* also those of the requests above */
    if (lane->listener) rpg_request_free(lane->listener);
    rpg_out_free(&lane->notifications);
    rpg_settings_free(&lane->settings);
    rpg_replies_free(&lane->replies);
    rpg_out_free(&lane->scratch);
    rpg_out_free(&lane->flight);
    rpg_out_free(&lane->closes);
    free(lane->runs);
    rpg_threads_free(lane);
    if (lane->voided && lane->forks == forks) close(lane->fd); /* nobody has the stream any more */
    xfree(lane);
}

static const rb_data_type_t lane_type = {
    .wrap_struct_name = "Ringspun::Postgres::Lane",
    .function = {.dmark = lane_mark, .dfree = lane_free, .dcompact = lane_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static void count_fork(void) { forks++; }

/* In a forked child the connection is the parent's, and of those who wait only the strand that has forked exists. */
static void leave_to_parent(rpg_lane *lane) {
    lane->forks = forks;
    lane->inherited = true;
    lane->reader = NULL;
    for (rpg_request *each = lane->sent.first; each; each = each->next) each->parked = false;
    for (rpg_request *each = lane->outbox.first; each; each = each->next) each->parked = false;
    if (lane->attendant) lane->attendant->parked = false;
    if (lane->listener) lane->listener->parked = false;
    rpg_threads_forget(lane);
    rpg_lose(lane, "it is the connection of the process that this one was forked from");
}

rpg_lane *rpg_lane_get(VALUE self) {
    rpg_lane *lane = rb_check_typeddata(self, &lane_type);
    if (RB_UNLIKELY(lane->forks != forks)) leave_to_parent(lane);
    return lane;
}

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
    lane->statements = lane->decoders = lane->histories = lane->threads.bell = Qnil;
    lane->threads.fd = -1;
    lane->statements = rb_hash_new();
    lane->fd = descriptor_of(stream);
    lane->status = 'I';
    lane->fastest = INT64_MAX;
    lane->ends = RINGSPUN_NEVER;
    lane->names = NUM2UINT(cache) > 0;
    lane->cache = lane->names ? NUM2UINT(cache) : UNNAMED_MAX;
    lane->shared = RTEST(shared);
    lane->forks = forks;
    lane->machine = ringspun->machine_here();
    lane->quiet_since = ringspun->now();
    lane->losses = rpg_losses();
    snprintf(lane->prefix, sizeof(lane->prefix), "%s", StringValueCStr(prefix));
    return self;
}

/* --- methods --- */

/* It has no statement, and leaves at once. */
rpg_request *rpg_submit_empty(rpg_lane *lane) {
    rpg_request *request = rpg_request_new(lane, Qnil, (rpg_span){NULL, 0});
    if (!request) rb_memerror();
    rpg_note_head(lane);
    rpg_requests_add_passing(&lane->outbox, request);
    rpg_ask_flight(lane);
    return request;
}

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

/* @return [Boolean] whether it is the caller's machine that it belongs to */
static VALUE lane_is_here(VALUE self) {
    const rpg_lane *lane = rpg_lane_get(self);
    if (RB_LIKELY(lane->machine && lane->machine == ringspun->machine_here())) return Qtrue;
    return rb_funcall(self, id_of_this_machine, 0);
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
    if (!rpg_opening_is_ahead(lane) || !rpg_is_typed(statement, params)) rpg_settle_opening(lane, deadline);
    VALUE answer = rpg_sym_again;
    for (bool again = false; answer == rpg_sym_again; again = true) {
        refused = rpg_ask_types(lane, statement, params, deadline);
        if (!NIL_P(refused)) return refused;
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

static VALUE lane_hold(VALUE self) {
    rpg_lane_get(self)->held = true;
    return Qnil;
}

static VALUE lane_resume(VALUE self) {
    rpg_lane_get(self)->held = false;
    rpg_ask_flight(rpg_lane_get(self));
    return Qnil;
}

/* Ends it. What was sent is in doubt.
 *
 * @return [Boolean] false: somebody has closed the stream, or is about to; true: it is the caller's to close */
static VALUE lane_lose(VALUE self, VALUE why) {
    rpg_lane *lane = rpg_lane_get(self);
    if (lane->let_go) return Qfalse;
    lane->let_go = true;
    rpg_lose(lane, StringValueCStr(why));
    return Qtrue;
}

static bool is_idle(const rpg_lane *lane) { return lane->sent.len == 0 && lane->outbox.len == 0 && !lane->reader; }

/* The number stays the stream's, which may still use it, and then meets nothing: closed, it might be that of another connection or
 * file at once. The socket ends. */
static void void_descriptor(rpg_lane *lane) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || dup3(nothing, lane->fd, O_CLOEXEC) < 0) shutdown(lane->fd, SHUT_RDWR);
    if (nothing >= 0) close(nothing);
}

/* Ends it from another thread than that of the stream's machine. The stream is that machine's, so where a strand waits for an
 * answer, it hears of the end and closes the stream. Where nobody does the socket ends at once, and the machine closes the stream
 * when it comes to it, or the number is given back when lane and stream are collected. A forked child leaves the parent's alone.
 *
 * @param gone [Boolean] whether the machine is */
static VALUE lane_abandon(VALUE self, VALUE why, VALUE gone) {
    rpg_lane *lane = rpg_lane_get(self);
    if (lane->inherited || lane->let_go || lane->fd < 0) return Qnil;
    snprintf(lane->fatal, sizeof(lane->fatal), "%s", StringValueCStr(why));
    if (RTEST(gone) || is_idle(lane)) {
        lane->let_go = lane->voided = true;
        rpg_lose(lane, lane->fatal);
        if (!RTEST(gone)) void_descriptor(lane);
    } else {
        shutdown(lane->fd, SHUT_RDWR);
    }
    return Qnil;
}

/* Of a machine whose thread has ended without closing it: nobody can use the stream any more. */
static VALUE lane_close_number(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    if (lane->fd >= 0) close(lane->fd);
    lane->fd = -1;
    return Qnil;
}

/* @return [Boolean] whether its socket has ended, and the number of that is still the stream's: its owner closes it */
static VALUE lane_take_voided(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    bool voided = lane->voided;
    lane->voided = false;
    return voided ? Qtrue : Qfalse;
}

static VALUE lane_is_orphaned(VALUE self) { return rpg_is_orphaned(rpg_lane_get(self)) ? Qtrue : Qfalse; }

/* @return [Boolean] whether it is the connection of a process that this one was forked from */
static VALUE lane_is_inherited(VALUE self) { return rpg_lane_get(self)->inherited ? Qtrue : Qfalse; }

static VALUE lane_is_held(VALUE self) { return rpg_lane_get(self)->held ? Qtrue : Qfalse; }

static VALUE lane_is_lost(VALUE self) { return rpg_lane_get(self)->lost[0] ? Qtrue : Qfalse; }

/* @return [String, nil] why it has ended */
static VALUE lane_loss(VALUE self) { return rpg_lane_get(self)->lost[0] ? rb_utf8_str_new_cstr(rpg_lane_get(self)->lost) : Qnil; }

/* @return [Integer] statements that wait for an answer, or to be sent */
static VALUE lane_pending(VALUE self) { return UINT2NUM(rpg_lane_get(self)->sent.len + rpg_lane_get(self)->outbox.len); }

/* @return [String] I: idle, T: in a transaction, E: in one that has failed */
static VALUE lane_status(VALUE self) { return rb_str_new((const char *)&rpg_lane_get(self)->status, 1); }

/* @param seconds [Numeric] after which it is old */
static VALUE lane_live(VALUE self, VALUE seconds) {
    rpg_lane_get(self)->ends = ringspun->deadline(seconds);
    return Qnil;
}

static VALUE lane_is_old(VALUE self) { return ringspun->now() > rpg_lane_get(self)->ends ? Qtrue : Qfalse; }

/* @return [Boolean] whether it may have ended while nobody used it */
static VALUE lane_is_quiet(VALUE self) { return rpg_is_quiet(rpg_lane_get(self), ringspun->now()) ? Qtrue : Qfalse; }

/* @return [Boolean] whether the first of those sent has not been answered for so long that nobody else comes behind it */
static VALUE lane_is_stuck(VALUE self) { return rpg_is_stuck(rpg_lane_get(self), ringspun->now()) ? Qtrue : Qfalse; }

/* @return [Boolean] whether a statement has left a transaction open, or changed the session */
static VALUE lane_is_unsafe(VALUE self) { return rpg_is_unsafe(rpg_lane_get(self)) ? Qtrue : Qfalse; }

/* @return [Boolean] whether it is as it was when its user got it, and goes to the next as it is */
static VALUE lane_is_untouched(VALUE self) {
    const rpg_lane *lane = rpg_lane_get(self);
    bool asked = lane->sent.len > 0 || lane->outbox.len > 0 || lane->leg || lane->leg_ahead || lane->streams || lane->opening || lane->unopened;
    return lane->lost[0] || lane->enclosed || asked || rpg_is_unsafe(lane) ? Qfalse : Qtrue;
}

/* @return [Boolean] whether a statement has changed the session, since this was last asked for */
static VALUE lane_take_left_state(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    bool left = lane->left_state || rpg_settings_differ(&lane->settings);
    lane->left_state = false;
    return left ? Qtrue : Qfalse;
}

/* For the statements that come from now on. */
static VALUE lane_set_decoders(VALUE self, VALUE decoders) { return rpg_lane_get(self)->decoders = decoders; }

/* That of the pool. */
static VALUE lane_set_histories(VALUE self, VALUE histories) { return rpg_lane_get(self)->histories = histories; }

/* @param bounded [Boolean] whether the server ends what waits for a lock for LOCK_TIMEOUT milliseconds */
static VALUE lane_set_bounded(VALUE self, VALUE bounded) {
    rpg_lane_get(self)->bounded = RTEST(bounded);
    return bounded;
}

/* What was not sent goes elsewhere, if the first of those sent has not been answered for long.
 *
 * @return [Float, nil] seconds after which this is to be asked again; nil: all was sent */
static VALUE lane_move_unsent(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t again = rpg_move_unsent(lane);
    lane->watched = again != RINGSPUN_NEVER;
    return lane->watched ? DBL2NUM((double)(again - ringspun->now()) / 1e9) : Qnil;
}

/* @return [Boolean] whether it has something that is not known to be quick */
static VALUE lane_is_closed(VALUE self) { return rpg_window_is_closed(rpg_lane_get(self)) ? Qtrue : Qfalse; }

/* Nobody looks any more. */
static VALUE lane_unwatch(VALUE self) {
    rpg_lane_get(self)->watched = false;
    return Qnil;
}

/* @return [Integer] for comparing lanes: the statements that are under way, and far more where others wait */
static VALUE lane_burden(VALUE self) {
    const rpg_lane *lane = rpg_lane_get(self);
    uint32_t under_way = lane->sent.len + lane->outbox.len;
    return UINT2NUM(under_way + (rpg_window_is_closed(lane) || lane->held ? 1u << 20 : 0));
}

/* @return [Array(String, Float), nil] the statement that was sent first and is not answered, and the seconds since it is the first */
static VALUE lane_head(VALUE self) {
    const rpg_lane *lane = rpg_lane_get(self);
    const rpg_request *first = lane->sent.first;
    if (!first) return Qnil;
    VALUE sql = NIL_P(first->statement) ? Qnil : rpg_statement_get(first->statement)->sql;
    return rb_assoc_new(sql, DBL2NUM((double)(ringspun->now() - lane->head_since) / 1e9));
}

/* The server has forgotten all statements. */
static VALUE lane_forget_statements(VALUE self) {
    rb_hash_clear(rpg_lane_get(self)->statements);
    rpg_out_cut(&rpg_lane_get(self)->closes, 0);
    return Qnil;
}

/* What is seen of requests is noted from now on, or no more. From any thread. */
static VALUE lane_set_observed(VALUE self, VALUE observed) {
    rpg_lane_get(self)->observed = RTEST(observed);
    return observed;
}

/* A block ends its transaction from now on, and no statement does; or no block any more. From any thread.
 *
 * @param enclosed [Boolean] */
static VALUE lane_set_enclosed(VALUE self, VALUE enclosed) {
    rpg_lane_get(self)->enclosed = RTEST(enclosed);
    return enclosed;
}

/* Whether that statement would end a transaction. */
static VALUE lane_ends_transaction(VALUE class, VALUE sql) {
    (void)class;
    bool ends = rpg_verdict_of(RSTRING_PTR(sql), (size_t)RSTRING_LEN(sql)).ends_transaction;
    RB_GC_GUARD(sql);
    return ends ? Qtrue : Qfalse;
}

/* From any thread.
 *
 * @return [Array<String>] the bodies of notices that came with no answer, or with one that nobody has taken */
static VALUE lane_take_notices(VALUE self) { return rpg_notices_take(&rpg_lane_get(self)->notices); }

void rpg_init_lane(void) {
    id_of_this_machine = rb_intern("of_this_machine?");
    rpg_init_ask();
    rpg_init_bell();
    pthread_atfork(NULL, NULL, count_fork);
    cLane = rb_define_class_under(rpg_mPostgres, "Lane", rb_cObject);
    rb_undef_alloc_func(cLane);
    rb_define_singleton_method(cLane, "new", lane_new, 4);
    rb_define_singleton_method(cLane, "check", lane_check, 2);
    rb_define_singleton_method(cLane, "encode", lane_encode, 1);
    rb_define_singleton_method(cLane, "text", lane_text, 2);
    rb_define_singleton_method(cLane, "complete?", lane_is_complete, 1);
    rb_define_method(cLane, "here?", lane_is_here, 0);
    rb_define_method(cLane, "query", lane_query, 5);
    rb_define_method(cLane, "ping", lane_ping, 1);
    rb_define_method(cLane, "hold", lane_hold, 0);
    rb_define_method(cLane, "resume", lane_resume, 0);
    rb_define_method(cLane, "lose", lane_lose, 1);
    rb_define_method(cLane, "abandon", lane_abandon, 2);
    rb_define_method(cLane, "take_voided", lane_take_voided, 0);
    rb_define_private_method(cLane, "close_number", lane_close_number, 0);
    rb_define_method(cLane, "orphaned?", lane_is_orphaned, 0);
    rb_define_method(cLane, "inherited?", lane_is_inherited, 0);
    rb_define_method(cLane, "held?", lane_is_held, 0);
    rb_define_method(cLane, "lost?", lane_is_lost, 0);
    rb_define_method(cLane, "loss", lane_loss, 0);
    rb_define_method(cLane, "pending", lane_pending, 0);
    rb_define_method(cLane, "status", lane_status, 0);
    rb_define_method(cLane, "live", lane_live, 1);
    rb_define_method(cLane, "old?", lane_is_old, 0);
    rb_define_method(cLane, "quiet?", lane_is_quiet, 0);
    rb_define_method(cLane, "stuck?", lane_is_stuck, 0);
    rb_define_method(cLane, "unsafe?", lane_is_unsafe, 0);
    rb_define_method(cLane, "untouched?", lane_is_untouched, 0);
    rb_define_method(cLane, "take_left_state", lane_take_left_state, 0);
    rb_define_method(cLane, "decoders=", lane_set_decoders, 1);
    rb_define_method(cLane, "histories=", lane_set_histories, 1);
    rb_define_method(cLane, "bounded=", lane_set_bounded, 1);
    rb_define_method(cLane, "move_unsent", lane_move_unsent, 0);
    rb_define_method(cLane, "closed?", lane_is_closed, 0);
    rb_define_method(cLane, "head", lane_head, 0);
    rb_define_method(cLane, "unwatch", lane_unwatch, 0);
    rb_define_method(cLane, "burden", lane_burden, 0);
    rb_define_const(cLane, "LOCK_TIMEOUT", INT2FIX(RPG_LOCK_TIMEOUT));
    rb_define_method(cLane, "forget_statements", lane_forget_statements, 0);
    rb_define_method(cLane, "observed=", lane_set_observed, 1);
    rb_define_method(cLane, "take_notices", lane_take_notices, 0);
    rb_define_method(cLane, "enclosed=", lane_set_enclosed, 1);
    rb_define_singleton_method(cLane, "ends_transaction?", lane_ends_transaction, 1);
    rb_global_variable(&cLane);
    rpg_init_asides(cLane);
    rpg_init_batch(cLane);
    rpg_init_opening(cLane);
    rpg_init_post(cLane);
    rpg_init_stream(cLane);
    rpg_init_script(cLane);
    rpg_init_thread(cLane);
    rpg_init_seen(cLane);
    rpg_init_copy(cLane);
}
