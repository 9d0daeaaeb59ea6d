/* columns: what a statement answers with, made of one RowDescription: Ringspun::Postgres::Columns. Never changes. */
#ifndef RINGSPUN_PG_COLUMNS_H
#define RINGSPUN_PG_COLUMNS_H

#include "client/postgres.h"

typedef struct {
    VALUE names;                /* Array of frozen Strings, of which equal ones are the same */
    VALUE places;               /* Hash: name => place, the first of that name */
    VALUE oids;                 /* Array of the OIDs of their types */
    VALUE decoders;             /* Decoders, which own some of the types, or nil */
    uint16_t count;
    const rpg_type *types[];
} rpg_columns;

/* Of the body of a RowDescription; a ProtocolError where it is none. */
VALUE rpg_columns_new(rpg_span description, VALUE decoders);
const rpg_columns *rpg_columns_get(VALUE self);

#endif
