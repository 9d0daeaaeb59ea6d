/* op_table: the system calls behind every kind of op. No state of its own. */
#ifndef RINGSPUN_OP_TABLE_H
#define RINGSPUN_OP_TABLE_H

#include "ops/op.h"

typedef struct {
    /* One try that does not wait: result, -EAGAIN when it would wait, or another -errno. Of the machine's thread alone. */
    int64_t (*attempt)(struct rs_machine *machine, const rs_request *request);
    /* The same as a plain system call that may block; only workers call it. NULL: never handed to a worker. */
    int64_t (*execute)(const rs_request *request);
} rs_op_call;

extern const rs_op_call rs_op_calls[RS_OP_KINDS];

#endif
