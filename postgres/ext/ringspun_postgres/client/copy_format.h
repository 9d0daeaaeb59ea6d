/* copy_format: how rows of Ruby objects are written as the bytes of a COPY FROM STDIN, and what all formats share:
 * Ringspun::Postgres::CopyRows gathers them until they are worth a message. Belongs to whoever copies, in any thread, and knows no
 * connection.
 *
 * A row is there as a whole or not at all: what has failed in its midst is cut off again, and so is what another strand has begun
 * meanwhile, for a value may run Ruby code.
 */
#ifndef RINGSPUN_PG_COPY_FORMAT_H
#define RINGSPUN_PG_COPY_FORMAT_H

#include "client/columns.h"

enum { RPG_COPY_TEXT, RPG_COPY_CSV, RPG_COPY_BINARY };

/* Bytes of what stands for NULL, which is \N, or nothing, or a word. A longer one is refused. */
#define RPG_COPY_NULL_MAX 64

/* How rows are written, or read. */
typedef struct {
    uint8_t kind;
    uint8_t delimiter;
    uint8_t quote;
    uint8_t escape;
    uint8_t null_len;
    char null[RPG_COPY_NULL_MAX];
    bool simple;                /* neither numbers nor times can be mistaken for a delimiter or NULL */
    bool special[256];          /* bytes that are not written as they are */
} rpg_copy_format;

typedef struct {
    rpg_copy_format format;
    VALUE columns;              /* Columns, or nil: their types are not known */
    const rpg_columns *layout;  /* of `columns`, or NULL */
    uint32_t width;             /* values of a row */
    rpg_out out;
    size_t whole;               /* bytes of `out` that are whole rows */
    uint64_t rows;
    uint64_t serial;            /* of the row that was begun last */
    bool raw;                   /* bytes of the caller's own were added, */
    bool encoded;               /* or rows */
    bool breaks;                /* a value had a line break, so that lines are no rows */
    uint16_t place;             /* of the value that is written */
} rpg_copy_rows;

/* Raises what says which row and value is wrong. */
NORETURN(void rpg_copy_fail(const rpg_copy_rows *rows, VALUE reason));

/* The same of a row as a whole. */
NORETURN(void rpg_copy_fail_row(const rpg_copy_rows *rows, VALUE reason));

/* The OID of the type of that column; 0: it is not known. */
static inline uint32_t rpg_copy_type(const rpg_copy_rows *rows) {
    return rows->layout && rows->place < rows->layout->count ? rows->layout->types[rows->place]->oid : 0;
}

/* The text of an object in UTF-8, for which Ruby code is run. */
VALUE rpg_copy_text(const rpg_copy_rows *rows, VALUE value, bool json);

/* Microseconds since 1970. */
int64_t rpg_copy_time(const rpg_copy_rows *rows, VALUE time);

/* [kind, delimiter, null, quote, escape]. False: what stands for NULL is too long. */
bool rpg_copy_format_read(rpg_copy_format *format, VALUE options);

void rpg_init_copy_format(void);

#endif
