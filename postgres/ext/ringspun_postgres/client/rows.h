/* rows: the rows of one result as the server has sent them, until somebody decodes them. Owned by whoever has the result.
 *
 * They lie in pieces, each of whole DataRow messages one after the other: in a block of a stream that all results share which came
 * with it, or in a copy. A block goes when the last piece of it goes.
 */
#ifndef RINGSPUN_PG_ROWS_H
#define RINGSPUN_PG_ROWS_H

#include "codec/message.h"

typedef struct {
    uint32_t refs;
    size_t size;
    void *memory;
    void (*free)(void *memory);
} rpg_block;

typedef struct {
    rpg_block *block;
    const uint8_t *bytes;
    size_t len;
} rpg_piece;

typedef struct {
    rpg_piece *pieces;
    rpg_piece only;             /* where there is one, `pieces` points here */
    uint32_t len;
    uint32_t capacity;
    uint64_t count;             /* of rows */
} rpg_rows;

/* Takes over that memory, which one reference has: the caller's. NULL: no memory, and nothing is taken over. */
rpg_block *rpg_block_new(void *memory, size_t size, void (*free)(void *memory));
void rpg_block_drop(rpg_block *block);

/* So many rows more, in the block, or a copy of them. False: no memory. */
bool rpg_rows_add(rpg_rows *rows, rpg_block *block, rpg_span bytes, uint64_t count);
bool rpg_rows_copy(rpg_rows *rows, rpg_span bytes, uint64_t count);

/* They are those of `to`, which had none. */
void rpg_rows_move(rpg_rows *to, rpg_rows *from);
void rpg_rows_free(rpg_rows *rows);

/* Whether others have blocks of them as well. */
bool rpg_rows_are_shared(const rpg_rows *rows);

/* All bytes that they keep alive. */
size_t rpg_rows_size(const rpg_rows *rows);

/* A row after the other. */
typedef struct {
    const rpg_rows *rows;
    uint32_t piece;
    size_t at;
} rpg_cursor;

/* False: no more. */
bool rpg_rows_next(rpg_cursor *cursor, rpg_message *row);

/* Where the last one lies. */
static inline rpg_block *rpg_cursor_block(const rpg_cursor *cursor) { return cursor->rows->pieces[cursor->piece].block; }

#endif
