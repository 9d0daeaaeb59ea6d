#include "client/seen.h"
#include "client/result.h"

#include <stdlib.h>

static ID id_seen;

rpg_seen *rpg_seen_new(int64_t now) {
    rpg_seen *seen = calloc(1, sizeof(*seen));
    if (seen) seen->sent_at = now;
    return seen;
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

void rpg_notices_note(rpg_notices *notices, const rpg_message *message) {
    rpg_notice *notice = notices->len < RPG_NOTICES_MAX ? malloc(sizeof(*notice) + message->len) : NULL;
    if (!notice) return;
    notice->len = message->len;
    memcpy(notice->body, message->body, message->len);
    append(notices, notice);
}

void rpg_seen_drop(rpg_seen *seen, rpg_notices *of_lane) {
    while (seen->notices.first && of_lane->len < RPG_NOTICES_MAX) append(of_lane, take_first(&seen->notices));
    rpg_notices_free(&seen->notices);
    free(seen);
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

VALUE rpg_seen_take(VALUE lane, rpg_seen *seen, rpg_notices *of_lane) {
    rpg_seen none = {0};
    if (!seen) seen = &none;
    VALUE bodies = rb_ary_new();
    push_all(bodies, &seen->notices);
    if (of_lane) push_all(bodies, of_lane);
    return rb_ary_new_from_args(5, lane, seconds(seen->sent_at), seconds(seen->answered_at), bodies, Qnil);
}

void rpg_seen_put(VALUE error, VALUE seen) {
    if (!NIL_P(seen)) rb_ivar_set(error, id_seen, seen);
}

VALUE rpg_seen_of(VALUE answer) {
    if (!rb_obj_is_kind_of(answer, rb_eException)) return rpg_result_take_seen(answer);
    VALUE seen = rb_attr_get(answer, id_seen);
    if (!NIL_P(seen)) rb_ivar_set(answer, id_seen, Qnil);
    return seen;
}

void rpg_init_seen(void) { id_seen = rb_intern("ringspun_seen"); }
