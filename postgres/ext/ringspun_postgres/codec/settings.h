/* settings: what a server has said of the settings of a session, and which of them are not as they were when it began. Plain memory
 * of whoever has it. https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-ASYNC
 */
#ifndef RINGSPUN_PG_SETTINGS_H
#define RINGSPUN_PG_SETTINGS_H

#include "codec/out.h"
#include "codec/reader.h"

typedef struct {
    rpg_out begun;              /* names and values in turn, each with its NUL */
    rpg_out changed;            /* those that differ from these */
} rpg_settings;

void rpg_settings_free(rpg_settings *settings);

/* How the session begins. Call it before the first rpg_settings_note. False: no memory. */
bool rpg_settings_begin(rpg_settings *settings, rpg_span name, rpg_span value);

/* The server reports one. False: there is no memory, or it reports more than a server does. */
bool rpg_settings_note(rpg_settings *settings, rpg_span name, rpg_span value);

static inline bool rpg_settings_differ(const rpg_settings *settings) { return settings->changed.len > 0; }

/* One with which the client would read other values than the server means: its name, else no bytes. */
rpg_span rpg_settings_unreadable(const rpg_settings *settings);

#endif
