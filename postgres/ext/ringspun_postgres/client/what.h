/* what: what a strand waits for, in words for reports: the beginning of its statement. Never its parameters, which are not in the text
 * of a statement, and never a password that is. */
#ifndef RINGSPUN_PG_WHAT_H
#define RINGSPUN_PG_WHAT_H

#include <stddef.h>

#define RPG_WHAT_MAX 128        /* with the NUL */

/* In one line, cut where it is longer. */
void rpg_what_of(char what[RPG_WHAT_MAX], const char *sql, size_t len);

#endif
