/* kind: what a statement may do to others that share its connection, as far as its text tells. It errs on the safe side: what it
 * takes for a write may read.
 */
#ifndef RINGSPUN_PG_KIND_H
#define RINGSPUN_PG_KIND_H

#include <stddef.h>

typedef enum {
    RPG_READS,                  /* a plain SELECT: it waits for no lock but that of who alters its table */
    RPG_WRITES,                 /* it may wait for a lock: it writes, locks, or calls a function that nobody knows */
    RPG_ALONE,                  /* it may commit in its midst, so that it cannot be run again when it has waited too long */
} rpg_effect;

rpg_effect rpg_kind_of(const char *sql, size_t len);

#endif
