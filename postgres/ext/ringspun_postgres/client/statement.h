/* statement: what a connection knows of one SQL text: Ringspun::Postgres::Statement. Owned by the lane.
 *
 * The first use is the unnamed one; the second gives it a name, by which all later ones call it. What columns it has is known when
 * the first description of it has come, and then they are asked for as binary where that pays.
 */
#ifndef RINGSPUN_PG_STATEMENT_H
#define RINGSPUN_PG_STATEMENT_H

#include "client/columns.h"
#include "client/decoders.h"
#include "client/history.h"
#include "client/what.h"
#include "codec/verdict.h"

/* Room for a lane's prefix and a number of ten digits. The server keeps 63 bytes of a name:
 * https://www.postgresql.org/docs/17/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS */
#define RPG_NAME_MAX 40

typedef struct {
    VALUE sql;
    VALUE declared;             /* String: the OIDs of types that parameters say they have, as of rpg_params_declared; or nil */
    VALUE history_of;           /* History, or nil: it is asked of no connection */
    rpg_history *history;       /* the same; NULL: there is none */
    VALUE decoders;             /* Decoders or nil, for its columns */
    VALUE columns;              /* made of the description when somebody needs them; nil: not yet, or there are none */
    VALUE older;                /* Array of Columns by which answers may still be under way, or nil */
    uint8_t *description;       /* the body of the last RowDescription; NULL: none has come, or there are no columns */
    size_t description_len;
    uint32_t *parameters;       /* OIDs of their types; NULL: not known, or there are none */
    uint16_t parameters_len;
    bool described;
    bool typed;                 /* the types of its parameters are known */
    bool used;
    bool recent;                /* used since the lane last looked for one to forget */
    rpg_verdict verdict;        /* by its text */
    uint32_t schema;            /* how often that had changed when it was made */
    uint32_t named;             /* the number in its name */
    uint8_t name_len;           /* 0: it has none yet */
    char name[RPG_NAME_MAX];
    char what[RPG_WHAT_MAX];    /* its strand waits for; empty: nobody has asked */
} rpg_statement;

/* How often a statement of this process has changed what tables, types or functions there are. A server keeps the types of a
 * parameter as they were when a name was given, and makes of a text what that type makes of it. */
extern uint32_t rpg_schema;

VALUE rpg_statement_new(VALUE sql, VALUE declared, VALUE decoders);

/* Without a look at its class, for no method gives one to users, and each request asks several times. */
static inline rpg_statement *rpg_statement_get(VALUE self) { return RTYPEDDATA_GET_DATA(self); }

/* A RowDescription has come, or that there is none (no bytes). */
void rpg_statement_describe(rpg_statement *statement, rpg_span description);

/* A ParameterDescription has come. False: it is none. */
bool rpg_statement_type(rpg_statement *statement, const rpg_message *message);

/* Of the type of the parameter at that place, from 0 on, as far as is known. */
rpg_kind rpg_statement_kind(const rpg_statement *statement, long place, uint32_t *type);

/* The server does not know that name, and what it says next of the statement may be something else. */
void rpg_statement_forget_name(rpg_statement *statement);

/* What is known of its text. */
void rpg_statement_know(rpg_statement *statement, VALUE history);

/* What a strand waits for, in words. */
const char *rpg_statement_what(rpg_statement *statement);

/* nil: none, or not known yet. May raise. */
VALUE rpg_statement_columns(rpg_statement *statement);

void rpg_init_statement(void);

#endif
