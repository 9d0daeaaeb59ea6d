#include "backend/op_line.h"

#include <stdlib.h>
#include <string.h>

static uint32_t larger(const rs_op_line *line) { return line->capacity ? line->capacity * 2 : 64; }

bool rs_op_line_reserve(rs_op_line *line, uint32_t count) {
    RS_CHECK(line->len <= line->capacity);
    while (RS_UNLIKELY(line->capacity - line->len < count)) {
        rs_id *names = rs_try_realloc(line->names, sizeof(rs_id) * larger(line));
        if (!names) return false;
        line->names = names;
        line->capacity = larger(line);
    }
    return true;
}

void rs_op_line_put(rs_op_line *line, const rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED);
    bool room = rs_op_line_reserve(line, 1); /* most often whoever may be told of no memory has done it */
    RS_ASSERT(room);
    line->names[line->len++] = rs_op_id(op);
}

void rs_op_line_drop(rs_op_line *line, uint32_t count) {
    RS_ASSERT(count <= line->len);
    line->len -= count;
    if (line->len > 0) memmove(line->names, line->names + count, sizeof(rs_id) * line->len);
}

void rs_op_line_free(rs_op_line *line) {
    free(line->names);
    *line = (rs_op_line){0};
}
