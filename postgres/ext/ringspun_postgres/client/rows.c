#include "client/rows.h"

#include <ruby.h>
#include <stdlib.h>

/* The collector is told of it, which else would not know what keeping few small objects costs. */
rpg_block *rpg_block_new(void *memory, size_t size, void (*free_memory)(void *memory)) {
    rpg_block *block = malloc(sizeof(*block));
    if (!block) return NULL;
    *block = (rpg_block){1, size, memory, free_memory};
    rb_gc_adjust_memory_usage((ssize_t)size);
    return block;
}

void rpg_block_drop(rpg_block *block) {
    if (--block->refs > 0) return;
    rb_gc_adjust_memory_usage(-(ssize_t)block->size);
    block->free(block->memory);
    free(block);
}

static rpg_piece *next_piece(rpg_rows *rows) {
    if (rows->len == 0) {
        rows->pieces = &rows->only;
        rows->capacity = 1;
    } else if (rows->len == rows->capacity) {
        uint32_t capacity = rows->capacity * 4;
        rpg_piece *old = rows->pieces == &rows->only ? NULL : rows->pieces;
        rpg_piece *pieces = realloc(old, sizeof(*pieces) * capacity);
        if (!pieces) return NULL;
        if (!old) pieces[0] = rows->only;
        rows->pieces = pieces;
        rows->capacity = capacity;
    }
    return &rows->pieces[rows->len];
}

bool rpg_rows_add(rpg_rows *rows, rpg_block *block, rpg_span bytes, uint64_t count) {
    rpg_piece *piece = next_piece(rows);
    if (!piece) return false;
    *piece = (rpg_piece){block, bytes.bytes, bytes.len};
    block->refs++;
    rows->len++;
    rows->count += count;
    return true;
}

bool rpg_rows_copy(rpg_rows *rows, rpg_span bytes, uint64_t count) {
    uint8_t *copy = malloc(bytes.len);
    rpg_block *block = copy ? rpg_block_new(copy, bytes.len, free) : NULL;
    if (!block) {
        free(copy);
        return false;
    }
    memcpy(copy, bytes.bytes, bytes.len);
    bool added = rpg_rows_add(rows, block, (rpg_span){copy, bytes.len}, count);
    rpg_block_drop(block);
    return added;
}

void rpg_rows_move(rpg_rows *to, rpg_rows *from) {
    *to = *from;
    if (from->pieces == &from->only) to->pieces = &to->only;
    *from = (rpg_rows){0};
}

void rpg_rows_free(rpg_rows *rows) {
    for (uint32_t i = 0; i < rows->len; i++) rpg_block_drop(rows->pieces[i].block);
    if (rows->pieces != &rows->only) free(rows->pieces);
    *rows = (rpg_rows){0};
}

bool rpg_rows_are_shared(const rpg_rows *rows) {
    for (uint32_t i = 0; i < rows->len; i++) {
        if (rows->pieces[i].block->refs > 1) return true;
    }
    return false;
}

size_t rpg_rows_size(const rpg_rows *rows) {
    size_t size = rows->pieces && rows->pieces != &rows->only ? sizeof(rpg_piece) * rows->capacity : 0;
    for (uint32_t i = 0; i < rows->len; i++) size += rows->pieces[i].len;
    return size;
}

bool rpg_rows_next(rpg_cursor *cursor, rpg_message *row) {
    while (cursor->piece < cursor->rows->len) {
        const rpg_piece *piece = &cursor->rows->pieces[cursor->piece];
        size_t needed;
        if (rpg_message_next(piece->bytes + cursor->at, piece->len - cursor->at, row, &needed) == RPG_WHOLE) {
            cursor->at += needed;
            return true;
        }
        cursor->piece++;
        cursor->at = 0;
    }
    return false;
}
