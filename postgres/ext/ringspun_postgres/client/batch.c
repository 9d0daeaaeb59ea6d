/* batch: several statements with one Sync: Lane#batch. */
#include "client/ask.h"
#include "client/begin.h"
#include "client/ending.h"
#include "client/inits.h"
#include "client/lane_object.h"
#include "client/params.h"
#include "client/stuck.h"

#include <stdlib.h>

static void submit_batch(rpg_lane *lane, rpg_request **parts, uint32_t len) {
    rpg_note_head(lane);
    for (uint32_t i = 0; i < len; i++) {
        parts[i]->syncs = i + 1 == len;
        parts[i]->continues = i > 0;
        rpg_requests_append(&lane->outbox, parts[i]);
    }
    parts[len - 1]->parts = parts;
    parts[len - 1]->parts_len = len;
    rpg_enter(lane, parts[0]);
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
        b->parts[i] = rpg_ask_request(b->lane, RARRAY_AREF(b->statements, i), RARRAY_AREF(b->params, i));
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
    rpg_fail(lane, request);
}

static VALUE results_of(rpg_request **parts, uint32_t len) {
    VALUE results = rb_ary_new_capa((long)len);
    parts[len - 1]->parts = NULL;
    for (uint32_t i = 0; i < len; i++) rb_ary_push(results, rpg_result_of(parts[i], true));
    free(parts);
    return results;
}

static VALUE refuse(rpg_request **parts, uint32_t len, VALUE why) {
    drop_parts(parts, len);
    return why;
}

/* Sends several statements with one Sync, of which all take effect or none. May switch strands.
 *
 * @param forced [Boolean] as of Lane#query
 * @return [Array<Result>, Symbol] */
static VALUE lane_batch(VALUE self, VALUE sqls, VALUE params, VALUE seconds, VALUE forced) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = rpg_ask_deadline(lane, seconds, false);
    uint32_t len = (uint32_t)RARRAY_LEN(sqls);
    VALUE statements = rb_ary_new_capa((long)len), encoded = rb_ary_new_capa((long)len), refused = Qnil;
    for (uint32_t i = 0; i < len; i++) {
        VALUE own = rpg_encode_params(RARRAY_AREF(params, i)), statement = rpg_ask_statement(lane, RARRAY_AREF(sqls, i), own);
        rb_ary_push(statements, statement);
        rb_ary_push(encoded, own);
        VALUE why = rpg_why_not(lane, rpg_statement_get(statement), RTEST(forced));
        if (NIL_P(refused) || why == rpg_sym_session) refused = why; /* which is so on any lane, the others only on this one */
    }
    if (!NIL_P(refused)) return refused;
    uint32_t transaction = rpg_transaction_of(lane);
    rpg_settle_opening(lane, deadline);
    for (bool again = false;; again = true) {
        for (uint32_t i = 0; i < len; i++) {
            refused = rpg_ask_types(lane, RARRAY_AREF(statements, i), RARRAY_AREF(encoded, i), deadline);
            if (!NIL_P(refused)) return refused;
        }
        rpg_refuse_ended(lane, transaction);
        rpg_request **parts = new_parts(lane, statements, encoded);
        for (uint32_t i = 0; i < len; i++) parts[i]->again = again;
        submit_batch(lane, parts, len);
        rpg_wait_among_others(lane, parts[len - 1], deadline);
        uint32_t failed = first_failed(parts, len);
        if (failed == len) {
            VALUE results = parts[len - 1]->unsafe ? refuse(parts, len, rpg_sym_unsafe) : results_of(parts, len);
            RB_GC_GUARD(statements);
            RB_GC_GUARD(encoded);
            return results;
        }
        if (parts[0]->moved) return refuse(parts, len, rpg_sym_moved);
        if (lane->lost[0] && !parts[0]->sent) return refuse(parts, len, rpg_sym_lost);
        if (rpg_has_met_lock(lane, parts[failed])) return refuse(parts, len, rpg_sym_lock);
        parts[len - 1]->parts = NULL;
        if (again || !rpg_is_misunderstood(lane, parts[failed])) fail_batch(lane, parts, len, failed);
        drop_parts(parts, len);
    }
}

void rpg_init_batch(VALUE cLane) { rb_define_method(cLane, "batch", lane_batch, 4); }
