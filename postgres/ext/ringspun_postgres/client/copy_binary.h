/* copy_binary: values in the binary format of COPY. No state.
 * https://www.postgresql.org/docs/17/sql-copy.html#id-1.9.3.55.9.4 */
#ifndef RINGSPUN_PG_COPY_BINARY_H
#define RINGSPUN_PG_COPY_BINARY_H

#include "client/copy_format.h"

void rpg_copy_put_binary(rpg_copy_rows *rows, VALUE value);
void rpg_copy_put_binary_header(rpg_out *out);

/* Raises UsageError where a column is of a type that is not written so. */
void rpg_copy_check_binary(const rpg_columns *columns);

#endif
