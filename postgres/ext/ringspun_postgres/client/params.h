/* params: Ruby objects as parameters of a statement. */
#ifndef RINGSPUN_PG_PARAMS_H
#define RINGSPUN_PG_PARAMS_H

#include "client/postgres.h"

/* Its bytes can be sent as they are. */
bool rpg_is_utf8(VALUE string);

/* The same, and Strings in the place of what needs Ruby to become one. Raises UsageError for what is none. */
VALUE rpg_encode_params(VALUE params);

/* Of these what a Bind has between the name of its statement and the formats of its columns. Runs no Ruby code. */
void rpg_put_params(rpg_out *out, VALUE params);

#endif
