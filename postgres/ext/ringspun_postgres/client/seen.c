#include "client/seen.h"
#include "client/lane.h"

#include <stdlib.h>

static ID id_seen;

void rpg_seen_begin(rpg_request *request) {
    request->seen = calloc(1, sizeof(*request->seen)); /* without memory for it the request goes on unseen */
    if (request->seen) request->seen->sent_at = rpg_now(request->lane);
}

/* --- notices --- */

static void append(rpg_notices *notices, rpg_notice *notice) {
    notice->next = NULL;
    if (notices->last) notices->last->next = notice;
    else notices->first = notice;
    notices->last = notice;
    notices->len++;
}

static rpg_notice *take_first(rpg_notices *notices) {
    rpg_notice *first = notices->first;
    notices->first = first->next;
    if (!notices->first) notices->last = NULL;
    notices->len--;
    return first;
}

void rpg_notices_free(rpg_notices *notices) {
    while (notices->first) free(take_first(notices));
}

/* The answer that comes next tells whose it is. */
static rpg_notices *list_for(rpg_lane *lane) {
    const rpg_expected *first = rpg_replies_first(&lane->replies);
    const rpg_request *request = first ? first->tag : NULL;
    return lane->shared && request && request->seen && !request->abandoned ? &request->seen->notices : &lane->notices;
}

void rpg_seen_notice(rpg_lane *lane, const rpg_message *message) {
    rpg_notices *list = list_for(lane);
    rpg_notice *notice = list->len < RPG_NOTICES_MAX ? malloc(sizeof(*notice) + message->len) : NULL;
    if (!notice) return;
    notice->len = message->len;
    memcpy(notice->body, message->body, message->len);
    append(list, notice);
}

void rpg_seen_drop(rpg_request *request) {
    rpg_notices *left = &request->seen->notices, *kept = &request->lane->notices;
    while (left->first && kept->len < RPG_NOTICES_MAX) append(kept, take_first(left));
    rpg_notices_free(left);
    free(request->seen);
    request->seen = NULL;
}

static void push_all(VALUE bodies, rpg_notices *notices) {
    while (notices->first) {
        rb_ary_push(bodies, rb_str_new((const char *)notices->first->body, (long)notices->first->len));
        free(take_first(notices));
    }
}

VALUE rpg_notices_take(rpg_notices *notices) {
    VALUE bodies = rb_ary_new();
    push_all(bodies, notices);
    return bodies;
}

/* --- for Ruby --- */

static VALUE seconds(int64_t ns) { return ns ? DBL2NUM((double)ns / 1e9) : Qnil; }

VALUE rpg_seen_take(rpg_request *request) {
    rpg_lane *lane = request->lane;
    if (RB_LIKELY(!lane->observed)) return Qnil;
    rpg_seen none = {0}, *seen = request->seen ? request->seen : &none;
    VALUE bodies = rb_ary_new();
    push_all(bodies, &seen->notices);
    if (!lane->shared) push_all(bodies, &lane->notices);
    return rb_ary_new_from_args(5, lane->self, seconds(seen->sent_at), seconds(seen->answered_at), bodies, Qnil);
}

void rpg_seen_put(VALUE error, VALUE seen) {
    if (!NIL_P(seen)) rb_ivar_set(error, id_seen, seen);
}

static VALUE seen_of(VALUE answer) {
    if (!rb_obj_is_kind_of(answer, rb_eException)) return rpg_result_take_seen(answer);
    VALUE seen = rb_attr_get(answer, id_seen);
    if (!NIL_P(seen)) rb_ivar_set(answer, id_seen, Qnil);
    return seen;
}

/* What was noted of the request that this is the answer to, once, and what a shared lane has of notices of other statements that
 * nobody has taken. What this library asks there for itself leaves them.
 *
 * @param answer [Result, Exception]
 * @return [Array(Lane, Float, Float, Array<String>, Array<String>), nil] when it was sent and answered, and the bodies of its
 *   notices, and of others */
static VALUE take_seen(VALUE class, VALUE answer) {
    VALUE seen = seen_of(answer);
    if (NIL_P(seen)) return Qnil;
    rpg_lane *lane = rpg_lane_get(RARRAY_AREF(seen, 0));
    if (lane->shared && lane->notices.first) rb_ary_store(seen, 4, rpg_notices_take(&lane->notices));
    return seen;
}

void rpg_init_seen(VALUE cLane) {
    id_seen = rb_intern("ringspun_seen");
    rb_define_singleton_method(cLane, "take_seen", take_seen, 1);
}
