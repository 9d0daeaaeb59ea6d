/* columns: what a statement answers with, made of one RowDescription: Ringspun::Postgres::Columns. Never changes. */
#ifndef RINGSPUN_PG_COLUMNS_H
#define RINGSPUN_PG_COLUMNS_H

#include "client/postgres.h"
#include "client/types.h"

typedef struct {
    VALUE names;                /* Array of frozen Strings, of which equal ones are the same */
    VALUE places;               /* Hash: name => place, the last of that name */
    VALUE oids;                 /* Array of the OIDs of their types */
    VALUE tables;               /* Hash: name => OIDs of tables, of names that columns of several tables have; nil: there are none, or
                                 * nobody wants to be told */
    VALUE decoders;             /* Decoders, which own some of the types, or nil */
    VALUE unknown;              /* Hash: place => OID, of the types that have to be looked up; nil: there are none */
    uint16_t count;
    const rpg_type *types[];
} rpg_columns;

/* Of the body of a RowDescription; a ProtocolError where it is none. */
VALUE rpg_columns_new(rpg_span description, VALUE decoders);
const rpg_columns *rpg_columns_get(VALUE self);

/* What `tables` has, once. */
VALUE rpg_columns_take_tables(VALUE self);

/* The OIDs of types that have to be looked up, which are taken for text until then; nil: there are none, or they are known now. */
VALUE rpg_columns_unknown(VALUE self);

void rpg_init_columns(void);

#endif
