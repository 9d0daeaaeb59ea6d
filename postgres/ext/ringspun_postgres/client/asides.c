#include "client/asides.h"
#include "client/ending.h"

static rpg_aside take_setting(rpg_lane *lane, const rpg_message *message) {
    rpg_span name, value;
    if (!rpg_read_parameter_status(message, &name, &value)) return RPG_ASIDE_WRONG;
    return rpg_settings_note(&lane->settings, name, value) ? RPG_ASIDE_TAKEN : RPG_ASIDE_NO_MEMORY;
}

static rpg_aside take_notification(rpg_lane *lane, const rpg_message *message) {
    uint32_t process;
    rpg_span channel, payload;
    if (!rpg_read_notification(message, &process, &channel, &payload)) return RPG_ASIDE_WRONG;
    if (!lane->listener) return RPG_ASIDE_TAKEN;
    rpg_out *out = &lane->notifications;
    size_t before = out->len;
    rpg_put_u32(out, (uint32_t)message->len);
    rpg_put_bytes(out, message->body, message->len);
    if (out->state != RPG_OUT_FINE) {
        rpg_out_cut(out, before);
        return RPG_ASIDE_NO_MEMORY;
    }
    rpg_rouse(lane->listener);
    return RPG_ASIDE_TAKEN;
}

/* The answer that comes next tells whose it is. */
static rpg_notices *list_for(rpg_lane *lane) {
    const rpg_expected *first = rpg_replies_first(&lane->replies);
    const rpg_request *request = first ? first->tag : NULL;
    return lane->shared && request && request->seen && !request->abandoned ? &request->seen->notices : &lane->notices;
}

rpg_aside rpg_take_aside(rpg_lane *lane, const rpg_message *message) {
    switch (message->type) {
    case RPG_PARAMETER_STATUS: return take_setting(lane, message);
    case RPG_NOTIFICATION: return take_notification(lane, message);
    case RPG_NOTICE:
        if (RB_UNLIKELY(lane->observed)) rpg_notices_note(list_for(lane), message);
        return RPG_ASIDE_TAKEN;
    default: return RPG_ASIDE_TAKEN;
    }
}
