/* result: what a statement has answered: Ringspun::Postgres::Result. Its rows are decoded when somebody asks for them. */
#ifndef RINGSPUN_PG_RESULT_H
#define RINGSPUN_PG_RESULT_H

#include "client/columns.h"
#include "client/rows.h"

/* Of a CommandComplete, cut where it is longer. */
#define RPG_TAG_MAX 64

typedef struct {
    VALUE columns;              /* nil: it has none */
    VALUE seen;                 /* what take_seen answers; nil: nobody observes, or it was taken */
    rpg_rows rows;
    bool binary;                /* in the formats that the columns are asked for in, and not all as text */
    uint8_t tag_len;
    char tag[RPG_TAG_MAX];
} rpg_result;

/* An empty one, for who fills it in. */
VALUE rpg_result_new(rpg_result **result);

/* Once. */
VALUE rpg_result_take_seen(VALUE self);
/* Its rows, which are there as long as the Result is. */
const rpg_rows *rpg_result_rows(VALUE self);

/* False: something has to be looked up before its rows are decoded. */
bool rpg_result_is_complete(VALUE self);

void rpg_init_result(void);

#endif
