/* lists: whether the text of a statement shows that a parameter is an array of Postgres. An Array may also be meant as json, and where
 * the text does not tell, the server is asked for the type. A false answer costs a round trip once. No state. */
#ifndef RINGSPUN_PG_LISTS_H
#define RINGSPUN_PG_LISTS_H

#include <stdbool.h>
#include <stddef.h>

/* `number`: of the parameter, from 1 on. */
bool rpg_shows_array(const char *sql, size_t len, long number);

#endif
