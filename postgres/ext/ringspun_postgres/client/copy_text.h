/* copy_text: values in the text and CSV formats of COPY. No state.
 * https://www.postgresql.org/docs/17/sql-copy.html#id-1.9.3.55.9 */
#ifndef RINGSPUN_PG_COPY_TEXT_H
#define RINGSPUN_PG_COPY_TEXT_H

#include "client/copy_format.h"

void rpg_copy_put_text(rpg_copy_rows *rows, VALUE value);
void rpg_copy_put_csv(rpg_copy_rows *rows, VALUE value);

/* A text in UTF-8 of the value, for the column's type. */
VALUE rpg_copy_utf8(rpg_copy_rows *rows, VALUE value);

#endif
