/* types: what Ruby object a value of the server becomes, by the OID of its type and the format that it comes in. No state.
 *
 * Decoders read a value of any bytes and any length: what is not as the type has it is a ProtocolError. They may raise, and those of
 * some types run Ruby code; so values are decoded by the strand that they are for, and not by the one that reads for others. What
 * they answer is the same in either format, for the first use of a statement has all as text.
 */
#ifndef RINGSPUN_PG_TYPES_H
#define RINGSPUN_PG_TYPES_H

#include "codec/message.h"

#include <ruby.h>

typedef struct rpg_type {
    uint32_t oid;
    uint32_t element;           /* an array, of that; 0: none */
    VALUE (*text)(rpg_span value); /* NULL: an array, or a user's decoder */
    VALUE (*binary)(rpg_span value); /* NULL: it is asked for as text */
    VALUE decoder;              /* a user's, which is called with the text; 0: none */
    const struct rpg_type *decoded; /* an array, of that, whatever its element's OID says; NULL: of what that says */
    bool as_text;               /* an array that is asked for as text, whatever it is of */
    char delimiter;             /* an array, between its elements; 0: a comma */
} rpg_type;

/* OIDs of bytea and bytea[]: https://github.com/postgres/postgres/blob/REL_17_STABLE/src/include/catalog/pg_type.dat */
#define RPG_BYTEA 17u
#define RPG_BYTEA_ARRAY 1001u

/* The server itself gives OIDs up to this one, which are the same everywhere; those of its initial database, and of what users
 * create, follow. https://www.postgresql.org/docs/17/system-catalog-initial-data.html#SYSTEM-CATALOG-OID-ASSIGNMENT */
#define RPG_OID_FIXED_MAX 9999u

/* Of an OID that is not known: text, as a String. */
const rpg_type *rpg_type_of(uint32_t oid);

static inline bool rpg_type_is_fixed(uint32_t oid) { return oid <= RPG_OID_FIXED_MAX; }

/* The OID of the array of that; 0: it is not known. */
uint32_t rpg_array_of(uint32_t oid);

/* Whether it is asked for as binary, where its columns are known. */
bool rpg_type_is_binary(const rpg_type *type);

/* `binary`: each type in the format that it is asked for in; else all as text. */
VALUE rpg_decode(const rpg_type *type, bool binary, rpg_span value);

void rpg_init_types(void);

#endif
