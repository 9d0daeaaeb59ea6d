/* history: how long a statement's text has taken the server of late, on whatever connection: Ringspun::Postgres::Histories, which a
 * pool has, for all machines and threads.
 *
 * A statement is known as quick when it has run often enough and nothing of late took long. Before that, and afterwards, nothing
 * is sent behind it.
 */
#ifndef RINGSPUN_PG_HISTORY_H
#define RINGSPUN_PG_HISTORY_H

#include "client/kind.h"
#include "client/postgres.h"

/* In nanoseconds, as the clock has it. */
#define RPG_MILLISECOND INT64_C(1000000)

/* Whatever takes longer holds up others: docs/decisions/26. */
#define RPG_SLOW (5 * RPG_MILLISECOND)

typedef struct {
    rpg_effect kind;
    uint8_t runs;               /* that have been timed; it stays at the most */
    uint32_t slow;              /* a bit for each of the last runs, the last one lowest: it took long */
    int64_t mean;               /* nanoseconds */
} rpg_history;

/* That of a text. May raise. */
VALUE rpg_histories_find(VALUE histories, VALUE sql);

rpg_history *rpg_history_get(VALUE self);

/* A run has ended well, or has taken long. */
void rpg_history_note(rpg_history *history, int64_t took);

bool rpg_history_is_quick(const rpg_history *history);

static inline bool rpg_history_is_slow(const rpg_history *history) { return history->mean > RPG_SLOW; }

void rpg_init_histories(void);

#endif
