/* row: one row of a result, decoded value by value when somebody asks: Ringspun::Postgres::Row. It shares the memory in which the
 * server's bytes lie with the other rows that came with it. */
#ifndef RINGSPUN_PG_ROW_H
#define RINGSPUN_PG_ROW_H

#include "client/columns.h"
#include "client/rows.h"

/* The row in that message, as a Row, Array or Hash. `binary`: as in rpg_decode. May raise. */
VALUE rpg_row_lazy(VALUE columns, bool binary, rpg_block *block, const rpg_message *message);
VALUE rpg_row_array(VALUE columns, bool binary, rpg_block *block, const rpg_message *message);
VALUE rpg_row_hash(VALUE columns, bool binary, rpg_block *block, const rpg_message *message);

/* Its first value; nil where it has none. */
VALUE rpg_row_first(VALUE columns, bool binary, const rpg_message *message);

void rpg_init_row(void);

#endif
