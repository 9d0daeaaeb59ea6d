#include "ops/op.h"
#include "core/machine.h"
#include "ops/ops.h"

#include <errno.h>
#include <stdlib.h>

void rs_op_keep(rs_op *op, uintptr_t object) { op->keep = object; }
uintptr_t rs_op_kept(const rs_op *op) { return op->keep; }
const rs_request *rs_op_request(const rs_op *op) { return &op->request; }
int64_t rs_op_result(const rs_op *op) { return op->result; }
bool rs_op_was_closed(const rs_op *op) { return op->closing && op->result == -EBADF; }

const rs_ops *rs_ops_of(const rs_machine *machine) { return rs_ops_in(machine); }

void rs_ops_init(rs_ops *ops, uint32_t limit) {
    *ops = (rs_ops){0};
    rs_slab_init(&ops->slab, sizeof(rs_op), limit);
}

void rs_ops_free(rs_ops *ops) {
    bool in_doubt = false;
    RS_EACH_OP(ops, op) {
        if (op->in_doubt) in_doubt = true;
        else free(op->request.owned);
    }
    if (RS_LIKELY(!in_doubt)) rs_slab_free(&ops->slab);
}

rs_op *rs_op_take(rs_ops *ops, const rs_request *request) {
    rs_op *op = rs_slab_take(&ops->slab);
    if (!op) return NULL;
    RS_CHECK(request->kind < RS_OP_KINDS);
    RS_CHECK(request->done == 0 || (request->options & RS_REQUEST_ALL));
    op->request = *request;
    rs_op_become(op, RS_OP_FILLED);
    return op;
}

void rs_op_release(rs_ops *ops, rs_op *op) {
    RS_ASSERT(op->state == RS_OP_FILLED || op->state == RS_OP_TERMINAL);
    RS_CHECK(op->job == NULL && op->next == 0 && op->previous == 0);
    if (RS_UNLIKELY(op->in_doubt)) return;
    free(op->request.owned);
    op->request.owned = NULL;
    op->keep = 0;
    rs_op_become(op, RS_OP_FREE);
    rs_slab_give(&ops->slab, op);
}

rs_op *rs_op_find(const rs_ops *ops, rs_id id) {
    uint32_t index = rs_id_index(id);
    if (index >= rs_slab_len(&ops->slab)) return NULL;
    rs_op *op = rs_op_at(ops, index);
    RS_CHECK(op->index == index);
    return op->generation == rs_id_generation(id) && op->state == RS_OP_SUBMITTED ? op : NULL;
}

rs_op *rs_ops_next(const rs_ops *ops, const rs_op *op) {
    if (ops->slab.used == 0) return NULL;
    for (uint32_t index = op ? op->index + 1 : 0; index < rs_slab_len(&ops->slab); index++) {
        rs_op *next = rs_op_at(ops, index);
        if (next->state == RS_OP_FREE) continue;
        RS_CHECK(next->index == index && next->generation != 0);
        return next;
    }
    return NULL;
}
