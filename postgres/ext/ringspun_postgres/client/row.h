/* row: one row of a result, decoded value by value when somebody asks: Ringspun::Postgres::Row. With the other rows that came with
 * it, it shares the memory in which the server's bytes lie, and what is known of its columns: Ringspun::Postgres::SharedByRows. So
 * a row owns nothing but its own slot, and the collector frees it without a call. */
#ifndef RINGSPUN_PG_ROW_H
#define RINGSPUN_PG_ROW_H

#include "client/columns.h"
#include "client/rows.h"

/* What all rows of one result have in common, while they are made one after the other. It lies on the stack. */
typedef struct {
    VALUE columns;
    const rpg_columns *layout;  /* of `columns` */
    bool binary;                /* as in rpg_decode */
    VALUE shared;               /* of the last lazy row; nil: there was none */
} rpg_row_maker;

/* Of a result that has columns. */
rpg_row_maker rpg_row_maker_new(VALUE columns, bool binary);

/* The row in that message, which lies in the block, as a Row, Array or Hash. May raise. */
VALUE rpg_row_lazy(rpg_row_maker *maker, rpg_block *block, const rpg_message *message);
VALUE rpg_row_array(rpg_row_maker *maker, rpg_block *block, const rpg_message *message);
VALUE rpg_row_hash(rpg_row_maker *maker, rpg_block *block, const rpg_message *message);

/* Its first value; nil where it has none. */
VALUE rpg_row_first(const rpg_row_maker *maker, const rpg_message *message);

void rpg_init_row(void);

#endif
