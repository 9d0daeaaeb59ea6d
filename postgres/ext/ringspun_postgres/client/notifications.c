/* notifications: what a lane has kept of notifications and settings, for Ruby. */
#include "client/ask.h"
#include "client/inits.h"
#include "client/lane_object.h"

/* --- notifications --- */

/* Bytes that are kept for what comes later. */
#define KEPT_MAX 65536u

static VALUE text_of(rpg_span text) { return rb_obj_freeze(rb_utf8_str_new((const char *)text.bytes, (long)text.len)); }

static VALUE notification_of(rpg_span body) {
    uint32_t process;
    rpg_span channel, payload;
    rpg_read_notification(&(rpg_message){RPG_NOTIFICATION, body.bytes, body.len}, &process, &channel, &payload);
    return rb_ary_new_from_args(3, text_of(channel), text_of(payload), UINT2NUM(process));
}

static VALUE notifications_of(VALUE argument) {
    const rpg_out *out = (const rpg_out *)argument;
    VALUE all = rb_ary_new();
    for (size_t at = 0; at < out->len;) {
        uint32_t len = rpg_load_u32(out->bytes + at);
        rb_ary_push(all, notification_of((rpg_span){out->bytes + at + 4, len}));
        at += 4 + len;
    }
    return all;
}

/* Whatever becomes of it, what has come is not there any more: who has no memory for it has missed it, and hears so. */
static VALUE take_notifications(rpg_lane *lane) {
    int state = 0;
    rpg_out taken = lane->notifications;
    lane->notifications = (rpg_out){0};
    VALUE all = rb_protect(notifications_of, (VALUE)&taken, &state);
    rpg_out_cut(&taken, 0);
    if (taken.capacity > KEPT_MAX || lane->notifications.bytes) rpg_out_free(&taken);
    else lane->notifications = taken;
    if (state) rb_jump_tag(state);
    return all;
}

/* Notifications are kept from now on. */
static VALUE lane_listen(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    if (!lane->listener) lane->listener = rpg_request_new(lane, Qnil, (rpg_span){NULL, 0});
    if (!lane->listener) rb_memerror();
    return Qnil;
}

/* Waits until notifications have come. May switch strands.
 *
 * @return [Array<Array(String, String, Integer)>] channel, payload and the server's process of each; empty: the connection has ended
 * @raise [TimeoutError] */
static VALUE lane_next_notifications(VALUE self, VALUE seconds) {
    rpg_lane *lane = rpg_lane_get(self);
    int64_t deadline = ringspun->deadline(seconds);
    lane->listener->done = lane->notifications.len > 0 || lane->lost[0];
    rpg_wait_for(lane, lane->listener, deadline);
    return take_notifications(lane);
}

/* --- settings --- */

static rpg_span span_of(VALUE string) {
    StringValue(string);
    return (rpg_span){(const uint8_t *)RSTRING_PTR(string), (size_t)RSTRING_LEN(string)};
}

static int begin_setting(VALUE name, VALUE value, VALUE self) {
    if (!rpg_settings_begin(&rpg_lane_get(self)->settings, span_of(name), span_of(value))) rb_memerror();
    return ST_CONTINUE;
}

/* @param settings [Hash{String => String}] with which the session has begun */
static VALUE lane_set_settings(VALUE self, VALUE settings) {
    rb_hash_foreach(settings, begin_setting, self);
    return settings;
}

/* @param renewing [Boolean] whether settings may be as they are for now */
static VALUE lane_set_renewing(VALUE self, VALUE renewing) {
    rpg_lane_get(self)->renewing = RTEST(renewing);
    return renewing;
}

/* @return [Array<String>] names of settings that are not as they were when the session began */
static VALUE lane_changed_settings(VALUE self) {
    const rpg_out *changed = &rpg_lane_get(self)->settings.changed;
    VALUE names = rb_ary_new();
    for (size_t at = 0; at < changed->len;) {
        const char *name = (const char *)changed->bytes + at, *value = name + strlen(name) + 1;
        rb_ary_push(names, rb_utf8_str_new_cstr(name));
        at += (size_t)(value + strlen(value) + 1 - name);
    }
    return names;
}

/* @return [String, nil] the name of one with which values would be read wrongly */
static VALUE lane_unreadable_setting(VALUE self) {
    rpg_span name = rpg_settings_unreadable(&rpg_lane_get(self)->settings);
    return name.len > 0 ? rb_utf8_str_new((const char *)name.bytes, (long)name.len) : Qnil;
}

void rpg_init_notifications(VALUE cLane) {
    rb_define_method(cLane, "listen", lane_listen, 0);
    rb_define_method(cLane, "next_notifications", lane_next_notifications, 1);
    rb_define_method(cLane, "settings=", lane_set_settings, 1);
    rb_define_method(cLane, "renewing=", lane_set_renewing, 1);
    rb_define_method(cLane, "changed_settings", lane_changed_settings, 0);
    rb_define_method(cLane, "unreadable_setting", lane_unreadable_setting, 0);
}
