/* decoders: those that a user gives for some types, and for arrays of these types: Ringspun::Postgres::Decoders. Never changes. */
#ifndef RINGSPUN_PG_DECODERS_H
#define RINGSPUN_PG_DECODERS_H

#include "client/postgres.h"

/* The type of that OID. `self` is nil where the user has said nothing, and else lives as long as the type is used. */
const rpg_type *rpg_decoders_type(VALUE self, uint32_t oid);

#endif
