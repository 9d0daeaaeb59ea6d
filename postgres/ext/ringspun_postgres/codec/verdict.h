/* verdict: what the text of a statement tells of what it leaves behind in its session. Owns nothing, has no state, and may be called
 * from any thread.
 *
 * What a function does that the statement calls, no text tells, nor what a DO does. https://www.postgresql.org/docs/17/sql-syntax-lexical.html
 */
#ifndef RINGSPUN_PG_VERDICT_H
#define RINGSPUN_PG_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    bool copies;                /* begins with COPY */
    bool of_session;            /* has a use for one session alone: it begins with such a word, or leaves something there */
    bool leaves;                /* leaves something of which no tag tells: a temporary table, an advisory lock, a setting */
    bool ends_with_transaction; /* sets what is as before when the transaction ends */
    bool ends_transaction;      /* commits it, or rolls all of it back */
} rpg_verdict;

rpg_verdict rpg_verdict_of(const char *sql, size_t len);

#endif
