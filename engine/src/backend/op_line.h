/* op_line: names of ops that wait in line, in the order in which they came. Owned by the machine's thread; an op that ends
 * meanwhile leaves its name behind, which then finds nobody.
 */
#ifndef RINGSPUN_OP_LINE_H
#define RINGSPUN_OP_LINE_H

#include "ops/op.h"

typedef struct {
    rs_id *names;
    uint32_t len;
    uint32_t capacity;
} rs_op_line;

/* Memory for so many names more. False: there is none. */
bool rs_op_line_reserve(rs_op_line *line, uint32_t count);

void rs_op_line_put(rs_op_line *line, const rs_op *op);

/* The first so many go. */
void rs_op_line_drop(rs_op_line *line, uint32_t count);

void rs_op_line_free(rs_op_line *line);

#endif
