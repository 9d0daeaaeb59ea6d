/* op: one request to the kernel (or to the simulated one), as who asked for it sees it. Owned by the machine's thread.
 *
 * `keep` names what the driver must keep alive and in place until the op ends, for the kernel may touch it until then.
 */
#ifndef RINGSPUN_OP_H
#define RINGSPUN_OP_H

#include "ringspun/ops/request.h"

struct rs_machine;

typedef struct rs_op rs_op;

/* An object to be kept alive and in its place until the op ends; 0: none. */
void rs_op_keep(rs_op *op, uintptr_t object);
uintptr_t rs_op_kept(const rs_op *op);

const rs_request *rs_op_request(const rs_op *op);
/* Once it has ended. */
int64_t rs_op_result(const rs_op *op);
/* It has ended because its descriptor was closed by the machine. */
bool rs_op_was_closed(const rs_op *op);

typedef struct rs_ops rs_ops;

/* Of a machine that is, or was, open. */
const rs_ops *rs_ops_of(const struct rs_machine *machine);

/* Those that are not free, one after the other: the one behind `op` (NULL: the first of all), or NULL. It may end meanwhile. */
rs_op *rs_ops_next(const rs_ops *ops, const rs_op *op);

#define RS_EACH_OP(ops, op) for (rs_op *op = NULL; (op = rs_ops_next(ops, op));)

#endif
