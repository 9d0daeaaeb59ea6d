#include "client/inbox.h"

#include <stdlib.h>

static bool lies_here(const rpg_lane *lane) { return lane->threads.active || lane->threads.in.len > 0; }

/* What the stream has comes behind. */
static bool gather(rpg_lane *lane) {
    const char *bytes;
    size_t len;
    ringspun->stream_peek(lane->stream, &bytes, &len);
    if (len == 0) return true;
    rpg_put_bytes(&lane->threads.in, bytes, len);
    if (lane->threads.in.state != RPG_OUT_FINE) return false;
    ringspun->stream_drop(lane->stream, len);
    return true;
}

bool rpg_inbox_look(rpg_lane *lane, rpg_span *bytes) {
    const char *chars;
    if (RB_LIKELY(!lies_here(lane))) {
        ringspun->stream_peek(lane->stream, &chars, &bytes->len);
        bytes->bytes = (const uint8_t *)chars;
        return true;
    }
    if (!lane->threads.active && !gather(lane)) return false;
    *bytes = (rpg_span){lane->threads.in.bytes, lane->threads.in.len};
    return true;
}

void rpg_inbox_drop(rpg_lane *lane, size_t len) {
    rpg_out *in = &lane->threads.in;
    if (RB_LIKELY(!lies_here(lane))) {
        ringspun->stream_drop(lane->stream, len);
    } else {
        if (len < in->len) memmove(in->bytes, in->bytes + len, in->len - len);
        rpg_out_cut(in, in->len - len);
    }
}

static rpg_block *take_here(rpg_lane *lane, size_t len, const uint8_t **start) {
    rpg_out *in = &lane->threads.in, rest = {0};
    if (len < in->len) rpg_put_bytes(&rest, in->bytes + len, in->len - len);
    rpg_block *block = rest.state == RPG_OUT_FINE ? rpg_block_new(in->bytes, len, free) : NULL;
    if (!block) {
        rpg_out_free(&rest);
        return NULL;
    }
    *start = in->bytes;
    *in = rest;
    return block;
}

rpg_block *rpg_inbox_take(rpg_lane *lane, size_t len, const uint8_t **start) {
    if (lies_here(lane)) return take_here(lane, len, start);
    size_t offset, capacity;
    void *memory = ringspun->stream_take(lane->stream, len, &offset, &capacity);
    rpg_block *block = rpg_block_new(memory, capacity, ringspun->block_free);
    *start = (const uint8_t *)memory + offset;
    if (!block) ringspun->block_free(memory);
    return block;
}

bool rpg_inbox_hand_over(rpg_lane *lane) {
    if (lane->threads.active || lane->threads.fd < 0 || lane->lost[0]) return true;
    return gather(lane);
}
