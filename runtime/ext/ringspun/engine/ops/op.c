#include "ops/op.h"

#include <stdlib.h>

void rs_ops_init(rs_ops *ops, uint32_t limit) { *ops = (rs_ops){.free_head = RS_NO_INDEX, .limit = limit}; }

void rs_ops_free(rs_ops *ops) {
    for (uint32_t i = 0; i < ops->chunk_count; i++) {
        for (uint32_t j = 0; j < RS_OP_CHUNK; j++) {
            if (!ops->chunks[i][j].in_doubt) free(ops->chunks[i][j].request.extra);
        }
        free(ops->chunks[i]);
    }
    free(ops->chunks);
    *ops = (rs_ops){0};
}

static bool add_chunk(rs_ops *ops) {
    if (ops->chunk_count == ops->chunk_capacity) {
        uint32_t capacity = ops->chunk_capacity ? ops->chunk_capacity * 2 : 4;
        rs_op **chunks = rs_try_realloc(ops->chunks, sizeof(rs_op *) * capacity);
        if (!chunks) return false;
        ops->chunks = chunks;
        ops->chunk_capacity = capacity;
    }
    rs_op *chunk = rs_try_alloc(sizeof(rs_op) * RS_OP_CHUNK);
    if (!chunk) return false;
    uint32_t base = ops->chunk_count * RS_OP_CHUNK;
    ops->chunks[ops->chunk_count++] = chunk;
    for (uint32_t i = RS_OP_CHUNK; i-- > 0;) {
        chunk[i].index = base + i;
        chunk[i].next = ops->free_head;
        ops->free_head = base + i;
    }
    return true;
}

bool rs_ops_reserve(rs_ops *ops) {
    if (ops->used >= ops->limit) return false;
    return RS_LIKELY(ops->free_head != RS_NO_INDEX) || add_chunk(ops);
}

rs_op *rs_op_take(rs_ops *ops, const rs_request *request) {
    if (!rs_ops_reserve(ops)) return NULL;
    rs_op *op = rs_op_at(ops, ops->free_head);
    RS_ASSERT(op->state == RS_OP_FREE);
    ops->free_head = op->next;
    ops->used++;
    uint32_t generation = op->generation + 1;
    *op = (rs_op){.request = *request, .index = op->index, .generation = generation ? generation : 1,
                  .state = RS_OP_FILLED};
    return op;
}

void rs_op_release(rs_ops *ops, rs_op *op) {
    RS_ASSERT(op->state == RS_OP_FILLED || op->state == RS_OP_TERMINAL);
    if (RS_UNLIKELY(op->in_doubt)) return;
    free(op->request.extra);
    op->request.extra = NULL;
    op->keep[0] = op->keep[1] = 0;
    op->state = RS_OP_FREE;
    op->next = ops->free_head;
    ops->free_head = op->index;
    ops->used--;
}

rs_op *rs_op_find(const rs_ops *ops, rs_id id) {
    uint32_t index = rs_id_index(id);
    if (index >= ops->chunk_count * RS_OP_CHUNK) return NULL;
    rs_op *op = rs_op_at(ops, index);
    return op->generation == rs_id_generation(id) && op->state == RS_OP_SUBMITTED ? op : NULL;
}
