/* decoders: what a pool knows of the types of its database beside those that each server has: the decoders that a user gives for
 * some, what a domain is made of, and what an array is of: Ringspun::Postgres::Decoders. It learns of types as they are met, and
 * forgets none: columns that have one of them keep this alive. */
#ifndef RINGSPUN_PG_DECODERS_H
#define RINGSPUN_PG_DECODERS_H

#include "client/postgres.h"
#include "client/types.h"

/* The type of that OID. `self` is nil where nothing is known of the database, and else lives as long as the type is used. NULL: it
 * has to be looked up first. */
const rpg_type *rpg_decoders_type(VALUE self, uint32_t oid);

/* Whether it, or what its domain is made of, is bytea, or an array of such, or is json or jsonb. */
typedef enum { RPG_TEXT_KIND, RPG_BYTEA_KIND, RPG_JSON_KIND, RPG_UNKNOWN_KIND } rpg_kind;
rpg_kind rpg_decoders_kind(VALUE self, uint32_t oid);

void rpg_init_decoders(void);

#endif
