#include "client/lane_object.h"
#include "client/ending.h"
#include "client/flight.h"
#include "client/stuck.h"
#include "client/wake.h"
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

/* @return [Boolean] whether it is the caller's machine that it belongs to */
static VALUE lane_is_here(VALUE self) {
    const rpg_lane *lane = rpg_lane_get(self);
    if (RB_LIKELY(lane->machine && lane->machine == ringspun->machine_here())) return Qtrue;
    return rb_funcall(self, id_of_this_machine, 0);
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
    rpg_lane *lane = rpg_lane_get(self);
    if (RTEST(enclosed) && !lane->enclosed) lane->transactions++;
    lane->enclosed = RTEST(enclosed);
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

/* What was noted of the request that this is the answer to, once, and what a shared lane has of notices of other statements that
 * nobody has taken. What this library asks there for itself leaves them.
 *
 * @param answer [Result, Exception]
 * @return [Array(Lane, Float, Float, Array<String>, Array<String>), nil] when it was sent and answered, and the bodies of its
 *   notices, and of others */
static VALUE take_seen(VALUE class, VALUE answer) {
    VALUE seen = rpg_seen_of(answer);
    if (NIL_P(seen)) return Qnil;
    rpg_lane *lane = rpg_lane_get(RARRAY_AREF(seen, 0));
    if (lane->shared && lane->notices.first) rb_ary_store(seen, 4, rpg_notices_take(&lane->notices));
    return seen;
}

VALUE rpg_init_lane(void) {
    id_of_this_machine = rb_intern("of_this_machine?");
    pthread_atfork(NULL, NULL, count_fork);
    cLane = rb_define_class_under(rpg_mPostgres, "Lane", rb_cObject);
    rb_undef_alloc_func(cLane);
    rb_define_singleton_method(cLane, "new", lane_new, 4);
    rb_define_method(cLane, "here?", lane_is_here, 0);
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
    rb_define_singleton_method(cLane, "take_seen", take_seen, 1);
    return cLane;
}
